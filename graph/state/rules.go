package state

import "github.com/workflows-engine/workflows-engine/internal/jsonschema"

// Reducer says how a node's output is combined with a state key.
type Reducer string

// The reducers (spec: execution, 3.3). Any other name fails when its key is first written.
const (
	Overwrite Reducer = "overwrite"
	Append    Reducer = "append"
	Merge     Reducer = "merge"
)

// Rules are what a definition's state_schema says: the reducers of its direct properties and the schema to validate
// against (with direct reducer members stripped).
type Rules struct {
	// Reducers holds the properties that name one, also unknown names. A key without an entry is overwritten.
	Reducers map[string]Reducer
	Schema   *jsonschema.Schema
}

// NewRules reads a state_schema. The error is the schema's compile error, or names the reducer "custom", which the
// protocol refuses before a run (spec: execution, 1.3).
func NewRules(stateSchema map[string]any) (*Rules, error) { panic("not written yet") }

// Apply merges delta into state through the reducers, members in the protocol's member order, and returns the new
// state; neither argument is changed. The error names the key whose reducer is unknown; the result then holds the
// members merged before it.
func (r *Rules) Apply(state, delta map[string]any) (map[string]any, error) {
	panic("not written yet")
}

// Overlay sets every member of payload in state without reducers, as a resume payload is merged (spec: execution,
// 3.4), and returns the new state.
func Overlay(state, payload map[string]any) map[string]any { panic("not written yet") }

// Validate gives what is wrong with a state, nil if nothing is.
func (r *Rules) Validate(state map[string]any) []jsonschema.Violation { panic("not written yet") }
