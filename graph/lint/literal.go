package lint

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// demoOutput is the field of metadata with the output of an activity in a demo and in tests.
const demoOutput = "demo_output"

// literals warns of values written in the definition that break the state_schema: literals of set_state nodes, and demo outputs.
func (l *linter) literals() {
	if l.program.State == nil {
		return // the state_schema has errors
	}
	check := definition.NewLiteralCheck(l.stateSchema(), l.program.State)
	for _, n := range l.program.Nodes {
		switch {
		case n.SetState != nil:
			for i := range n.SetState.Assignments {
				a := &n.SetState.Assignments[i]
				if a.JQ != nil {
					continue
				}
				if objection, hint := check.Objection(a.Key, a.Literal); objection != "" {
					l.warn(problem.StateAssignment, nodePointer(n)+"/config/assignments/"+jsonvalue.EscapePointer(a.Key)+"/literal", n,
						fmt.Sprintf("%q is set to a value that does not fit: %s", clip(a.Key), objection), hint)
				}
			}
		case n.Activity != nil:
			l.demo(n, check)
		}
	}
}

// demo warns of a demo_output that would fail the node: one that breaks the output_schema, or the state_schema where it becomes part of
// the state.
func (l *linter) demo(n *definition.Node, check *definition.LiteralCheck) {
	output, ok := n.Metadata[demoOutput].(map[string]any)
	if !ok {
		return
	}
	at := nodePointer(n) + "/metadata/" + demoOutput
	if s := n.Activity.OutputSchema; s != nil {
		if vs := s.Validate(output); len(vs) > 0 {
			l.warn(problem.OutputSchemaViolation, at+vs[0].InstancePath, n, "demo_output breaks output_schema: it "+vs[0].Message, vs[0].Suggestion(output))
			return
		}
	}
	if n.Map != nil {
		return // outputs of items do not become part of the state
	}
	for _, key := range jsonvalue.Keys(output) {
		if objection, hint := check.Objection(key, output[key]); objection != "" {
			l.warn(problem.StateInvalid, at+"/"+jsonvalue.EscapePointer(key), n, fmt.Sprintf("%q of demo_output does not fit: %s", clip(key), objection), hint)
		}
	}
}
