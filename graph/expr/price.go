package expr

import (
	"math"
	"math/bits"
	"strings"

	"github.com/itchyny/gojq"
)

// sortFactor is how much more it takes to put the members of an object in order than to copy them.
const sortFactor = 4

// textGrowth is how much longer text can get than the value that it is made of: "\u0000" for one character, "&quot;".
const textGrowth = 6

// A price charges for one call and reports whether there was room.
type price func(m *meter, in any, args []any) bool

// charged calls the interpreter's function once the price is paid.
func charged(name string, pay price) native {
	return func(m *meter, in any, args []any) any {
		if !pay(m, in, args) {
			return m.exceeded
		}
		return interpreter(name, len(args))(in, args)
	}
}

func constant(cost int) price { return func(m *meter, _ any, _ []any) bool { return m.charge(cost) } }

func shallow(factor int) price {
	return func(m *meter, in any, _ []any) bool { return m.charge(times(shallowCost(in), factor)) }
}

func deep(factor int) price {
	return func(m *meter, in any, _ []any) bool { return m.deepTimes(in, factor) }
}

// deepTimes charges for v read factor times.
func (m *meter) deepTimes(v any, factor int) bool {
	cost, ok := m.chargeDeep(v)
	return ok && m.charge(times(cost, factor-1))
}

func deepArgument(m *meter, in any, args []any) bool {
	return m.charge(shallowCost(in)) && m.deepTimes(args[0], 1)
}

// characters charges for reading a text; other values are read at once.
func characters(m *meter, in any, _ []any) bool {
	s, _ := in.(string)
	return m.charge(2 * len(s))
}

// shorter charges for the beginnings or ends of two texts being compared.
func shorter(m *meter, in any, args []any) bool {
	s, _ := in.(string)
	x, _ := args[0].(string)
	return m.charge(min(len(s), len(x)))
}

// pieces charges for a text cut at each separator.
func pieces(m *meter, in any, args []any) bool {
	s, _ := in.(string)
	separator, _ := args[0].(string)
	return m.charge(len(s)) && m.allocate(times(2*elementCost, strings.Count(s, separator)+1))
}

// sorted charges as often as a sort compares each element.
func sorted(m *meter, in any, _ []any) bool { return m.deepTimes(in, rounds(in)) }

func sortedArgument(m *meter, in any, args []any) bool {
	return m.charge(times(shallowCost(in), 2)) && m.deepTimes(args[0], rounds(args[0]))
}

func rounds(v any) int {
	list, _ := v.([]any)
	return 1 + bits.Len(uint(len(list)))
}

func halved(m *meter, in any, args []any) bool { return m.deepTimes(args[0], rounds(in)) }

// parts charges for copies of all elements, which share what is inside those.
func parts(m *meter, in any, _ []any) bool {
	if !m.charge(shallowCost(in)) {
		return false
	}
	switch v := in.(type) {
	case []any:
		for _, e := range v {
			if !m.charge(shallowCost(e)) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !m.charge(shallowCost(e)) {
				return false
			}
		}
	}
	return true
}

func joined(m *meter, in any, args []any) bool {
	list, _ := in.([]any)
	return parts(m, in, nil) && m.allocate(times(shallowCost(args[0]), len(list)))
}

// captured charges for the object of named groups.
func captured(m *meter, in any, _ []any) bool {
	groups, _ := in.([]any)
	return m.allocate(objectCost + memberCost*len(groups))
}

func transposed(m *meter, in any, _ []any) bool {
	list, _ := in.([]any)
	longest := 0
	for _, row := range list {
		if row, ok := row.([]any); ok {
			longest = max(longest, len(row))
		}
	}
	return m.charge(shallowCost(in)) && m.allocate(times(times(elementCost, len(list)), longest))
}

// contained charges for the larger value being read for each part of the smaller.
func contained(inside bool) price {
	return func(m *meter, in any, args []any) bool {
		outer, inner := in, args[0]
		if inside {
			outer, inner = inner, outer
		}
		before := m.work
		if !m.walk(inner, 0) {
			return false
		}
		return m.deepTimes(outer, 1+partsOf(before-m.work, inner))
	}
}

// partsOf estimates the number of parts of a value of this cost: text is searched in one go.
func partsOf(cost int, v any) int {
	if _, ok := v.(string); ok {
		return 1
	}
	return cost / (elementCost + scalarCost)
}

// searched charges for a search that compares at every position as long as it finds the same.
func searched(m *meter, in any, args []any) bool {
	switch v := in.(type) {
	case string:
		x, _ := args[0].(string)
		return m.charge(times(2*elementCost, len(v)+len(x))) && m.charge(times(len(v), len(x)/16))
	case []any:
		x, _ := args[0].([]any)
		return m.deepTimes(v, max(1, len(x)))
	}
	return true
}

// counted is for functions whose time grows with their first argument.
func counted(m *meter, _ any, args []any) bool {
	n, _ := gojq.ToFloat64(args[0])
	if math.IsNaN(n) {
		return true
	}
	return m.charge(int(min(8*math.Abs(n), math.MaxInt32)))
}

func formatted(m *meter, in any, args []any) bool {
	// A directive of a few characters can ask for a thousand.
	return m.charge(times(shallowCost(args[0]), 512)) && m.charge(shallowCost(in))
}
