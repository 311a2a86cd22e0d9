package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// setState compiles assignments, in the protocol's member order.
func (x *config) setState() {
	s := &SetStateConfig{}
	x.v.node.SetState = s
	assignments, at := x.json.Get("assignments"), x.at.member("assignments")
	raw, _ := x.raw["assignments"].(map[string]any)
	for _, key := range jsonvalue.Keys(raw) {
		n, place := assignments.Get(key), at.member(key)
		if program := n.Get("jq"); program != nil {
			s.Assignments = append(s.Assignments, Assignment{Key: key, JQ: x.program(program, place.member("jq"))})
			continue
		}
		literal := raw[key].(map[string]any)["literal"]
		s.Assignments = append(s.Assignments, Assignment{Key: key, Literal: literal})
		if objection, hint := x.c.literals.check(key, literal); objection != "" {
			x.c.warn(problem.StateAssignment, n.Get("literal"), place.member("literal"), x.v,
				fmt.Sprintf("%q is set to a value that does not fit: %s", clip(key), objection), hint)
		}
	}
}
