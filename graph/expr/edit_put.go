package expr

import (
	"maps"
	"math"
	"slices"

	"github.com/itchyny/gojq"
)

// put returns v with x at the path below it.
func (e *edit) put(m *meter, v any, path []any, x any, depth int) (any, error) {
	if len(path) == 0 {
		return x, nil
	}
	if depth > maxDepth {
		return nil, m.exceed(overWork)
	}
	if v == (gone{}) {
		return v, nil
	}
	switch step := path[0].(type) {
	case string:
		object, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, faultf("expected an object but got: %s", typeName(v))
		}
		return e.putMember(m, object, step, path[1:], x, depth)
	case map[string]any:
		list, ok := v.([]any)
		if !ok && v != nil {
			return nil, faultf("expected an array but got: %s", typeName(v))
		}
		return e.putSlice(m, list, step, path[1:], x, depth)
	case nil, bool, []any:
		if _, ok := v.([]any); ok {
			return nil, faultf("expected a number for indexing an array but got: %s", typeName(step))
		}
		return nil, faultf("expected a string for object key but got: %s", typeName(step))
	}
	list, ok := v.([]any)
	if !ok && v != nil {
		return nil, faultf("expected an array but got: %s", typeName(v))
	}
	i, _ := gojq.ToInt(path[0])
	return e.putElement(m, list, i, path[1:], x, depth)
}

func (e *edit) putMember(m *meter, object map[string]any, name string, path []any, x any, depth int) (any, error) {
	old, ok := object[name]
	if !ok && x == (gone{}) {
		return orNil(object, object == nil), nil
	}
	part, err := e.put(m, old, path, x, depth+1)
	if err != nil {
		return nil, err
	}
	if !e.owns(object) {
		if !m.allocateObject(len(object) + 1) {
			return nil, m.exceeded
		}
		copied := make(map[string]any, len(object)+1)
		maps.Copy(copied, object)
		object = copied
		e.adopt(object)
	}
	if !ok && !m.hold(2*memberCost) { // it grows
		return nil, m.exceeded
	}
	object[name] = part
	m.most = max(m.most, 2*memberCost*len(object))
	return object, nil
}

// maxIndex is the largest index that an assignment may make an array long enough for.
const maxIndex = 0x20000000

func (e *edit) putElement(m *meter, list []any, i int, path []any, x any, depth int) (any, error) {
	if i < 0 {
		if i += len(list); i < 0 {
			if x == (gone{}) {
				return orNil(list, list == nil), nil
			}
			return nil, faultf("array index should not be negative")
		}
	}
	var old any
	if i < len(list) {
		old = list[i]
	} else if x == (gone{}) {
		return orNil(list, list == nil), nil
	} else if i >= maxIndex {
		return nil, faultf("array index too large")
	}
	part, err := e.put(m, old, path, x, depth+1)
	if err != nil {
		return nil, err
	}
	list, err = e.room(m, list, i+1)
	if err != nil {
		return nil, err
	}
	list[i] = part
	return list, nil
}

// room returns the list as one of this edit's, of at least n elements.
func (e *edit) room(m *meter, list []any, n int) ([]any, error) {
	owned := e.owns(list)
	if owned && n <= cap(list) {
		return list[:max(n, len(list))], nil
	}
	capacity := max(n, len(list))
	if owned {
		capacity = max(capacity, 2*cap(list)) // it grows: the next element will come
	}
	if !m.allocate(times(elementCost+elementCost/8, capacity)) { // memory comes in pages
		return nil, m.exceeded
	}
	copied := make([]any, max(n, len(list)), capacity)
	copy(copied, list)
	if cap(copied) > 0 {
		e.adopt(copied)
	}
	return copied, nil
}

func (e *edit) putSlice(m *meter, list []any, slice map[string]any, path []any, x any, depth int) (any, error) {
	from, to, err := bounds(slice, len(list))
	if err != nil {
		return nil, err
	}
	if from == to && x == (gone{}) {
		return orNil(list, list == nil), nil
	}
	if !m.allocate(elementCost * (to - from)) {
		return nil, m.exceeded
	}
	// The part is handed down without spare room, so that it cannot grow into what follows it.
	part, err := e.put(m, slices.Clone(list[from:to]), path, x, depth+1)
	if err != nil {
		return nil, err
	}
	switch part := part.(type) {
	case gone:
		if list, err = e.room(m, list, len(list)); err != nil {
			return nil, err
		}
		for i := from; i < to; i++ {
			list[i] = gone{}
		}
		return list, nil
	case []any:
		if !m.allocate(times(elementCost, len(list)+len(part))) {
			return nil, m.exceeded
		}
		joined := slices.Concat(list[:from], part, list[to:])
		if joined == nil {
			joined = []any{}
		}
		if cap(joined) > 0 {
			e.adopt(joined)
		}
		return joined, nil
	}
	return nil, faultf("expected an array but got: %s", typeName(part))
}

// bounds returns the range of a slice of a list of n elements: its start rounded down, its end rounded up.
func bounds(slice map[string]any, n int) (from, to int, err error) {
	start, hasStart := slice["start"]
	end, hasEnd := slice["end"]
	if !hasStart || !hasEnd {
		return 0, 0, faultf(`expected "start" and "end" for slicing but got: object`)
	}
	to = n
	if start != nil {
		f, ok := gojq.ToFloat64(start)
		if !ok {
			return 0, 0, faultf("expected a number for indexing an array but got: %s", typeName(start))
		}
		from = clamp(math.Floor(f), 0, n)
	}
	if end != nil {
		f, ok := gojq.ToFloat64(end)
		if !ok {
			return 0, 0, faultf("expected a number for indexing an array but got: %s", typeName(end))
		}
		if -1 < f && f < 0 || math.IsNaN(f) {
			return from, max(from, n), nil
		}
		to = clamp(math.Ceil(f), from, n)
	}
	return from, max(from, to), nil
}

// clamp counts negative positions from the end and keeps all between low and n. NaN is far to the left.
func clamp(f float64, low, n int) int {
	i, _ := gojq.ToInt(f)
	if i < 0 {
		i += n
	}
	return min(max(i, low), n)
}

// orNil keeps a missing container null rather than empty.
func orNil[T any](v T, missing bool) any {
	if missing {
		return nil
	}
	return v
}
