package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Hooks are decisions of the program that runs the agents. A decision is recorded as a step before it takes effect, and is
// not asked again after a restart. A hook is asked twice only where the process died before its decision was recorded. Hooks hold for all
// agents and may be called at the same time.
//
// Hooks only tighten: BeforeTool is asked about calls that the gates allow or put to a person, never about a call that they deny, and what a
// person has to approve stays so whatever the hook says.
type Hooks struct {
	// BeforeTool decides about a call: Allow, Ask, Deny or Replace. The gates are asked again about replaced arguments. An error, a panic,
	// a decision that cannot be used and one that takes longer than ToolTimeoutMs put the call to a person. Nil allows.
	BeforeTool func(ctx context.Context, c PlannedCall) (Decision, error)
	// AfterTurn decides, once all calls of a turn have their results, whether the agent goes on: Allow or Stop, which ends it with
	// AGENT_STOPPED. An error, a panic and the like stop it too. Nil allows.
	AfterTurn func(ctx context.Context, t Turn) (Decision, error)
}

// The decisions of a hook besides Allow, Ask and Deny.
const (
	// Replace makes a call with the arguments of the decision. The model reads that they were changed.
	Replace = "replace"
	// Stop ends the agent after a turn.
	Stop = "stop"
)

// Decision is the decision of a hook. Do is Allow, Ask, Deny, Replace or Stop; "" is Allow.
type Decision struct {
	Do string
	// Reason is shown to who is asked, to the model whose call is denied, and in the failure of an agent that is stopped.
	Reason string
	// Arguments are those of Replace. They must fit the parameters of the tool.
	Arguments map[string]any
}

// PlannedCall is a call that is about to be made.
type PlannedCall struct {
	// ExecutionID and NodeID identify the run and the node.
	ExecutionID, NodeID string
	Agent, Tool         string
	// Key is that of Call. Turn is the agent's, from 1.
	Key  string
	Turn int
	// Arguments fit the parameters of the tool. They are the hook's own copy.
	Arguments map[string]any
}

// Turn is a turn that has ended.
type Turn struct {
	ExecutionID, NodeID string
	Agent               string
	// Key identifies the turn among those of all runs. Turn counts from 1.
	Key  string
	Turn int
	// Totals are those of the root agent with all below it: turns, tool_calls, prompt_tokens, cost_micros and so on.
	Totals map[string]any
}

// decide asks a hook. It returns nil if the attempt ends meanwhile.
func (w *attempt) decide(ctx context.Context, e *agentloop.Decide, totals map[string]any) agentloop.Input {
	limited, stop := context.WithTimeoutCause(ctx, e.Timeout, errHook)
	defer stop()
	d, err := guarded(limited, w, "the hook", func() (Decision, error) {
		hooks, at := w.agents.config.Hooks, turnOf(e.Key)
		switch {
		case e.Tool != "" && hooks.BeforeTool != nil:
			return hooks.BeforeTool(limited, PlannedCall{
				ExecutionID: w.req.ExecutionID, NodeID: w.req.NodeID, Agent: e.Agent, Tool: e.Tool, Key: w.key(e.Key), Turn: at, Arguments: jsonvalue.CloneMap(e.Arguments),
			})
		case e.Tool == "" && hooks.AfterTurn != nil:
			return hooks.AfterTurn(limited, Turn{ExecutionID: w.req.ExecutionID, NodeID: w.req.NodeID, Agent: e.Agent, Key: w.key(e.Key), Turn: at, Totals: totals})
		}
		return Decision{}, fmt.Errorf("this process does not have the hook with which the agent began")
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && context.Cause(limited) == errHook:
		return unusable(e, fmt.Sprintf("it has not answered within %d ms", e.Timeout.Milliseconds()))
	case err != nil:
		return unusable(e, err.Error())
	}
	if d.Do == "" {
		d.Do = Allow
	}
	return agentloop.Decided{Key: e.Key, Decision: d.Do, Reason: d.Reason, Arguments: d.Arguments}
}

// unusable is the decision in place of one that a hook did not make: a person decides about a call, and the agent ends after a turn.
func unusable(e *agentloop.Decide, why string) agentloop.Decided {
	out := agentloop.Decided{Key: e.Key, Decision: Ask, Reason: "the hook before tools did not decide: " + why}
	if e.Tool == "" {
		out.Decision, out.Reason = Stop, "the hook after turns did not decide: "+why
	}
	return out
}

// turnOf returns the turn that a key of a step is of: 3 for "t3", "t3.c2" and "t1.c1/t3".
func turnOf(key string) int {
	last := key[strings.LastIndex(key, "/")+1:]
	digits, _, _ := strings.Cut(strings.TrimPrefix(last, "t"), ".")
	n, _ := strconv.Atoi(digits) // 0 for a key that is of no turn
	return n
}
