package jsonschema

import (
	"maps"
	"slices"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// MaxEffort bounds how many subschemas one place of an instance may have to pass. References let a short schema
// multiply: thirty definitions, each of which names the next one twice, make a billion.
const MaxEffort = 100_000

// effort counts the subschemas that apply to the same place as s, each as often as it is reached, up to just above
// MaxEffort.
func effort(s *lib.Schema, known map[*lib.Schema]int) int {
	if s == nil {
		return 0
	}
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = 1 // stands for s while a $dynamicRef leads back to it
	n := 1
	add := func(subs ...*lib.Schema) {
		for _, sub := range subs {
			n = min(n+effort(sub, known), MaxEffort+1)
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

// tooMuchEffort reports whether some subschema exceeds MaxEffort.
func tooMuchEffort(all locations) bool {
	known := make(map[*lib.Schema]int, len(all))
	for _, place := range slices.Sorted(maps.Keys(all)) {
		if effort(all[place], known) > MaxEffort {
			return true
		}
	}
	return false
}
