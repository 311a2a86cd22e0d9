// Package state holds what happens to a workflow's state: the reducers that merge a node's output into it (spec:
// execution, 3.3) and the validation against the definition's state_schema (3.2). States are treated as immutable:
// merging returns a new top-level map that shares what did not change.
//
//	rules, err := state.NewRules(stateSchema)
//	next, err := rules.Apply(current, output)
//	violations := rules.Validate(next)
package state
