package expr

import "math"

// Costs of values, in bytes of work: about the memory of their parts.
const (
	scalarCost  = 16
	elementCost = 16
	memberCost  = 48
	// orderCost is the fixed cost of sorting the names of an object.
	orderCost = 256
	// objectCost is the cost of a new object without members: Go makes room for eight.
	objectCost = 320
)

// objectSize is about the memory of a new object of so many members.
func objectSize(members int) int { return objectCost + (memberCost+16)*members }

// shallowCost is the cost of a copy that shares the parts.
func shallowCost(v any) int {
	switch v := v.(type) {
	case string:
		return len(v) + scalarCost
	case []any:
		return elementCost*len(v) + scalarCost
	case map[string]any:
		return memberCost*len(v) + scalarCost
	}
	return scalarCost
}

// chargeDeep charges for every part of v, each as often as it is reached: values may share parts, so that a small
// program can make one that is endless to read. It returns the charge in units and whether there was room for it.
func (m *meter) chargeDeep(v any) (units int, ok bool) {
	before := m.units
	ok = m.walk(v, 0)
	return before - m.units, ok
}

func (m *meter) walk(v any, depth int) bool {
	if depth > maxDepth {
		m.exceed(overWork)
		return false
	}
	if !m.charge(shallowCost(v)) {
		return false
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if !m.walk(e, depth+1) {
				return false
			}
		}
	case map[string]any:
		if !m.charge(orderCost + scalarCost*len(v)) {
			return false
		}
		for name, e := range v {
			if !m.charge(len(name)) || !m.walk(e, depth+1) {
				return false
			}
		}
	}
	return true
}

// notTooDeep returns its input, into which a recursive function is about to descend, and charges for every level
// beyond freeLevels.
func notTooDeep(m *meter, in any, _ []any) any {
	if levels, ok := m.levels(in, 0); !ok || !m.hold(max(0, levels-freeLevels)*levelBytes) {
		return m.exceeded
	}
	return in
}

const (
	levelBytes = 2 * forkBytes
	freeLevels = 8
)

// levels returns how deeply a value is nested and charges for looking.
func (m *meter) levels(v any, depth int) (most int, ok bool) {
	if depth > maxDepth {
		m.exceed(overWork)
		return 0, false
	}
	most, ok = depth, true
	switch v := v.(type) {
	case []any:
		ok = m.charge(visitCost * len(v))
		for i := 0; i < len(v) && ok; i++ {
			var n int
			n, ok = m.levels(v[i], depth+1)
			most = max(most, n)
		}
	case map[string]any:
		ok = m.charge(2 * visitCost * len(v))
		for _, e := range v {
			if !ok {
				break
			}
			var n int
			n, ok = m.levels(e, depth+1)
			most = max(most, n)
		}
	}
	return most, ok
}

// times is a product that stays at the top instead of overflowing.
func times(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}
