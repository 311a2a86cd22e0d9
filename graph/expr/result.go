package expr

import (
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// output makes an output a value of the model and adds the size of its text to size. It copies nothing that is of the
// model already; copies count as memory that the evaluation makes, since a part that is shared many times is copied each time.
func (m *meter) output(v any, size int) (normal any, total int, err error) {
	n := normalizer{size: size, limit: m.limits.ResultBytes, hold: m.hold}
	normal, _ = n.value(v, 0)
	switch {
	case n.full:
		return nil, 0, m.exceed(overMemory)
	case n.deep:
		return nil, 0, m.exceed(overDepth)
	case n.foreign:
		return nil, 0, faultf("the state holds a value that is not JSON")
	case n.size > n.limit:
		return nil, 0, m.exceed(overResult)
	}
	return normal, n.size, nil
}

// normalizer rewrites numbers: integers become doubles, NaN null, infinities the largest doubles, -0 becomes 0 (spec:
// definition, 14.3). It stops once size is above the limit, since a small value can share parts without end.
type normalizer struct {
	size, limit int
	// hold counts the memory of a copy and reports whether there is room; full is set where there was none.
	hold func(bytes int) bool
	full bool
	// deep is set where a value is nested more than jsonvalue.MaxDepth levels deep.
	deep bool
	// foreign is set where a value is of no type of the interpreter.
	foreign bool
}

func (n *normalizer) value(v any, depth int) (normal any, changed bool) {
	if n.size > n.limit || n.deep || n.full {
		return nil, false
	}
	same := v // handed back where nothing changes, which saves an allocation
	switch v := v.(type) {
	case nil, bool:
		n.size += jsonvalue.Size(same, 0)
		return same, false
	case string:
		n.size += jsonvalue.Size(same, 0)
		if !utf8.ValidString(v) {
			return string([]rune(v)), true
		}
		return same, false
	case float64:
		if v-v == 0 && v != 0 { // finite, and no zero
			n.size += jsonvalue.Size(same, 0)
			return same, false
		}
	case []any:
		return n.list(v, depth)
	case map[string]any:
		return n.object(v, depth)
	}
	f, ok := gojq.ToFloat64(v)
	if !ok {
		n.foreign = true
		return nil, false
	}
	normal, changed = double(f)
	n.size += jsonvalue.Size(normal, 0)
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

func (n *normalizer) list(v []any, depth int) (any, bool) {
	if n.deep = depth >= jsonvalue.MaxDepth; n.deep {
		return nil, false
	}
	n.size += len("[]") + max(len(v)-1, 0)
	var copied []any
	for i, e := range v {
		normal, changed := n.value(e, depth+1)
		if changed && copied == nil {
			if n.full = !n.hold(shallowCost(v)); n.full {
				return nil, false
			}
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

func (n *normalizer) object(v map[string]any, depth int) (any, bool) {
	if n.deep = depth >= jsonvalue.MaxDepth; n.deep {
		return nil, false
	}
	n.size += len("{}") + max(len(v)-1, 0)
	var copied map[string]any
	renamed := false
	for name, e := range v {
		n.size += jsonvalue.StringSize(name) + len(":")
		renamed = renamed || !utf8.ValidString(name)
		normal, changed := n.value(e, depth+1)
		if changed && copied == nil {
			if n.full = !n.hold(objectCost + shallowCost(v)); n.full {
				return nil, false
			}
			copied = maps.Clone(v)
		}
		if changed {
			copied[name] = normal
		}
	}
	switch {
	case v == nil:
		return map[string]any{}, true
	case renamed && copied == nil:
		copied = v
	case copied == nil:
		return v, false
	}
	if !renamed {
		return copied, true
	}
	if n.full = !n.hold(objectCost + shallowCost(v)); n.full {
		return nil, false
	}
	valid := make(map[string]any, len(v))
	for _, name := range slices.Sorted(maps.Keys(copied)) { // in order: two names may become the same
		valid[string([]rune(name))] = copied[name]
	}
	return valid, true
}
