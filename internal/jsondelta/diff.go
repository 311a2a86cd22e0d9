package jsondelta

import (
	"reflect"
	"slices"
	"strconv"
)

// Diff returns the delta from one object to another, {} if they are equal. The delta shares values with the new
// object. Both must be plain JSON; other values count as changed.
func Diff(from, to map[string]any) map[string]any {
	return object(from, to)
}

// verdict is the result of comparing a value with its predecessor.
type verdict uint8

const (
	same     verdict = iota
	replaced         // the delta holds the new value
	changed          // the delta holds a delta of the value
)

// compare compares two values; the delta is set if the verdict is changed.
func compare(from, to any) (verdict, map[string]any) {
	switch to := to.(type) {
	case nil, bool, float64, string:
		return when(from == to), nil
	case map[string]any:
		if v, ok := from.(map[string]any); ok {
			return compareObjects(v, to)
		}
	case []any:
		if v, ok := from.([]any); ok {
			return compareLists(v, to)
		}
	}
	return replaced, nil
}

func when(equal bool) verdict {
	if equal {
		return same
	}
	return replaced
}

func compareObjects(from, to map[string]any) (verdict, map[string]any) {
	switch {
	case len(from) == 0 || len(to) == 0:
		return when(len(from) == len(to)), nil
	case reflect.ValueOf(from).Pointer() == reflect.ValueOf(to).Pointer():
		return same, nil
	}
	d := object(from, to)
	set, _ := d["set"].(map[string]any)
	switch {
	case len(d) == 0:
		return same, nil
	case len(set) == len(to):
		return replaced, nil
	}
	return changed, d
}

// object returns the delta of two objects.
func object(from, to map[string]any) map[string]any {
	d := map[string]any{}
	var set, in map[string]any
	known := 0
	for name, value := range to {
		old, had := from[name]
		v, inner := replaced, map[string]any(nil)
		if had {
			known++
			v, inner = compare(old, value)
		}
		switch v {
		case replaced:
			put(d, &set, "set", name, value)
		case changed:
			put(d, &in, "in", name, inner)
		}
	}
	if known < len(from) {
		var gone []string
		for name := range from {
			if _, stays := to[name]; !stays {
				gone = append(gone, name)
			}
		}
		slices.Sort(gone)
		drop := make([]any, len(gone))
		for i, name := range gone {
			drop[i] = name
		}
		d["drop"] = drop
	}
	return d
}

// put adds a change to a field of the delta, which it creates with the first entry.
func put(d map[string]any, entries *map[string]any, member, name string, value any) {
	if *entries == nil {
		*entries = map[string]any{}
		d[member] = *entries
	}
	(*entries)[name] = value
}

func compareLists(from, to []any) (verdict, map[string]any) {
	if len(from) == 0 || len(to) == 0 {
		return when(len(from) == len(to)), nil
	}
	shared := &from[0] == &to[0] // one list is the beginning of the other
	if shared && len(from) == len(to) {
		return same, nil
	}
	d := map[string]any{}
	var places, in map[string]any
	common := min(len(from), len(to))
	// A list that has little in common with the list before, as when its first element was removed, is written whole.
	const fewest = 8
	most := max(common/2, fewest)
	if !shared {
		differing := 0
		for i := range common {
			v, inner := compare(from[i], to[i])
			if v == same {
				continue
			}
			if differing++; differing > most || differing == common {
				return replaced, nil
			}
			if v == replaced {
				put(d, &places, "put", strconv.Itoa(i), to[i])
			} else {
				put(d, &in, "in", strconv.Itoa(i), inner)
			}
		}
	}
	if len(to) < len(from) {
		d["keep"] = float64(common)
	}
	if len(to) > common {
		d["add"] = to[common:]
	}
	if len(d) == 0 {
		return same, nil
	}
	return changed, d
}
