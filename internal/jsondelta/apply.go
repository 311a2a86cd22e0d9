package jsondelta

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Apply gives the object that a delta makes of another, which stays as it is; the two share what the delta does not
// touch. The error, with code HISTORY_CORRUPT, says that the delta does not fit.
func Apply(from map[string]any, delta any) (map[string]any, error) {
	return applyObject(from, delta, false)
}

// Advance is Apply to an object that the caller owns alone, with all that is in it: it may be changed in place, so that
// a long row of deltas costs what they say. Nothing of the object may be used afterwards but what is returned.
func Advance(from map[string]any, delta any) (map[string]any, error) {
	return applyObject(from, delta, true)
}

func misfit(format string, args ...any) error {
	return problem.New(problem.HistoryCorrupt, "a delta does not fit what it changes: "+format, args...)
}

func apply(from, delta any, owned bool) (any, error) {
	switch from := from.(type) {
	case map[string]any:
		return applyObject(from, delta, owned)
	case []any:
		return applyList(from, delta, owned)
	}
	return nil, misfit("it goes into what is neither an object nor a list")
}

func applyObject(from map[string]any, delta any, owned bool) (map[string]any, error) {
	d, ok := delta.(map[string]any)
	if !ok {
		return nil, misfit("it is no object")
	}
	to := from
	if !owned || to == nil {
		if to = maps.Clone(from); to == nil {
			to = map[string]any{}
		}
	}
	for member, v := range d {
		switch member {
		case "set":
			set, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("%q is no object", member)
			}
			maps.Copy(to, set)
		case "drop":
			names, ok := v.([]any)
			if !ok {
				return nil, misfit("%q is no list", member)
			}
			for _, n := range names {
				name, _ := n.(string)
				if _, there := from[name]; !there {
					return nil, misfit("there is no %q to drop", name)
				}
				delete(to, name)
			}
		case "in":
			in, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("%q is no object", member)
			}
			for name, inner := range in {
				old, there := to[name]
				if !there {
					return nil, misfit("there is no %q to change", name)
				}
				changed, err := apply(old, inner, owned)
				if err != nil {
					return nil, err
				}
				to[name] = changed
			}
		default:
			return nil, misfit("%q is unknown", member)
		}
	}
	return to, nil
}

func applyList(from []any, delta any, owned bool) ([]any, error) {
	d, ok := delta.(map[string]any)
	if !ok {
		return nil, misfit("it is no object")
	}
	n := len(from)
	if keep, there := d["keep"]; there {
		f, ok := keep.(float64)
		if !ok || f != math.Trunc(f) || f < 0 || f > float64(len(from)) {
			return nil, misfit("it keeps %v of %d elements", keep, len(from))
		}
		n = int(f)
	}
	add, _ := d["add"].([]any)
	to := from[:n]
	if !owned {
		to = slices.Grow(slices.Clone(to), len(add))
	}
	for member, v := range d {
		switch member {
		case "keep":
		case "add":
			if _, ok := v.([]any); !ok {
				return nil, misfit("%q is no list", member)
			}
		case "put", "in":
			entries, ok := v.(map[string]any)
			if !ok {
				return nil, misfit("%q is no object", member)
			}
			for index, value := range entries {
				i, err := strconv.Atoi(index)
				if err != nil || i < 0 || i >= n {
					return nil, misfit("there is no element %q", index)
				}
				if member == "in" {
					if value, err = apply(to[i], value, owned); err != nil {
						return nil, err
					}
				}
				to[i] = value
			}
		default:
			return nil, misfit("%q is unknown", member)
		}
	}
	return append(to, add...), nil
}
