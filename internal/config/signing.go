package config

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

// loadSigning reads the mode and the public keys (spec: cli-and-config, 15). The keys are a JSON object, or a path,
// which may have the prefix file: before it.
func loadSigning(c *Config, env Environment) error {
	mode := setting{value: env.lookup(envname.SigningMode), from: envname.SigningMode}
	var err error
	if c.Signing.Mode, err = signing.ParseMode(strings.ToLower(mode.value)); err != nil {
		return refuse(mode, "Write %s or %s.", signing.Optional, signing.Require)
	}
	text, _, err := env.text(envname.SigningKeys)
	if err != nil || text == nil {
		return err
	}
	if c.Signing.Keys, err = signing.ParseKeys(text); err != nil {
		return problem.New(problem.UsageError, "%s", envname.SigningKeys).WithCause(err)
	}
	return nil
}

// VerifySignature checks a definition's signature by the policy of WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE. The error
// is *problem.Error with code VALIDATION_ERROR.
func (c *Config) VerifySignature(d *definition.Document) error {
	_, err := c.Signing.VerifyBlock(d.Canonical, d.Signature())
	return err
}
