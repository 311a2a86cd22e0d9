package config

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

func loadSigningMode(c *Config, s setting, _ Environment) (err error) {
	if c.Signing.Mode, err = signing.ParseMode(strings.ToLower(s.value)); err != nil {
		return invalid(s, "Write %s or %s.", signing.Optional, signing.Require)
	}
	return nil
}

// loadSigningKeys reads the public keys (spec: cli-and-config, 15): a JSON object, or the path of a file with one.
func loadSigningKeys(c *Config, s setting, env Environment) error {
	text, _, err := env.textOf(s.value, s.from)
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
