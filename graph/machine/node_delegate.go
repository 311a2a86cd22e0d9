package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// agent_delegate (spec: execution, 12.3).

func (m *Machine) beginDelegate(t *token) *definition.Node {
	c := t.node.Delegate
	fail := func(err error) {
		m.failToken(t, &failure{Reason: reasonDelegate, NodeID: t.node.ID, Message: err.Error(), Code: codeOf(err)})
	}
	switch {
	case c.AgentID == "":
		fail(fmt.Errorf("agent_id of node %q is blank", t.node.ID))
		return nil
	case t.node.TimeoutErr != nil:
		fail(t.node.TimeoutErr)
		return nil
	}
	input, err := c.InputMapping.EvalAt(t.view, m.clock)
	if err != nil {
		fail(err)
		return nil
	}
	m.requestDelegate(t, 1, input, "", "")
	return nil
}

// requestDelegate writes ActivityRequested with everything that whoever performs it needs, also for later attempts.
// The correlation id does not tell visits apart (spec: activities, 8); the effect's key does.
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
