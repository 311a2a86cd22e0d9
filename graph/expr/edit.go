package expr

import (
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/itchyny/gojq"
)

// Assignments, updates and deletions. When the interpreter deletes, it writes to parts of its input, with the values
// that they have already. A state is shared by many readers, so that any write is a race: these functions copy each
// container on a path once, and change only copies.

// edit is a value being changed. It travels through the interpreter in place of the value, between _edit and _done.
type edit struct {
	root any
	// own holds the containers made by this edit; no other code can see them.
	own map[uintptr]any
	// doomed are the paths to delete at the end: of elements deleted earlier the indexes of later ones would change.
	doomed []any
}

// gone stands where something was deleted until the end of an edit.
type gone struct{}

func beginEdit(_ *meter, in any, _ []any) any { return &edit{root: in} }

// editGet returns the value at a path to a program, which may put it anywhere.
func editGet(m *meter, in any, args []any) any {
	e := in.(*edit)
	if !m.charge(callCost) {
		return m.exceeded
	}
	v := interpreted(m, "getpath", e.root, args)
	slice := slices.ContainsFunc(args[0].([]any), func(step any) bool {
		_, ok := step.(map[string]any)
		return ok
	})
	if slice || e.owns(v) {
		e.own = nil // the value is, or shares memory with, a container of the edit: the next change copies that again
	}
	return v
}

// editSet puts the one value of a list at a path; no value is a deletion.
func editSet(m *meter, in any, args []any) any {
	e, values := in.(*edit), args[1].([]any)
	if !m.charge(callCost) {
		return m.exceeded
	}
	if len(values) == 0 {
		e.doomed = append(e.doomed, args[0])
		return e
	}
	return e.set(m, args[0], values[0])
}

func endEdit(m *meter, in any, _ []any) any {
	e := in.(*edit)
	if len(e.doomed) == 0 {
		return e.root
	}
	return e.delete(m, e.doomed)
}

// editValue returns the value of an edit that is not done. The caller must keep no part of it.
func editValue(_ *meter, in any, _ []any) any { return in.(*edit).root }

// editShare is editSet with a value that may share a part with the edited value.
func editShare(m *meter, in any, args []any) any {
	e := in.(*edit)
	switch args[1].([]any)[0].(type) {
	case []any, map[string]any:
		e.own = nil
	}
	return editSet(m, in, args)
}

// settleEdit makes the deletions so far happen.
func settleEdit(m *meter, in any, _ []any) any {
	e := in.(*edit)
	if len(e.doomed) == 0 {
		return e
	}
	doomed := e.doomed
	e.doomed = nil
	root := e.delete(m, doomed)
	if isError(root) {
		return root
	}
	e.root = root
	return e
}

func setPath(m *meter, in any, args []any) any {
	e := &edit{root: in}
	if v := e.set(m, args[0], args[1]); isError(v) {
		return v
	}
	return e.root
}

func deletePaths(m *meter, in any, args []any) any {
	paths, ok := args[0].([]any)
	if !ok {
		return faultf("delpaths expects an array of paths, found %s", typeName(args[0]))
	}
	return (&edit{root: in}).delete(m, paths)
}

// set returns e or an error.
func (e *edit) set(m *meter, path, v any) any {
	steps, ok := path.([]any)
	if !ok {
		return faultf("setpath expects a path, found %s", typeName(path))
	}
	root, err := e.put(m, e.root, steps, v, 0)
	if err != nil {
		return err
	}
	e.root = root
	return e
}

// delete returns the value without the parts at the paths. It deletes ancestors before their parts.
func (e *edit) delete(m *meter, paths []any) any {
	if !m.allocate(2 * elementCost * len(paths)) {
		return m.exceeded
	}
	sorted := slices.Clone(paths)
	slices.SortFunc(sorted, func(a, b any) int { return m.compare(a, b, 0) })
	if m.exceeded != nil {
		return m.exceeded
	}
	for _, p := range sorted {
		path, ok := p.([]any)
		if !ok {
			return faultf("delpaths expects an array of paths, found an array with %s", typeName(p))
		}
		root, err := e.put(m, e.root, path, gone{}, 0)
		if err != nil {
			return err
		}
		e.root = root
	}
	return e.sweep(e.root)
}

// sweep removes deleted parts, which are only in containers of this edit.
func (e *edit) sweep(v any) any {
	switch c := v.(type) {
	case gone:
		return nil
	case map[string]any:
		if !e.owns(c) {
			return c
		}
		for name, part := range c {
			if part == (gone{}) {
				delete(c, name)
			} else {
				c[name] = e.sweep(part)
			}
		}
		return c
	case []any:
		if !e.owns(c) {
			return c
		}
		kept := c[:0]
		for _, part := range c {
			if part != (gone{}) {
				kept = append(kept, e.sweep(part))
			}
		}
		clear(c[len(kept):])
		return kept
	}
	return v
}

func (e *edit) owns(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		_, ok := e.own[reflect.ValueOf(v).Pointer()]
		return ok
	}
	return false
}

// adopt remembers a new container. Keeping it in the map keeps its address from being used again.
func (e *edit) adopt(v any) {
	if e.own == nil {
		e.own = map[uintptr]any{}
	}
	e.own[reflect.ValueOf(v).Pointer()] = v
}

func isError(v any) bool {
	_, ok := v.(error)
	return ok
}

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
	// The part has no spare capacity, so that it cannot grow into the elements after it.
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
