package definition

import (
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Reducer combines a node's output with a state key.
type Reducer string

// The reducers (spec: execution, 3.3). Any other name fails when its key is first written.
const (
	ReducerOverwrite Reducer = "overwrite"
	ReducerAppend    Reducer = "append"
	ReducerMerge     Reducer = "merge"

	// custom is a name of the protocol that is rejected before a run.
	custom Reducer = "custom"
)

// Known reports whether the reducer is one that can be applied.
func (r Reducer) Known() bool {
	return r == ReducerOverwrite || r == ReducerAppend || r == ReducerMerge
}

// Apply merges delta into state through the reducers, members in the protocol's member order, and returns the new
// state; neither argument is changed. The new state shares parts with both: treat all three as immutable. The error
// is a *problem.Error with code ENGINE_FAILURE that names the key whose reducer is unknown; the result then holds the
// members merged before it.
func (r *StateRules) Apply(state, delta map[string]any) (map[string]any, error) {
	next := make(map[string]any, len(state)+len(delta))
	maps.Copy(next, state)
	for _, key := range r.order(delta) {
		value := delta[key]
		reducer, named := r.Reducers[key]
		switch {
		case !named || reducer == ReducerOverwrite:
			next[key] = value
		case reducer == ReducerAppend:
			next[key] = appendTo(next[key], value)
		case reducer == ReducerMerge:
			next[key] = mergeInto(next[key], value)
		default:
			return next, problem.New(problem.EngineFailure, "the reducer %q of the state key %q is unknown", reducer, key).
				WithPlace(problem.Place{Pointer: "/state_schema/properties/" + jsonvalue.EscapePointer(key) + "/reducer"}).
				WithHint("use overwrite, append or merge in state_schema")
		}
	}
	return next, nil
}

// order returns the members of a delta in the protocol's order. Reducers of different keys do not see each other, so
// the order matters only if one of them is going to fail.
func (r *StateRules) order(delta map[string]any) []string {
	for key := range delta {
		if reducer, named := r.Reducers[key]; named && !reducer.Known() {
			return jsonvalue.Keys(delta)
		}
	}
	return slices.Collect(maps.Keys(delta))
}

// appendTo returns a new list: a value that is not a list counts as empty, and a list is appended element by element.
func appendTo(previous, value any) []any {
	list, _ := previous.([]any)
	added, ok := value.([]any)
	if !ok {
		added = []any{value}
	}
	next := make([]any, 0, len(list)+len(added))
	return append(append(next, list...), added...)
}

// mergeInto merges deeply: objects member by member, everything else (lists and null too) replaced. A value that is not an object
// counts as an empty one, on both sides.
func mergeInto(previous, value any) map[string]any {
	old, _ := previous.(map[string]any)
	chunk, _ := value.(map[string]any)
	return mergeObjects(old, chunk)
}

func mergeObjects(old, chunk map[string]any) map[string]any {
	next := make(map[string]any, len(old)+len(chunk))
	maps.Copy(next, old)
	for key, value := range chunk {
		inner, isObject := value.(map[string]any)
		previous, wasObject := old[key].(map[string]any)
		if isObject && wasObject {
			next[key] = mergeObjects(previous, inner)
		} else {
			next[key] = value
		}
	}
	return next
}

// OverlayState sets every member of payload in state without reducers, as a resume payload is merged (spec: execution,
// 3.4), and returns the new state; neither argument is changed.
func OverlayState(state, payload map[string]any) map[string]any {
	next := make(map[string]any, len(state)+len(payload))
	maps.Copy(next, state)
	maps.Copy(next, payload)
	return next
}
