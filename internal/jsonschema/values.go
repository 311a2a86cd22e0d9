package jsonschema

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// values is a set of JSON values. Looking one up takes as long as the value is large, however many the set has.
type values struct {
	scalars map[any]int
	// texts holds lists and objects as canonical JSON.
	texts map[string]int
}

func newValues(list []any) *values {
	s := &values{}
	for i, v := range list {
		s.add(v, i)
	}
	return s
}

// add adds the value at an index of a list, unless the set has an equal one, whose index it returns.
func (s *values) add(v any, index int) (first int, found bool) {
	if first, found = s.find(v); found {
		return first, true
	}
	if isScalar(v) {
		if s.scalars == nil {
			s.scalars = map[any]int{}
		}
		s.scalars[v] = index
		return index, false
	}
	if s.texts == nil {
		s.texts = map[string]int{}
	}
	s.texts[string(jsonvalue.Canonical(v))] = index
	return index, false
}

func (s *values) find(v any) (index int, found bool) {
	if isScalar(v) {
		index, found = s.scalars[v]
	} else if len(s.texts) > 0 {
		index, found = s.texts[string(jsonvalue.Canonical(v))]
	}
	return index, found
}

func isScalar(v any) bool {
	switch v.(type) {
	case nil, bool, float64, string:
		return true
	}
	return false
}

// equalItems returns the first element that is equal to an earlier one, and that one.
func equalItems(list []any) (i, j int, found bool) {
	if len(list) < 2 {
		return 0, 0, false
	}
	var earlier values
	for j, e := range list {
		if i, found := earlier.add(e, j); found {
			return i, j, true
		}
	}
	return 0, 0, false
}
