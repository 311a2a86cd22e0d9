package delegate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Handler is an agent of protocol sdk. Its first result is the agent's result: an object becomes the node's delta, any
// other value is wrapped as {"value": …}. It fails by returning an error: a *activities.Failure keeps its code and advice
// about retrying, any other error becomes DELEGATE_PROTOCOL_ERROR.
type Handler func(ctx context.Context, req activities.Request) (any, error)

// Call is the argument of a typed handler: the request, and the delegate input decoded into In.
type Call[In any] struct {
	activities.Request
	Input In
}

// SDK holds the Go functions that play agents of protocol sdk, by agent id, and is the Executor that calls them. The zero
// value is empty and ready; it must not be copied. It is safe for concurrent use.
type SDK struct {
	mu     sync.RWMutex
	agents map[string]Handler
}

// Register makes a handler known as an agent, whose id is trimmed. Registering an id again replaces its handler. A blank
// id and a nil handler are rejected with VALIDATION_ERROR.
func (s *SDK) Register(agentID string, h Handler) error {
	id := strings.TrimSpace(agentID)
	switch {
	case id == "":
		return problem.New(problem.ValidationError, "an agent must have an id").WithHint("use the agent_id of the node")
	case h == nil:
		return problem.New(problem.ValidationError, "the handler of agent %q is nil", id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agents == nil {
		s.agents = map[string]Handler{}
	}
	s.agents[id] = h
	return nil
}

// RegisterAgent registers a handler that works on Go types. The delegate input is decoded into In by the rules of
// encoding/json (fields that In does not have are ignored, other spellings of a field too), and Out is encoded by the same rules. An input that does not
// fit In fails the attempt with DELEGATE_PROTOCOL_ERROR without calling h, and without asking for another attempt.
func RegisterAgent[In, Out any](s *SDK, agentID string, h func(ctx context.Context, call Call[In]) (Out, error)) error {
	if h == nil {
		return s.Register(agentID, nil)
	}
	return s.Register(agentID, func(ctx context.Context, req activities.Request) (any, error) {
		call := Call[In]{Request: req}
		if err := jsonvalue.Into(req.Input, &call.Input); err != nil {
			failure := permanent(problem.DelegateProtocolError, "the input does not fit what agent %q takes", req.AgentID)
			failure.Err = err
			return nil, failure
		}
		return h(ctx, call)
	})
}

// Agents lists the ids of the registered agents, sorted.
func (s *SDK) Agents() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	ids := make([]string, 0, len(s.agents))
	for id := range s.agents {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Capabilities reports whether a handler is registered for the agent.
func (s *SDK) Capabilities(n activities.Node) (can activities.Capabilities) {
	can.Targets = s.Agents
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n.Protocol != "sdk" || s.agents[strings.TrimSpace(n.AgentID)] == nil {
		can.Missing = activities.MissingTarget
	}
	return can
}

// Execute calls the agent's handler.
func (s *SDK) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if req.Protocol != "sdk" {
		return activities.Result{}, activities.Fail(problem.DelegateProtocolUnsupported, "unsupported delegate protocol %q: this executor supports sdk", req.Protocol)
	}
	s.mu.RLock()
	h := s.agents[strings.TrimSpace(req.AgentID)]
	s.mu.RUnlock()
	if h == nil {
		return activities.Result{}, activities.Fail(problem.DelegateAgentNotFound, "no handler is registered for agent %q", req.AgentID)
	}
	output, err := h(ctx, req)
	if err != nil {
		if _, coded := errors.AsType[*activities.Failure](err); coded || ctx.Err() != nil {
			return activities.Result{}, err
		}
		failure := activities.Fail(problem.DelegateProtocolError, "agent %q", req.AgentID)
		failure.Err = err
		return activities.Result{}, failure
	}
	return activities.Result{Output: output, ExternalTaskID: TaskID("sdk", req.CorrelationID)}, nil
}
