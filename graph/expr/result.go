package expr

import (
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// output makes an output a value of the model and adds the size of its text to size. A shared part is written out and
// copied each time: the cost is measured and charged before. A value that is of the model already is not copied.
func (m *meter) output(v any, size int) (normal any, total int, err error) {
	n := measurement{size: size, limit: m.limits.ResultBytes}
	changed := n.value(v, 0)
	switch {
	case n.deep:
		return nil, 0, m.exceed(overDepth)
	case n.foreign:
		return nil, 0, faultf("the state holds a value that is not JSON")
	case n.size > n.limit:
		return nil, 0, m.exceed(overResult)
	case !m.charge(visitCost*n.values + n.size - size), !m.allocate(n.copies):
		return nil, 0, m.exceeded
	case changed:
		v, _ = normalized(v)
	}
	return v, n.size, nil
}

// measurement is the cost of writing out a value. It stops once size is above the limit, since a small value can
// share parts without end; below it, the order of fields does not matter.
type measurement struct {
	// size and limit are bytes of text, values counts visited values, copies the bytes of copies.
	size, limit, values, copies int
	// deep is set where a value is nested more than jsonvalue.MaxDepth levels deep.
	deep bool
	// foreign is set where a value is of no type of the interpreter.
	foreign bool
}

// visitCost is the cost of looking at a part, in bytes of work.
const visitCost = bytesPerUnit / 2

// value measures v and reports whether normalized makes another value of it.
func (n *measurement) value(v any, depth int) (changed bool) {
	if n.size > n.limit || n.deep {
		return false
	}
	n.values++
	switch v := v.(type) {
	case string:
		n.size += jsonvalue.Size(v, 0)
		return n.copied(!utf8.ValidString(v), 5*len(v))
	case []any:
		return n.list(v, depth)
	case map[string]any:
		return n.object(v, depth)
	}
	return n.scalar(v)
}

func (n *measurement) scalar(v any) (changed bool) {
	switch v.(type) {
	case nil, bool:
		n.size += jsonvalue.Size(v, 0)
		return false
	}
	f, ok := gojq.ToFloat64(v)
	if !ok {
		n.foreign = true
		return false
	}
	normal, changed := double(f)
	n.size += jsonvalue.Size(normal, 0)
	_, isFloat := v.(float64)
	return n.copied(changed || !isFloat, scalarCost)
}

// copied counts a copy of so many bytes where there is one.
func (n *measurement) copied(changed bool, bytes int) bool {
	if changed {
		n.copies += bytes
	}
	return changed
}

func (n *measurement) list(v []any, depth int) (changed bool) {
	if n.deep = depth >= jsonvalue.MaxDepth; n.deep {
		return false
	}
	n.size += len("[]") + max(len(v)-1, 0)
	for _, e := range v {
		if n.value(e, depth+1) {
			changed = true
		}
	}
	return n.copied(changed || v == nil, shallowCost(v))
}

func (n *measurement) object(v map[string]any, depth int) (changed bool) {
	if n.deep = depth >= jsonvalue.MaxDepth; n.deep {
		return false
	}
	n.size += len("{}") + max(len(v)-1, 0)
	renamed := false
	for name, e := range v {
		n.size += jsonvalue.StringSize(name) + len(":")
		renamed = n.copied(!utf8.ValidString(name), 5*len(name)) || renamed
		changed = n.value(e, depth+1) || changed
	}
	n.copied(renamed, objectCost+shallowCost(v))
	return n.copied(changed || renamed || v == nil, objectCost+shallowCost(v))
}

// normalized is a value with numbers of the model: integers become doubles, NaN null, infinities the largest doubles,
// -0 becomes 0 (spec: definition, 14.3). Invalid characters are replaced. Unchanged parts are shared.
func normalized(v any) (normal any, changed bool) {
	same := v // handed back where nothing changes, which saves an allocation
	switch v := v.(type) {
	case nil, bool:
		return same, false
	case string:
		if !utf8.ValidString(v) {
			return string([]rune(v)), true
		}
		return same, false
	case []any:
		return normalizedList(v)
	case map[string]any:
		return normalizedObject(v)
	}
	f, _ := gojq.ToFloat64(v)
	normal, changed = double(f)
	if _, isFloat := v.(float64); isFloat && !changed {
		return same, false
	}
	return normal, true
}

// double returns the model's value for a number, and whether that is another one.
func double(f float64) (any, bool) {
	switch {
	case math.IsNaN(f):
		return nil, true
	case math.IsInf(f, 0):
		return math.Copysign(math.MaxFloat64, f), true
	case f == 0:
		return 0.0, math.Signbit(f)
	}
	return f, false
}

func normalizedList(v []any) (any, bool) {
	var copied []any
	for i, e := range v {
		normal, changed := normalized(e)
		if changed && copied == nil {
			copied = make([]any, len(v))
			copy(copied, v[:i])
		}
		if copied != nil {
			copied[i] = normal
		}
	}
	if copied != nil {
		return copied, true
	}
	if v == nil {
		return []any{}, true
	}
	return v, false
}

func normalizedObject(v map[string]any) (any, bool) {
	if v == nil {
		return map[string]any{}, true
	}
	copied, isCopy, renamed := v, false, false
	for name, e := range v {
		renamed = renamed || !utf8.ValidString(name)
		normal, changed := normalized(e)
		if changed && !isCopy {
			copied, isCopy = maps.Clone(v), true
		}
		if changed {
			copied[name] = normal
		}
	}
	if !renamed {
		return copied, isCopy
	}
	valid := make(map[string]any, len(v))
	for _, name := range slices.Sorted(maps.Keys(copied)) { // in order: two names may become the same
		valid[string([]rune(name))] = copied[name]
	}
	return valid, true
}
