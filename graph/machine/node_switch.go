package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// switchNode routes to the first case that matches, else to the default (spec: execution, 5.1).
func (m *Machine) switchNode(t *token) *definition.Node {
	if t.node.Loop != nil {
		return m.loopNode(t)
	}
	var target *definition.Node
	var err error
	end := m.recordedEnd(t)
	switch {
	case end == nil:
		target, err = m.route(t.node, t.view)
	case end.Reason != "":
		m.failNode(t, end.Reason, end.Message, end.Code)
		return nil
	}
	if err == nil {
		m.complete(t, completion{output: map[string]any{}, checkpoint: true})
		if !m.continues(t) {
			return nil
		}
		if end != nil {
			if target = m.recordedTarget(t); target == nil {
				target, err = m.route(t.node, t.view)
			}
		}
	}
	if err != nil {
		m.failErr(t, reasonSwitch, err)
		return nil
	}
	return target
}

func (m *Machine) route(at *definition.Node, view map[string]any) (*definition.Node, error) {
	c := at.Switch
	id, env := c.Default, m.env()
	for _, k := range c.Cases {
		v, err := k.When.EvalAt(view, env)
		if err != nil {
			return nil, err
		}
		if expr.Truthy(v) {
			id = k.Target
			break
		}
	}
	if id == "" {
		return nil, problem.New(problem.SwitchNoMatch, "no case of switch %q matches, and it has no default", at.ID)
	}
	n := m.prog.Node(id)
	if n == nil {
		return nil, problem.New(problem.UnknownNode, "switch %q leads to %q, which is not a node", at.ID, id)
	}
	return n, nil
}
