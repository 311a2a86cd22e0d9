package config

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// loadLLM reads the provider of models (spec: cli-and-config, 9; the members from noAuth on are additions).
func loadLLM(c *Config, _ setting, env Environment) error {
	m, err := env.members(envname.LLM)
	if err != nil || m.Object == nil {
		return err
	}
	reference := readKey(m.Object, env)
	settings := &llmcall.Config{
		BaseURL: text(m.Get("baseUrl")), NoAuth: m.Get("noAuth").Bool(), Stream: m.Get("stream").Bool(),
		RequestTimeout: milliseconds(m.Get("requestTimeoutMs")), MaxAnswerBytes: bytes(m.Get("maxAnswerBytes")),
	}
	if repair := m.Get("repair"); repair.Present() {
		settings.NoRepair = !repair.Bool()
	}
	if err := m.err(); err != nil {
		return err
	}
	if reference != "" {
		env.notePlain(envname.LLM, settings.BaseURL)
		settings.KeyFrom = reference + ", in " + envname.LLM
		settings.APIKey = func(context.Context) (llmcall.Secret, error) {
			key, err := env.secret(reference)
			return llmcall.NewSecret(key), err
		}
	}
	if _, err := llmcall.New(*settings); err != nil {
		wrapped := problem.New(problem.UsageError, "%s", envname.LLM).WithCause(err)
		if p, ok := problem.As(err); ok && p.Hint != "" {
			wrapped = wrapped.WithHint("%s", strings.ToUpper(p.Hint[:1])+p.Hint[1:]+".")
		}
		return wrapped
	}
	c.LLM = settings
	return nil
}
