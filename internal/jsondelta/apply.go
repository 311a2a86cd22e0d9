package jsondelta

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Apply returns an object changed by a delta. It does not change the given object, and shares its unchanged parts.
// A delta that does not fit is an error with code HISTORY_CORRUPT.
func Apply(from map[string]any, delta any) (map[string]any, error) {
	return applyObject(from, delta, false)
}

// Advance is Apply for an object that nothing else refers to, at any depth. It may change the object in place, so that
// many deltas in a row cost only their own size. Afterwards only the result may be used.
func Advance(from map[string]any, delta any) (map[string]any, error) {
	return applyObject(from, delta, true)
}

func misfit(format string, args ...any) error {
	return problem.New(problem.HistoryCorrupt, "the delta does not fit: "+format, args...)
}

func apply(from, delta any, owned bool) (any, error) {
	switch from := from.(type) {
	case map[string]any:
		return applyObject(from, delta, owned)
	case []any:
		return applyList(from, delta, owned)
	}
	return nil, misfit("expected an object or an array to change")
}

func applyObject(from map[string]any, delta any, owned bool) (map[string]any, error) {
	d, ok := delta.(map[string]any)
	if !ok {
		return nil, misfit("expected an object")
	}
	to := from
	if !owned || to == nil {
		if to = maps.Clone(from); to == nil {
			to = map[string]any{}
		}
	}
	for member, v := range inOrder(d, "drop", "in", "set") {
		switch member {
		case "set":
			set, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("expected an object as %q", member)
			}
			maps.Copy(to, set)
		case "drop":
			names, ok := v.([]any)
			if !ok {
				return nil, misfit("expected an array as %q", member)
			}
			for _, n := range names {
				name, _ := n.(string)
				if _, there := to[name]; !there {
					return nil, misfit("no field %q to drop", name)
				}
				delete(to, name)
			}
		case "in":
			in, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("expected an object as %q", member)
			}
			for name, inner := range in {
				old, there := to[name]
				if !there {
					return nil, misfit("no field %q to change", name)
				}
				changed, err := apply(old, inner, owned)
				if err != nil {
					return nil, err
				}
				to[name] = changed
			}
		default:
			return nil, misfit("unknown field %q", member)
		}
	}
	return to, nil
}

// inOrder yields the fields of a delta, the known ones in a fixed order, so that a delta has one result.
func inOrder(d map[string]any, known ...string) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, member := range known {
			if v, there := d[member]; there && !yield(member, v) {
				return
			}
		}
		for member, v := range d {
			if !slices.Contains(known, member) && !yield(member, v) {
				return
			}
		}
	}
}

func applyList(from []any, delta any, owned bool) ([]any, error) {
	d, ok := delta.(map[string]any)
	if !ok {
		return nil, misfit("expected an object")
	}
	n := len(from)
	if keep, there := d["keep"]; there {
		f, ok := keep.(float64)
		if !ok || f != math.Trunc(f) || f < 0 || f > float64(len(from)) {
			return nil, misfit("invalid keep %v for %d elements", keep, len(from))
		}
		n = int(f)
	}
	add, _ := d["add"].([]any)
	to := from[:n]
	if !owned {
		to = slices.Grow(slices.Clone(to), len(add))
	}
	for member, v := range inOrder(d, "keep", "put", "in", "add") {
		switch member {
		case "keep":
		case "add":
			if _, ok := v.([]any); !ok {
				return nil, misfit("expected an array as %q", member)
			}
		case "put", "in":
			entries, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("expected an object as %q", member)
			}
			for index, value := range entries {
				i, err := strconv.Atoi(index)
				if err != nil || i < 0 || i >= n || strconv.Itoa(i) != index {
					return nil, misfit("no element %q", index)
				}
				if member == "in" {
					if value, err = apply(to[i], value, owned); err != nil {
						return nil, err
					}
				}
				to[i] = value
			}
		default:
			return nil, misfit("unknown field %q", member)
		}
	}
	return append(to, add...), nil
}
