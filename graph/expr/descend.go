package expr

import (
	"maps"
	"slices"
)

// The interpreter's recurse, behind `..` and paths, runs some twenty instructions for each part of a value. These list
// the parts in the same order in one call. They serve where a program wants values; a program that wants the places of
// the parts, as `.. |= f` does, is left to the interpreter.

// descend lists a value and all its parts, each before its own parts, the members of an object in order.
func descend(m *meter, in any, _ []any) any {
	parts, ok := m.descend(nil, in, 0)
	if !ok {
		return m.exceeded
	}
	return parts
}

func (m *meter) descend(parts []any, v any, depth int) ([]any, bool) {
	if depth > maxDepth {
		m.exceed(overWork)
		return nil, false
	}
	if !m.charge(2*elementCost + shallowCost(v)) {
		return nil, false
	}
	parts = append(parts, v)
	ok := true
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if parts, ok = m.descend(parts, e, depth+1); !ok {
				return nil, false
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if parts, ok = m.descend(parts, v[name], depth+1); !ok {
				return nil, false
			}
		}
	}
	return parts, true
}

// placed lists the parts of a value, without the value itself, as [path, part].
func placed(m *meter, in any, _ []any) any {
	parts, ok := m.placed(nil, nil, in)
	if !ok {
		return m.exceeded
	}
	return parts
}

func (m *meter) placed(parts, path []any, v any) ([]any, bool) {
	if len(path) > maxDepth {
		m.exceed(overWork)
		return nil, false
	}
	// Each part has a path of its own, a pair around it and its place in the list.
	if !m.charge(elementCost*(len(path)+4) + 2*scalarCost + shallowCost(v)) {
		return nil, false
	}
	if len(path) > 0 {
		parts = append(parts, []any{slices.Clone(path), v})
	}
	ok := true
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			if parts, ok = m.placed(parts, append(path, i), e); !ok {
				return nil, false
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if parts, ok = m.placed(parts, append(path, name), v[name]); !ok {
				return nil, false
			}
		}
	}
	return parts, true
}
