package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
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
		input, err = c.InputMapping.EvalAt(t.nodeState(), m.env())
	}
	if err != nil {
		return m.failErr(t, reasonDelegate, err)
	}
	m.firstAttempt(t, m.delegateWait(t, 1, input))
	return nil
}

// delegateWait returns the wait for an attempt. Visits of a node share the correlation id (spec: activities, 8), not the effect's key.
func (m *Machine) delegateWait(t *token, attempt int, input map[string]any) *wait {
	return &wait{Kind: WaitDelegate, Attempt: attempt, Input: input, Correlation: m.cfg.ExecutionID + ":delegate:" + t.node.ID}
}

// delegateRequest returns the payload of a delegate's ActivityRequested: everything needed to perform this attempt and later ones.
func (m *Machine) delegateRequest(t *token, w *wait) history.Payload {
	c, p := t.node.Delegate, m.fact(t)
	p.NodeType, p.AgentID, p.Protocol = string(t.node.Type), c.AgentID, c.Protocol
	t.locate(&p)
	p.Correlation, p.DelegateInput = w.Correlation, w.Input
	if w.Attempt > 1 {
		p.Attempt = w.Attempt
	}
	return p
}
