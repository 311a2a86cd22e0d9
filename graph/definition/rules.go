package definition

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// StateRules are the rules of a state_schema: the reducers of its direct properties and the schema to validate
// against (with direct reducer members stripped).
type StateRules struct {
	// Reducers holds the properties that name one, also unknown names. A key without an entry is overwritten.
	Reducers map[string]Reducer
	Schema   *jsonschema.Schema
}

// NewStateRules reads a state_schema. The error is the schema's compile error (*jsonschema.CompileError), or names the
// reducer "custom", which the protocol rejects before a run (spec: execution, 1.3); that one is a *problem.Error with
// code VALIDATION_ERROR whose pointer is relative to the state_schema.
func NewStateRules(stateSchema map[string]any) (*StateRules, error) {
	reducers := Reducers(stateSchema)
	for _, key := range slices.Sorted(maps.Keys(reducers)) {
		if reducers[key] == custom {
			return nil, refuseCustom(key)
		}
	}
	schema, err := jsonschema.Compile(stripReducers(stateSchema))
	if err != nil {
		return nil, err
	}
	return &StateRules{Reducers: reducers, Schema: schema}, nil
}

func refuseCustom(key string) error {
	return problem.New(problem.ValidationError, "the reducer of %q is custom, which no engine of this protocol runs", key).
		WithPlace(problem.Place{Pointer: "/properties/" + jsonvalue.EscapePointer(key) + "/reducer"}).
		WithHint("use overwrite, append or merge")
}

// Reducers reads the reducers of a state_schema's direct properties as they are written (spec: definition, 2.2):
// unknown names are kept, null counts as absent, and a value of another type becomes its JSON text, which is not a known
// name. The map is never nil.
func Reducers(stateSchema map[string]any) map[string]Reducer {
	reducers := map[string]Reducer{}
	properties, _ := stateSchema["properties"].(map[string]any)
	for key, property := range properties {
		p, ok := property.(map[string]any)
		if !ok {
			continue
		}
		switch r := p["reducer"].(type) {
		case nil:
		case string:
			reducers[key] = Reducer(r)
		default:
			reducers[key] = Reducer(jsonvalue.Canonical(r))
		}
	}
	return reducers
}

// stripReducers returns the schema without the reducer members of its direct properties; nested ones are unknown
// keywords that validation ignores.
func stripReducers(stateSchema map[string]any) map[string]any {
	properties, ok := stateSchema["properties"].(map[string]any)
	if !ok {
		return stateSchema
	}
	stripped := make(map[string]any, len(properties))
	for key, property := range properties {
		p, ok := property.(map[string]any)
		if _, has := p["reducer"]; !ok || !has {
			stripped[key] = property
			continue
		}
		p = maps.Clone(p)
		delete(p, "reducer")
		stripped[key] = p
	}
	out := maps.Clone(stateSchema)
	out["properties"] = stripped
	return out
}

// Validate returns the violations of a state, nil if it is valid.
func (r *StateRules) Validate(state map[string]any) []jsonschema.Violation {
	if state == nil {
		state = map[string]any{}
	}
	return r.Schema.Validate(state)
}
