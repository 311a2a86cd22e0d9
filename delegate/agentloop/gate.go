package agentloop

import (
	"errors"
	"path"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The decisions of gates and hooks.
const (
	doAllow   = "allow"
	doAsk     = "ask"
	doDeny    = "deny"
	doReplace = "replace"
	doStop    = "stop"
)

// gate returns the decision for a call: of the first rule that matches, else of the tool's own gate, else allow.
func (a *agent) gate(c *call) (do, reason string, timeoutMs int) {
	for i := range a.cfg.Gates {
		g := &a.cfg.Gates[i]
		if g.Unless == "read_only" && c.tool.ReadOnly {
			continue
		}
		if meant, err := matches(g.Tools, c.name); err != nil {
			return doAsk, "", g.TimeoutMs // a typing error neither skips a rule nor allows a call
		} else if !meant {
			continue
		}
		if g.When != "" {
			holds, err := a.holds(g.When, c)
			if err != nil {
				return doAsk, "", g.TimeoutMs
			}
			if !holds {
				continue
			}
		}
		return g.Do, g.Reason, g.TimeoutMs
	}
	return orElse(c.tool.Gate, doAllow), "", 0
}

// matches reports whether a name matches one of the patterns. The error is for an invalid pattern.
func matches(patterns []string, name string) (bool, error) {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// approval names a tool that a person may approve permanently, by the path of agents that leads to it.
func (a *agent) approval(tool string) string {
	for ; a != nil; a = a.over {
		tool = a.cfg.Name + "/" + tool
	}
	return tool
}

// holds evaluates the program of a rule. It has no clock, so that a replay gets the same result.
func (a *agent) holds(program string, c *call) (bool, error) {
	p, err := expr.Compile(program)
	if err != nil {
		return false, err
	}
	v, err := p.EvalAt(map[string]any{"tool": c.name, "arguments": c.args, "agent": a.cfg.Name, "turn": float64(a.turn)}, expr.Env{})
	return expr.Truthy(v), err
}

// digest binds an approval to a call.
func (c *call) digest() string {
	return jsonvalue.Hash(map[string]any{"key": c.key, "tool": c.name, "arguments": c.args})
}

// decided applies a hook's decision about a call, or asks a person about a call that may have been started.
func (a *agent) decided(c *call, e *agentsteps.Decided) error {
	reason := e.Reason
	if c.state == running && c.child == nil && e.Decision == doAsk && reason == "crash" {
		c.state, c.begun = gated, true
		return nil
	}
	if c.state != deciding {
		return errors.New("no decision is awaited")
	}
	switch e.Decision {
	case doAllow:
		c.state = c.then
	case doAsk:
		c.state, c.why = gated, reason
	case doDeny:
		c.state = c.then
		c.refuse(ToolDenied, byEngine, "%s", orElse(reason, "a hook of the operator denies this call"))
	case doReplace:
		args := e.Arguments
		if args == nil {
			return errors.New("replace needs arguments")
		}
		if jsonvalue.Size(args, maxArguments) > maxArguments {
			return errors.New("the arguments of the hook are too large")
		}
		if wrong := a.violations(c.tool, args); wrong != "" {
			return errors.New("the arguments of the hook break the tool's parameters: " + wrong)
		}
		c.args, c.state = args, c.then
		a.gateAgain(c)
		c.note = orElse(c.note, "The operator changed the arguments to "+problem.Excerpt(string(jsonvalue.Canonical(args)), 2000)+".")
	default:
		return errors.New("the decision of a hook must be allow, ask, deny or replace")
	}
	return nil
}

// gateAgain evaluates the gates for arguments that a hook has replaced: gates that allowed the first arguments may ask about the new ones or
// deny them, never the other way round.
func (a *agent) gateAgain(c *call) {
	switch do, reason, timeout := a.gate(c); {
	case do == doDeny:
		c.deny(reason)
	case do == doAsk && !a.m.remembered[a.approval(c.name)]:
		c.state, c.timeoutMs = gated, timeout
	}
}

// deny rejects a call that a rule denies.
func (c *call) deny(reason string) {
	c.refuse(ToolDenied, byEngine, "%s", orElse(reason, "a rule of the operator denies this call"))
}

// turnDecided applies a hook's decision after a turn.
func (a *agent) turnDecided(e *agentsteps.Decided) error {
	switch e.Decision {
	case doAllow:
		a.phase = ready
	case doStop:
		a.phase = ready
		a.failWith(stopHook, problem.AgentStopped, true, orElse(e.Reason, "a hook stopped the agent"))
	default:
		return errors.New("the decision of a hook after a turn must be allow or stop")
	}
	return nil
}
