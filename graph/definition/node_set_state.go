package definition

import (
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// SetStateConfig is the config of a set_state.
type SetStateConfig struct {
	// Assignments in the protocol's member order.
	Assignments []Assignment
}

// Assignment sets one top-level key, by a program or to a literal.
type Assignment struct {
	Key     string
	JQ      *expr.Program // nil for a literal
	Literal any
}

// setStateType is a node that computes values of the state.
func setStateType() NodeType {
	assignment := objectOf("an assignment",
		member{"jq", filled("the jq program of an assignment").called("jq").
			about("A jq program. Its input is the state itself, so .name is the state's property name. " +
				"One output is the value, several outputs are an array of them, no output is null."), false},
		member{"literal", anything().about("Any value, null included, taken unchanged."), false},
	).or(`write {"literal": <value>} or {"jq": "<program>"}`).
		not(map[string]string{"value": `write "literal"`, "expr": `write "jq"`, "expression": `write "jq"`}).
		ruled(exactlyOne{"jq", "literal", "an assignment must have jq or literal", "an assignment must have either jq or literal, not both",
			`write {"literal": <value>} or {"jq": "<program>"}`})
	return NodeType{
		Name: SetState, Output: OutputAssigned, Instant: true, Stub: StubNone, Figure: FigureBox,
		Example:     `{"id": "count", "type": "set_state", "config": {"assignments": {"attempts": {"jq": "(.attempts // 0) + 1"}, "phase": {"literal": "review"}}}}`,
		description: "Computes values and combines them with the state.",
		config: objectOf("", member{"assignments", (&shape{noun: "assignments", kind: jsonvalue.Object, notEmpty: true, values: assignment}).
			about("A value for each key of the state: {\"jq\": PROGRAM} or {\"literal\": VALUE}. Names are plain keys: a.b is the key \"a.b\". All programs see the state before this node.",
				`{"attempts": {"jq": ".attempts + 1"}, "phase": {"literal": "review"}}`), true}).
			about("The keys to set."),
		compile: (*config).setState,
	}
}

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
		s.Assignments = append(s.Assignments, Assignment{Key: key, Literal: raw[key].(map[string]any)["literal"]})
	}
}
