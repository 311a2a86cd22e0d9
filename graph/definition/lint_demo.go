package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// lintDemo warns of a demo_output that would fail the node: one that breaks the output_schema, or the state_schema where it becomes
// part of the state.
func (c *compiler) lintDemo(v *vertex) {
	n := v.json.Get("metadata").Get(demoOutput)
	output, ok := v.node.Metadata[demoOutput].(map[string]any)
	if !ok {
		return
	}
	at := v.at.member("metadata").member(demoOutput)
	if s := v.node.Activity.OutputSchema; s != nil {
		if vs := s.Validate(output); len(vs) > 0 {
			place := n
			if found := n.Lookup(vs[0].InstancePath); found != nil {
				place = found
			}
			f := finding(problem.OutputSchemaViolation, problem.SeverityWarning, place, at.pointer()+vs[0].InstancePath, v,
				"demo_output breaks output_schema: it "+vs[0].Message, nearestValue(vs[0], output))
			c.findings = append(c.findings, f)
			return
		}
	}
	if v.node.Map != nil {
		return // outputs of items do not become part of the state
	}
	for _, key := range jsonvalue.Keys(output) {
		if objection, hint := c.literals.check(key, output[key]); objection != "" {
			c.warn(problem.StateInvalid, n.Get(key), at.member(key), v, fmt.Sprintf("%q of demo_output does not fit: %s", clip(key), objection), hint)
		}
	}
}
