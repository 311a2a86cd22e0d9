package config

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The members of WORKFLOW_ENGINE_LLM_CONFIG (spec: cli-and-config, 9). Those from noAuth on are additions.
const (
	llmBaseURL        = "baseUrl"
	llmNoAuth         = "noAuth"
	llmStream         = "stream"
	llmRepair         = "repair"
	llmRequestTimeout = "requestTimeoutMs"
	llmMaxAnswer      = "maxAnswerBytes"
)

// loadLLM reads the provider of models, and resolves its key once, so that a missing secret is found at start and not
// at the first call. The value itself is not kept: it is read again at each call.
func loadLLM(c *Config, env Environment) error {
	m, err := env.members(envLLM, keyEnvMember, keyRefMember, llmBaseURL, llmNoAuth, llmStream, llmRepair, llmRequestTimeout, llmMaxAnswer)
	if err != nil || m.values == nil {
		return err
	}
	settings := &llmcall.Config{}
	if settings.BaseURL, err = m.text(llmBaseURL); err != nil {
		return err
	}
	if settings.NoAuth, err = m.truth(llmNoAuth); err != nil {
		return err
	}
	if settings.Stream, err = m.truth(llmStream); err != nil {
		return err
	}
	if _, given := m.values[llmRepair]; given {
		repair, err := m.truth(llmRepair)
		if err != nil {
			return err
		}
		settings.NoRepair = !repair
	}
	if settings.RequestTimeout, err = m.milliseconds(llmRequestTimeout); err != nil {
		return err
	}
	if settings.MaxAnswerBytes, err = m.bytes(llmMaxAnswer); err != nil {
		return err
	}
	reference, err := m.keyReference()
	if err != nil {
		return err
	}
	if reference != "" {
		if err := m.secret(env, reference); err != nil {
			return err
		}
		settings.APIKey = func(context.Context) (llmcall.Secret, error) {
			key, err := env.secret(reference)
			return llmcall.NewSecret(key), err
		}
	}
	if _, err := llmcall.New(*settings); err != nil {
		wrapped := problem.New(problem.UsageError, "%s", envLLM).WithCause(err)
		if p, ok := problem.As(err); ok && p.Hint != "" {
			wrapped = wrapped.WithHint("%s", strings.ToUpper(p.Hint[:1])+p.Hint[1:]+".")
		}
		return wrapped
	}
	c.LLM = settings
	return nil
}
