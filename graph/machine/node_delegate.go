package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// agent_delegate (spec: execution, 12.3).

func (m *Machine) beginDelegate(t *token) *definition.Node {
	c, err := t.node.Delegate, t.node.TimeoutErr
	var input map[string]any
	switch {
	case c.AgentID == "":
		err = fmt.Errorf("agent_id of node %q is blank", t.node.ID)
	case err != nil:
	case m.recordedInput(t) != nil:
		input = m.recordedInput(t)
	default:
		input, err = c.InputMapping.EvalAt(t.view, m.clock)
	}
	if err != nil {
		m.failNode(t, reasonDelegate, err.Error(), codeOf(err))
		return nil
	}
	m.requestDelegate(t, 1, input, "", "")
	return nil
}

// requestDelegate writes ActivityRequested with everything that is needed to perform the attempt, for later attempts too.
// Visits of a node share the correlation id (spec: activities, 8); the effect's key is different.
func (m *Machine) requestDelegate(t *token, attempt int, input map[string]any, lastError, lastCode string) {
	c := t.node.Delegate
	w := &wait{
		Kind: WaitDelegate, Attempt: attempt, Input: input, LastError: lastError, LastCode: lastCode,
		Correlation: m.cfg.ExecutionID + ":delegate:" + t.node.ID,
	}
	p := m.fact(t)
	p.NodeType, p.AgentID, p.Protocol, p.Span = string(t.node.Type), c.AgentID, c.Protocol, t.span()
	p.Correlation, p.DelegateInput = w.Correlation, input
	if attempt > 1 {
		p.Attempt = attempt
	}
	m.request(t, w, p)
}
