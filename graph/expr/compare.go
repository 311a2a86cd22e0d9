package expr

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// compare orders two values as jq does: null, false, true, numbers, strings, arrays, objects; NaN below all numbers.
// It charges for what it reads, and gives 0 once there is no room left.
func (m *meter) compare(l, r any, depth int) int {
	if depth > maxDepth {
		m.exceed(overWork)
		return 0
	}
	if !m.charge(scalarCost) {
		return 0
	}
	switch l := l.(type) {
	case string:
		if r, ok := r.(string); ok {
			m.charge(min(len(l), len(r)))
			return strings.Compare(l, r)
		}
	case []any:
		if r, ok := r.([]any); ok {
			for i := range min(len(l), len(r)) {
				if c := m.compare(l[i], r[i], depth+1); c != 0 || m.exceeded != nil {
					return c
				}
			}
			return cmp.Compare(len(l), len(r))
		}
	case map[string]any:
		if r, ok := r.(map[string]any); ok {
			return m.compareObjects(l, r, depth)
		}
	}
	if a, ok := number(l); ok {
		if b, ok := number(r); ok {
			return compareNumbers(l, r, a, b)
		}
	}
	return cmp.Compare(typeRank(l), typeRank(r))
}

// compareObjects compares the sorted member names first, then the values in the order of their names.
func (m *meter) compareObjects(l, r map[string]any, depth int) int {
	if !m.charge(memberCost * (len(l) + len(r))) {
		return 0
	}
	names := sortedNames(l)
	if c := slices.Compare(names, sortedNames(r)); c != 0 {
		return c
	}
	for _, name := range names {
		if c := m.compare(l[name], r[name], depth+1); c != 0 || m.exceeded != nil {
			return c
		}
	}
	return 0
}

// equal is compare(l, r) == 0, and cheaper where objects differ.
func (m *meter) equal(l, r any, depth int) bool {
	a, ok := l.(map[string]any)
	if !ok {
		if list, ok := l.([]any); ok {
			return m.equalLists(list, r, depth)
		}
		return m.compare(l, r, depth) == 0
	}
	b, ok := r.(map[string]any)
	if depth > maxDepth {
		m.exceed(overWork)
		return false
	}
	if !ok || len(a) != len(b) || !m.charge(memberCost*len(a)) {
		return false
	}
	// In order, so that how much is charged until a difference is found does not depend on the map's order.
	for _, name := range sortedNames(a) {
		if y, ok := b[name]; !ok || !m.equal(a[name], y, depth+1) {
			return false
		}
	}
	return true
}

func (m *meter) equalLists(l []any, r any, depth int) bool {
	if depth > maxDepth {
		m.exceed(overWork)
		return false
	}
	list, ok := r.([]any)
	if !ok || len(l) != len(list) || !m.charge(elementCost*len(l)) {
		return false
	}
	for i := range l {
		if !m.equal(l[i], list[i], depth+1) {
			return false
		}
	}
	return true
}

func sortedNames(object map[string]any) []string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// number is the double of a number of any of the interpreter's types.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case nil, bool, string, []any, map[string]any:
		return 0, false
	}
	return gojq.ToFloat64(v)
}

func compareNumbers(l, r any, a, b float64) int {
	if x, ok := l.(int); ok {
		if y, ok := r.(int); ok {
			return cmp.Compare(x, y)
		}
	}
	switch {
	case a < b || math.IsNaN(a):
		return -1
	case a == b:
		return 0
	}
	return 1
}

func typeRank(v any) int {
	switch v := v.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 2
		}
		return 1
	case string:
		return 4
	case []any:
		return 5
	case map[string]any:
		return 6
	}
	return 3
}

// typeName is the jq name of a value's type, for messages.
func typeName(v any) string { return jsonvalue.KindOf(v).String() }
