package config

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The members of WORKFLOW_ENGINE_A2A_CONFIG (spec: cli-and-config, 11).
const (
	a2aBaseURL      = "baseUrl"
	a2aKeyEnv       = "apiKeyEnv"
	a2aKeyRef       = "apiKeySecretRef"
	a2aPollInterval = "pollIntervalMs"
	a2aPollTimeout  = "pollTimeoutMs"
)

var a2aMembers = []string{a2aBaseURL, a2aKeyEnv, a2aKeyRef, a2aPollInterval, a2aPollTimeout}

// loadA2A reads the endpoint for delegates of protocol a2a, and resolves its key once, so that a missing secret is
// found at start and not at the first delegation. The value itself is not kept: it is read again at each call.
func loadA2A(c *Config, env Environment) error {
	members, err := env.object(envA2A)
	if err != nil || members == nil {
		return err
	}
	for _, name := range jsonvalue.Keys(members) {
		if !slices.Contains(a2aMembers, name) {
			return problem.New(problem.UsageError, "%s: member %q is not known", envA2A, name).
				WithHint("The members are %s.", strings.Join(a2aMembers, ", "))
		}
	}
	settings := &delegate.A2AConfig{}
	var reference string
	if settings.BaseURL, err = textMember(members, a2aBaseURL); err != nil {
		return err
	}
	if reference, err = keyReference(members); err != nil {
		return err
	}
	if _, err := env.secret(reference); err != nil {
		return err
	}
	settings.APIKey = func(context.Context) (string, error) { return env.secret(reference) }
	if settings.PollInterval, err = millisecondMember(members, a2aPollInterval); err != nil {
		return err
	}
	if settings.PollTimeout, err = millisecondMember(members, a2aPollTimeout); err != nil {
		return err
	}
	if _, err := delegate.NewA2AHTTP(*settings); err != nil {
		return problem.New(problem.UsageError, "%s", envA2A).WithCause(err)
	}
	c.A2A = settings
	return nil
}

// keyReference turns the two ways of naming a key into one secret reference.
func keyReference(members map[string]any) (string, error) {
	name, err := textMember(members, a2aKeyEnv)
	if err != nil {
		return "", err
	}
	reference, err := textMember(members, a2aKeyRef)
	if err != nil {
		return "", err
	}
	if (name == "") == (reference == "") {
		return "", problem.New(problem.UsageError, "%s needs exactly one of %s and %s", envA2A, a2aKeyEnv, a2aKeyRef)
	}
	if name != "" {
		return "env:" + name, nil
	}
	return reference, nil
}

// textMember gives a member that is a string, "" if it is absent.
func textMember(members map[string]any, name string) (string, error) {
	value, present := members[name]
	text, ok := value.(string)
	if present && !ok {
		return "", problem.New(problem.UsageError, "%s: member %q must be a string", envA2A, name)
	}
	return strings.TrimSpace(text), nil
}

// millisecondMember gives a member that is a number of milliseconds above zero, 0 if it is absent.
func millisecondMember(members map[string]any, name string) (time.Duration, error) {
	value, present := members[name]
	ms, ok := value.(float64)
	const day = float64(24 * time.Hour / time.Millisecond)
	if present && (!ok || ms <= 0 || ms > day) {
		return 0, problem.New(problem.UsageError, "%s: member %q must be a number of milliseconds, above 0 and at most a day",
			envA2A, name)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}
