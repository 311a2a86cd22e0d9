package config

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// LLM holds the provider of models and the settings of llm_call nodes.
type LLM struct {
	openaichat.Config
	Stream, NoRepair bool
}

// loadLLM reads the provider of models (spec: cli-and-config, 9; the fields from noAuth on are additions).
func loadLLM(c *Config, _ setting, env Environment) error {
	m, err := env.members(envname.LLM)
	if err != nil || m.Object == nil {
		return err
	}
	address, addressed := text(m.Get("baseUrl")), m.mistakes() == 0
	before := m.mistakes()
	reference, open := readKey(m.Object, env), m.Get("noAuth").Bool()
	authorized := m.mistakes() == before
	settings := &LLM{
		Config: openaichat.Config{
			BaseURL: address, NoAuth: open,
			RequestTimeout: milliseconds(m.Get("requestTimeoutMs")), MaxAnswerBytes: bytes(m.Get("maxAnswerBytes")),
		},
		Stream: m.Get("stream").Bool(),
	}
	if repair := m.Get("repair"); repair.Present() {
		settings.NoRepair = !repair.Bool()
	}
	if reference != "" {
		env.notePlain(envname.LLM, settings.BaseURL)
		settings.KeyFrom = reference + ", in " + envname.LLM
		settings.APIKey = env.modelKey(reference)
	}
	// The provider checks the address and the key, each by itself. A misspelt field is reported without what is then missing.
	unknown := m.Close()
	if addressed {
		m.judge(openaichat.New(openaichat.Config{BaseURL: address, NoAuth: true}))
	}
	if authorized && (len(unknown) == 0 || reference != "") {
		m.judge(openaichat.New(openaichat.Config{NoAuth: open, APIKey: settings.APIKey}))
	}
	if err := m.err(); err != nil {
		return err
	}
	c.LLM = settings
	return nil
}

// judge reports the error of a provider with its hint.
func (m members) judge(_ *openaichat.Model, err error) {
	if err == nil {
		return
	}
	f := m.Fail("profile", "%v", err)
	if p, ok := problem.As(err); ok && p.Hint != "" {
		f.Hint = strings.ToUpper(p.Hint[:1]) + p.Hint[1:] + "."
	}
}

// modelKey returns a function that reads the key of a provider.
func (e Environment) modelKey(reference string) func(context.Context) (chat.Secret, error) {
	return func(context.Context) (chat.Secret, error) {
		key, err := e.secret(reference)
		return chat.NewSecret(key), err
	}
}

// models returns a function that makes the model of an endpoint in the list of agents, and of WORKFLOW_ENGINE_LLM_CONFIG for nil. name is the
// name of the model in the list. All its models share the settings and the connections of WORKFLOW_ENGINE_LLM_CONFIG.
func (c *Config) models() (func(name string, at *agentfile.Endpoint) (chat.Model, error), error) {
	settings := openaichat.Config{NoAuth: true}
	if c.LLM != nil {
		settings = c.LLM.Config
	}
	provider, err := openaichat.New(settings)
	if err != nil {
		return nil, err
	}
	return func(name string, at *agentfile.Endpoint) (chat.Model, error) {
		if at == nil {
			return provider, nil
		}
		endpoint := openaichat.Endpoint{BaseURL: at.BaseURL, NoAuth: at.NoAuth}
		if at.KeyReference != "" {
			endpoint.KeyFrom = problem.Format("%s, of model %q in the list of agents", at.KeyReference, name)
			endpoint.APIKey = c.env.modelKey(at.KeyReference)
		}
		return provider.At(endpoint)
	}, nil
}
