package shortform

import (
	"maps"
	"slices"
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The output of a node is often part of the state with a small addition, such as a log with one more entry. Such an object
// is written as changes, like the state itself, so that its size is that of the addition.

// appendPart appends an object as changes to some fields of the newest state. It appends nothing and returns false if the object has nothing
// in common with the state.
func (e *Encoder) appendPart(dst []byte, object map[string]any) ([]byte, bool) {
	base := map[string]any{}
	for name, value := range object {
		if old, ok := e.prior.state[name]; ok && sameShape(old, value) {
			base[name] = old
		}
	}
	if len(base) == 0 {
		return dst, false
	}
	changes := jsondelta.Diff(base, object)
	set, _ := changes["set"].(map[string]any)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(base)), func(name string) bool {
		_, anew := set[name]
		return anew
	})
	if len(names) == 0 {
		return dst, false
	}
	dst = strconv.AppendInt(append(dst, `{"`+markPart+`":{"state":`...), e.prior.seq, 10)
	dst = append(append(append(dst, `,"hash":"`...), e.prior.hash...), `","names":[`...)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonvalue.AppendString(dst, name)
	}
	dst = e.values.value(append(dst, `],"changes":`...), changes)
	e.values.short = true
	return append(dst, "}}"...), true
}

// sameShape reports whether both are objects or both are lists.
func sameShape(a, b any) bool {
	switch a.(type) {
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	case []any:
		_, ok := b.([]any)
		return ok
	}
	return false
}

// part returns an object written as a part of a state.
func (d *Decoder) part(seq int64, stored any) (map[string]any, error) {
	p, _ := stored.(map[string]any)
	of, _ := p["state"].(float64)
	names, ok := p["names"].([]any)
	if !ok || of < 1 || int64(of) >= seq {
		return nil, unreadable("it refers to a part of a state that is not before it")
	}
	s, err := d.stateAt(int64(of))
	if err != nil {
		return nil, err
	}
	if p["hash"] != s.hash {
		return nil, unreadable("it refers to a part of the state of record %d, whose hash does not match", int64(of))
	}
	base := make(map[string]any, len(names))
	for _, v := range names {
		name, _ := v.(string)
		if base[name], ok = s.state[name]; !ok {
			return nil, unreadable("the state of record %d has no member %q", int64(of), name)
		}
	}
	changes, err := d.value(p["changes"])
	if err != nil {
		return nil, err
	}
	return jsondelta.Apply(base, changes)
}
