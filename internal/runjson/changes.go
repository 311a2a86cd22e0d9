package runjson

import (
	"maps"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Change is one difference between a state and the state before it.
type Change struct {
	// Pointer is the place (RFC 6901).
	Pointer string
	// Value is the new value. Gone is set if there is no value any more; of an array that has become shorter, Pointer is then the first
	// place that is gone.
	Value any
	Gone  bool
}

// Changes returns the differences between a state and the state before it, in the order of the names.
func Changes(before, after map[string]any) []Change {
	return objectChanges(nil, "", before, jsondelta.Diff(before, after))
}

func objectChanges(list []Change, at string, before map[string]any, delta map[string]any) []Change {
	set, _ := delta["set"].(map[string]any)
	in, _ := delta["in"].(map[string]any)
	gone, _ := delta["drop"].([]any)
	names := append(slices.Collect(maps.Keys(set)), slices.Collect(maps.Keys(in))...)
	for _, name := range gone {
		names = append(names, name.(string))
	}
	slices.Sort(names)
	for _, name := range names {
		pointer := at + "/" + jsonvalue.EscapePointer(name)
		value, isSet := set[name]
		inner, differs := in[name].(map[string]any)
		switch {
		case isSet:
			list = append(list, Change{Pointer: pointer, Value: value})
		case differs:
			list = valueChanges(list, pointer, before[name], inner)
		default:
			list = append(list, Change{Pointer: pointer, Gone: true})
		}
	}
	return list
}

func valueChanges(list []Change, at string, before any, delta map[string]any) []Change {
	switch before := before.(type) {
	case map[string]any:
		return objectChanges(list, at, before, delta)
	case []any:
		return listChanges(list, at, before, delta)
	}
	return list
}

func listChanges(list []Change, at string, before []any, delta map[string]any) []Change {
	put, _ := delta["put"].(map[string]any)
	in, _ := delta["in"].(map[string]any)
	for i := range before {
		index := strconv.Itoa(i)
		if value, ok := put[index]; ok {
			list = append(list, Change{Pointer: at + "/" + index, Value: value})
		} else if inner, ok := in[index].(map[string]any); ok {
			list = valueChanges(list, at+"/"+index, before[i], inner)
		}
	}
	if keep, ok := delta["keep"].(float64); ok {
		list = append(list, Change{Pointer: at + "/" + strconv.Itoa(int(keep)), Gone: true})
	}
	added, _ := delta["add"].([]any)
	for i, value := range added {
		list = append(list, Change{Pointer: at + "/" + strconv.Itoa(len(before)+i), Value: value})
	}
	return list
}
