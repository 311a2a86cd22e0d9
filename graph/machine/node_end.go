package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// endNode completes the run with the mapped state (spec: execution, 2.6).
func (m *Machine) endNode(t *token) {
	n := t.node
	if t.block != nil {
		m.failToken(t, &failure{
			Reason: reasonOrchestration, NodeID: n.ID,
			Message: fmt.Sprintf("branch %q ran into end node %q instead of its join target", t.span().BranchName, n.ID),
		})
		return
	}
	m.command(t, history.CompleteNode, history.Payload{NodeID: n.ID, Output: map[string]any{}})
	result, err := n.End.OutputMapping.EvalAt(t.view, m.clock)
	if err != nil {
		m.failToken(t, &failure{Reason: reasonOutputMapping, NodeID: n.ID, Message: err.Error(), Code: codeOf(err)})
		return
	}
	if s := n.End.OutputSchema; s != nil && !m.foreign {
		if text := schemaText(s, result); text != "" {
			m.failToken(t, &failure{
				Reason: reasonOutputSchema, NodeID: n.ID, Code: string(problem.OutputSchemaViolation),
				Message: "the result breaks output_schema: " + text,
			})
			return
		}
	}
	m.event(history.ExecutionCompleted, history.Payload{Result: history.Some(result)})
	m.result = result
	m.end(Completed)
}
