package expr

import (
	"cmp"
	"slices"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// compare is gojq.Compare with a charge for what it reads. It returns 0 once there is no room left.
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
		if r, ok := r.(string); ok && !m.charge(min(len(l), len(r))) {
			return 0
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
	return gojq.Compare(l, r)
}

// compareObjects compares the sorted member names first, then the values in the order of their names.
func (m *meter) compareObjects(l, r map[string]any, depth int) int {
	var room [2][8]string // most objects are small
	names, ok := m.sortedNames(l, room[0][:0])
	others, ok2 := m.sortedNames(r, room[1][:0])
	if !ok || !ok2 {
		return 0
	}
	if c := slices.Compare(names, others); c != 0 {
		return c
	}
	for _, name := range names {
		if c := m.compare(l[name], r[name], depth+1); c != 0 || m.exceeded != nil {
			return c
		}
	}
	return 0
}

// sortedNames appends the names of an object to names, in order, and charges for that.
func (m *meter) sortedNames(object map[string]any, names []string) (sorted []string, ok bool) {
	bytes := 0
	for name := range object {
		bytes += len(name)
	}
	if !m.charge(memberCost/2*len(object) + times(bytes+scalarCost/2*len(object), rounds(len(object)))) {
		return nil, false
	}
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, true
}

// typeName is the jq name of a value's type, for messages.
func typeName(v any) string { return jsonvalue.KindOf(v).String() }
