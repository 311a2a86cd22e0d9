package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// setStateNode evaluates its assignments over the state before any of them (spec: execution, 4.4).
func (m *Machine) setStateNode(t *token) *definition.Node {
	if end := m.recordedEnd(t); end != nil {
		if end.Reason != "" {
			m.failNode(t, end.Reason, end.Message, end.Code)
			return nil
		}
		return m.complete(t, completion{output: end.Output, delta: end.Output, checkpoint: true})
	}
	delta, env := make(map[string]any, len(t.node.SetState.Assignments)), m.env()
	for _, a := range t.node.SetState.Assignments {
		v := a.Literal
		if a.JQ != nil {
			var err error
			if v, err = a.JQ.EvalAt(t.view, env); err != nil {
				m.failErr(t, reasonSetState, err)
				return nil
			}
		}
		delta[a.Key] = v
	}
	return m.complete(t, completion{output: delta, delta: delta, checkpoint: true})
}
