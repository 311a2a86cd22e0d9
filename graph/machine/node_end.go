package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// endNode completes the run with the mapped state (spec: execution, 2.6).
func (m *Machine) endNode(t *token) {
	n := t.node
	if t.block != nil {
		m.failErr(t, reasonOrchestration, fmt.Errorf("branch %q reached end node %q instead of its join target", t.span().BranchName, n.ID))
		return
	}
	recorded := m.recordedEnd(t) != nil // the npm engine checks no output_schema
	m.command(t, history.CompleteNode, history.Payload{NodeID: n.ID, Output: map[string]any{}})
	result, err := n.End.OutputMapping.EvalAt(t.view, m.env())
	if err != nil {
		m.failErr(t, reasonOutputMapping, err)
		return
	}
	if s := n.End.OutputSchema; s != nil && !recorded {
		if vs := s.Validate(result); len(vs) > 0 {
			m.failNode(t, reasonOutputSchema, "the result breaks output_schema: "+jsonschema.Text(vs), string(problem.OutputSchemaViolation))
			return
		}
	}
	m.event(history.ExecutionCompleted, history.Payload{Result: history.Some(result), Partial: m.partials})
	m.result = result
	m.end(Completed)
}
