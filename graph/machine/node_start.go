package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// startNode completes at once. Inside a branch a start node writes no state (spec: execution, 2.6).
func (m *Machine) startNode(t *token) *definition.Node {
	if t.block != nil {
		m.command(t, history.CompleteNode, history.Payload{NodeID: t.node.ID, Output: map[string]any{}})
		return t.node.Next
	}
	return m.complete(t, completion{output: map[string]any{}, checkpoint: m.resumed})
}
