package config

import (
	"context"

	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The members of WORKFLOW_ENGINE_A2A_CONFIG besides those of the key (spec: cli-and-config, 11).
const (
	a2aBaseURL      = "baseUrl"
	a2aPollInterval = "pollIntervalMs"
	a2aPollTimeout  = "pollTimeoutMs"
)

// loadA2A reads the endpoint for delegates of protocol a2a, and resolves its key once, so that a missing secret is
// found at start and not at the first delegation. The value itself is not kept: it is read again at each call.
func loadA2A(c *Config, env Environment) error {
	m, err := env.members(envA2A, a2aBaseURL, keyEnvMember, keyRefMember, a2aPollInterval, a2aPollTimeout)
	if err != nil || m.values == nil {
		return err
	}
	settings := &delegate.A2AConfig{}
	var reference string
	if settings.BaseURL, err = m.text(a2aBaseURL); err != nil {
		return err
	}
	if reference, err = m.keyReference(); err != nil {
		return err
	}
	if reference == "" {
		return m.oneKey()
	}
	if _, err := env.secret(reference); err != nil {
		return err
	}
	settings.APIKey = func(context.Context) (string, error) { return env.secret(reference) }
	if settings.PollInterval, err = m.milliseconds(a2aPollInterval); err != nil {
		return err
	}
	if settings.PollTimeout, err = m.milliseconds(a2aPollTimeout); err != nil {
		return err
	}
	if _, err := delegate.NewA2AHTTP(*settings); err != nil {
		return problem.New(problem.UsageError, "%s", envA2A).WithCause(err)
	}
	c.A2A = settings
	return nil
}
