package jsonschema

import (
	"maps"
	"slices"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// MaxEffort bounds how many subschemas one place of an instance may have to pass. References let a short schema
// multiply: thirty definitions, each of which names the next one twice, make a billion.
const MaxEffort = 100_000

// effort is what one place of an instance may have to pass: subschemas, up to just above MaxEffort, and the steps that they take there
// (price.go), up to just above MaxSteps.
type effort struct{ subschemas, steps int }

// effortOf adds up the schemas that apply to the same place as s, each as often as it is reached.
func (p *prices) effortOf(s *lib.Schema, known map[*lib.Schema]effort) effort {
	if s == nil {
		return effort{}
	}
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = effort{1, 1} // stands for s while a $dynamicRef leads back to it
	n := effort{1, p.own[s].bound}
	add := func(subs ...*lib.Schema) {
		for _, sub := range subs {
			more := p.effortOf(sub, known)
			n = effort{min(n.subschemas+more.subschemas, MaxEffort+1), min(n.steps+more.steps, MaxCheck+1)}
		}
	}
	add(s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else)
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		add(s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if sub, ok := s.Dependencies[name].(*lib.Schema); ok {
			add(sub)
		}
	}
	known[s] = n
	return n
}

// effort returns the greatest effort of a place.
func (p *prices) effort(all locations) (most effort) {
	known := make(map[*lib.Schema]effort, len(all))
	for _, place := range slices.Sorted(maps.Keys(all)) {
		n := p.effortOf(all[place], known)
		most = effort{max(most.subschemas, n.subschemas), max(most.steps, n.steps)}
	}
	return most
}
