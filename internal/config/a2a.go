package config

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// The values of transport: the A2A protocol and the HTTP task form.
const (
	transportJSONRPC   = "jsonrpc"
	transportHTTPTasks = "http-tasks"
)

// A2ASettings configures the endpoint of one agent, or the default endpoint.
type A2ASettings struct {
	// Transport is jsonrpc (the default) or http-tasks.
	Transport string
	// A2AConfig has a blank BaseURL if only agents with their own endpoints are configured.
	delegate.A2AConfig
	// Agents holds endpoints by agent id.
	Agents map[string]A2ASettings
}

// loadA2A reads the endpoints for delegates of protocol a2a (spec: cli-and-config, 11; the fields from noAuth on are
// additions).
func loadA2A(c *Config, _ setting, env Environment) error {
	m, err := env.members(envname.A2A)
	if err != nil || m.Object == nil {
		return err
	}
	settings := A2ASettings{}
	agents := m.Get("agents")
	if m.Get("baseUrl").Present() || len(agents.Map()) == 0 {
		settings = readA2A(m, m.Object, env)
	} else if len(m.Map()) > 1 {
		return problem.New(problem.UsageError, "%s: without baseUrl only agents is allowed", envname.A2A)
	}
	if agents.Map() != nil {
		settings.Agents = map[string]A2ASettings{}
		for id, v := range agents.Members() {
			if strings.TrimSpace(id) == "" {
				agents.Fail("minLength", "an agent's id must not be blank")
			}
			if agent := v.Object(); agent != nil {
				settings.Agents[strings.TrimSpace(id)] = readA2A(m, agent, env)
			}
		}
	}
	if err := m.err(); err != nil {
		return err
	}
	c.A2A = &settings
	return nil
}

// readA2A reads one endpoint.
func readA2A(m members, o *jsonobject.Object, env Environment) A2ASettings {
	before := m.mistakes()
	reference, open := readKey(o, env), o.Get("noAuth").Bool()
	authorized := m.mistakes() == before
	before = m.mistakes()
	s := A2ASettings{Transport: transportJSONRPC, A2AConfig: delegate.A2AConfig{
		BaseURL: text(o.Get("baseUrl")), NoAuth: open,
		PollInterval: milliseconds(o.Get("pollIntervalMs")), MaxPollInterval: milliseconds(o.Get("maxPollIntervalMs")),
		PollTimeout: milliseconds(o.Get("pollTimeoutMs")), RequestTimeout: milliseconds(o.Get("requestTimeoutMs")),
		MaxAnswerBytes: bytes(o.Get("maxAnswerBytes")),
	}}
	if transport := o.Get("transport"); text(transport) != "" {
		s.Transport = transport.With(text(transport)).Choice(transportJSONRPC, transportHTTPTasks)
	}
	o.Close() // a misspelt field is reported without what is then missing
	readable := m.mistakes() == before
	if readable {
		checked := s
		checked.NoAuth = true
		if _, err := checked.tasks(); err != nil {
			o.Fail("profile", "%v", err)
		}
	}
	switch {
	case s.NoAuth && reference != "":
		o.Fail("oneOf", "a key and noAuth cannot be given together")
	case reference != "":
		env.notePlain(envname.A2A, s.BaseURL)
		s.APIKey = func(context.Context) (string, error) { return env.secret(reference) }
	case authorized && !s.NoAuth && readable:
		o.Fail("oneOf", "%s", oneKey)
	}
	return s
}

// tasks builds the executor of one endpoint.
func (s A2ASettings) tasks() (activities.Executor, error) {
	if s.Transport == transportHTTPTasks {
		return delegate.NewA2AHTTP(s.A2AConfig)
	}
	return delegate.NewA2A(s.A2AConfig)
}

// executor builds the executor of all endpoints.
func (s A2ASettings) executor() (activities.Executor, error) {
	agents := &delegate.A2AAgents{Agents: map[string]activities.Executor{}}
	for id, own := range s.Agents {
		tasks, err := own.tasks()
		if err != nil {
			return nil, err
		}
		agents.Agents[id] = tasks
	}
	if s.BaseURL == "" {
		return agents, nil
	}
	tasks, err := s.tasks()
	if err != nil || len(s.Agents) == 0 {
		return tasks, err
	}
	agents.Default = tasks
	return agents, nil
}
