package expr

import (
	"reflect"
	"slices"
)

// Assignments, updates and deletions. The interpreter's own write to parts of their input when they delete, with the
// values that stand there already; but a state is shared by many readers, for whom any write is a race. These copy
// each container on the way to a place once, and change only such copies.

// edit is a value being changed. It travels through the interpreter in place of the value, between _edit and _done.
type edit struct {
	root any
	// own holds the containers made by this edit, which nobody else can see.
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

// editShare is editSet with a value that may be, or hold, part of what is edited.
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

// delete returns the value without what is at the paths. Ancestors are deleted before what is in them.
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

// sweep takes out what is gone. That can only be in containers of this edit.
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
