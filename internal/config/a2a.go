package config

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The members of WORKFLOW_ENGINE_A2A_CONFIG besides those of the key (spec: cli-and-config, 11). All but the first three
// are this engine's.
const (
	a2aBaseURL         = "baseUrl"
	a2aPollInterval    = "pollIntervalMs"
	a2aPollTimeout     = "pollTimeoutMs"
	a2aTransport       = "transport"
	a2aNoAuth          = "noAuth"
	a2aMaxPollInterval = "maxPollIntervalMs"
	a2aRequestTimeout  = "requestTimeoutMs"
	a2aMaxAnswer       = "maxAnswerBytes"
	a2aAgents          = "agents"
)

var a2aMembers = []string{
	a2aBaseURL, keyEnvMember, keyRefMember, a2aNoAuth, a2aTransport, a2aPollInterval, a2aMaxPollInterval, a2aPollTimeout,
	a2aRequestTimeout, a2aMaxAnswer,
}

// The values of member transport: the HTTP task form, the A2A protocol, or whichever the agent's card tells.
const (
	transportHTTPTasks = "http-tasks"
	transportJSONRPC   = "jsonrpc"
	transportAuto      = "auto"
)

// A2ASettings are the endpoint of one agent, or of all that have none of their own.
type A2ASettings struct {
	// Transport is http-tasks (the default), jsonrpc or auto.
	Transport string
	// A2AConfig has a blank BaseURL if only agents with endpoints of their own are configured.
	delegate.A2AConfig
	// Agents are endpoints by agent id.
	Agents map[string]A2ASettings
}

// loadA2A reads the endpoints for delegates of protocol a2a, and resolves each key once, so that a missing secret is
// found at start and not at the first delegation. The values themselves are not kept: they are read again at each call.
func loadA2A(c *Config, env Environment) error {
	m, err := env.members(envA2A, append([]string{a2aAgents}, a2aMembers...)...)
	if err != nil || m.values == nil {
		return err
	}
	settings := A2ASettings{}
	agents, err := m.objects(a2aAgents)
	if err != nil {
		return err
	}
	if _, alone := m.values[a2aBaseURL]; alone || len(agents) == 0 {
		if settings, err = m.a2a(env); err != nil {
			return err
		}
	} else if len(m.values) > 1 {
		return problem.New(problem.UsageError, "%s has no %s, so that nothing but %s may stand there", envA2A, a2aBaseURL, a2aAgents)
	}
	for _, id := range jsonvalue.Keys(agents) {
		if strings.TrimSpace(id) == "" {
			return problem.New(problem.UsageError, "%s: an agent in %q has a blank id", envA2A, a2aAgents)
		}
		agent, err := members{fmt.Sprintf("%s, agent %q", envA2A, id), agents[id].(map[string]any)}.only(a2aMembers...)
		if err != nil {
			return err
		}
		own, err := agent.a2a(env)
		if err != nil {
			return err
		}
		if settings.Agents == nil {
			settings.Agents = map[string]A2ASettings{}
		}
		settings.Agents[strings.TrimSpace(id)] = own
	}
	c.A2A = &settings
	return nil
}

// objects gives a member whose values are objects, nil if it is absent.
func (m members) objects(name string) (map[string]any, error) {
	value, present := m.values[name]
	if !present {
		return nil, nil
	}
	objects, ok := value.(map[string]any)
	for _, o := range objects {
		if _, isObject := o.(map[string]any); !isObject {
			ok = false
		}
	}
	if !ok {
		return nil, problem.New(problem.UsageError, "%s: member %q must be an object of objects", m.variable, name)
	}
	return objects, nil
}

// a2a reads one endpoint.
func (m members) a2a(env Environment) (s A2ASettings, err error) {
	if s.BaseURL, err = m.text(a2aBaseURL); err != nil {
		return s, err
	}
	if s.Transport, err = m.text(a2aTransport); err != nil {
		return s, err
	}
	if s.Transport == "" {
		s.Transport = transportHTTPTasks
	}
	if known := []string{transportHTTPTasks, transportJSONRPC, transportAuto}; !slices.Contains(known, s.Transport) {
		return s, problem.New(problem.UsageError, "%s: %s %q is not known", m.variable, a2aTransport, s.Transport).
			WithHint("Write %s.", strings.Join(known, ", "))
	}
	if err := m.a2aKey(env, &s); err != nil {
		return s, err
	}
	if s.PollInterval, err = m.milliseconds(a2aPollInterval); err != nil {
		return s, err
	}
	if s.MaxPollInterval, err = m.milliseconds(a2aMaxPollInterval); err != nil {
		return s, err
	}
	if s.PollTimeout, err = m.milliseconds(a2aPollTimeout); err != nil {
		return s, err
	}
	if s.RequestTimeout, err = m.milliseconds(a2aRequestTimeout); err != nil {
		return s, err
	}
	if s.MaxAnswerBytes, err = m.bytes(a2aMaxAnswer); err != nil {
		return s, err
	}
	if _, err := s.tasks(); err != nil {
		return s, problem.New(problem.UsageError, "%s", m.variable).WithCause(err)
	}
	return s, nil
}

func (m members) a2aKey(env Environment, s *A2ASettings) error {
	reference, err := m.keyReference()
	if err != nil {
		return err
	}
	if s.NoAuth, err = m.truth(a2aNoAuth); err != nil {
		return err
	}
	switch {
	case s.NoAuth && reference != "":
		return problem.New(problem.UsageError, "%s names a key and has %s", m.variable, a2aNoAuth)
	case s.NoAuth:
		return nil
	case reference == "":
		return m.oneKey()
	}
	if err := m.secret(env, reference); err != nil {
		return err
	}
	s.APIKey = func(context.Context) (string, error) { return env.secret(reference) }
	return nil
}

// tasks builds the executor of one endpoint.
func (s A2ASettings) tasks() (delegate.Tasks, error) {
	switch s.Transport {
	case transportJSONRPC:
		return delegate.NewA2A(s.A2AConfig)
	case transportAuto:
		return delegate.NewA2ADetect(s.A2AConfig)
	}
	return delegate.NewA2AHTTP(s.A2AConfig)
}

// executor builds the executor of all endpoints.
func (s A2ASettings) executor() (delegate.Tasks, error) {
	agents := &delegate.A2AAgents{Agents: map[string]delegate.Tasks{}}
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
