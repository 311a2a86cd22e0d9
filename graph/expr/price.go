package expr

import (
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// sortFactor is how much more it takes to put the members of an object in order than to copy them.
const sortFactor = 4

// A price charges for one call and reports whether there was room.
type price func(m *meter, in any, args []any) bool

// charged calls the interpreter's function once the price is paid.
func charged(name string, pay price) native {
	return func(m *meter, in any, args []any) any {
		if !m.charge(callCost) || !pay(m, in, args) {
			return m.exceeded
		}
		return interpreted(m, name, in, args)
	}
}

// brokenDown charges for the parts of a time.
func brokenDown(m *meter, _ any, _ []any) bool { return m.allocate(24 * elementCost) }

func constant(cost int) price { return func(m *meter, _ any, _ []any) bool { return m.allocate(cost) } }

// copied charges for a copy of a list or an object's names, made factor times as large.
func copied(factor int) price {
	return func(m *meter, in any, _ []any) bool { return m.allocate(times(shallowCost(in), factor)) }
}

func deep(m *meter, in any, _ []any) bool { return m.deepTimes(in, 1) }

// deepTimes charges for v read factor times.
func (m *meter) deepTimes(v any, factor int) bool {
	units, ok := m.chargeDeep(v)
	return ok && m.spend(times(units, factor-1))
}

// flattened charges for a list of all that is in one.
func flattened(m *meter, in any, _ []any) bool {
	units, ok := m.chargeDeep(in)
	return ok && m.allocate(times(units, 2*bytesPerUnit)) // it grows
}

// written charges for the text of a value: plain are the characters that the format takes as they are; others may
// take six bytes each.
func written(plain *[256]bool) price {
	return func(m *meter, in any, _ []any) bool {
		return m.deepTimes(in, 2) && m.allocate(times(textSize(in, plain), textGrowth))
	}
}

// textGrowth is how many times its length a text takes while it is put together.
const textGrowth = 5

var (
	plainInFormats = characterSet(func(c int) bool {
		return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
	})
	plainInJSON = characterSet(func(c int) bool { return c >= ' ' && c != '"' && c != '\\' && c != 0x7F })
)

func characterSet(holds func(c int) bool) *[256]bool {
	var set [256]bool
	for c := range set {
		set[c] = holds(c)
	}
	return &set
}

// textSize is about the length of the text of a value.
func textSize(v any, plain *[256]bool) int {
	switch v := v.(type) {
	case string:
		size := len("''") + len(v)
		for i := range len(v) {
			if !plain[v[i]] {
				size += len("\\u000")
			}
		}
		return size
	case []any:
		size := len("[]")
		for _, e := range v {
			size += textSize(e, plain) + len(",")
		}
		return size
	case map[string]any:
		size := len("{}")
		for name, e := range v {
			size += textSize(name, plain) + textSize(e, plain) + len(":,")
		}
		return size
	}
	return 24
}

func deepArgument(m *meter, in any, args []any) bool {
	return m.charge(shallowCost(in)) && m.deepTimes(args[0], 1)
}

// characters charges for reading a text; other values are read at once.
func characters(m *meter, in any, _ []any) bool {
	s, _ := in.(string)
	return m.charge(len(s))
}

// changed charges for a text of the same length.
func changed(m *meter, in any, _ []any) bool {
	s, _ := in.(string)
	return m.allocate(len(s))
}

// exploded charges for a number for each character.
func exploded(m *meter, in any, _ []any) bool {
	s, _ := in.(string)
	return m.allocate(times(2*elementCost, utf8.RuneCountInString(s)))
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
	return m.charge(len(s)) && m.allocate(times(3*elementCost, strings.Count(s, separator)+1))
}

// sorted charges for the comparisons of a sort, and for its working memory.
func sorted(m *meter, in any, _ []any) bool {
	return m.allocate(sortedCost(in)) && m.deepTimes(in, roundsOf(in))
}

func sortedArgument(m *meter, in any, args []any) bool {
	return m.allocate(sortedCost(in)) && m.deepTimes(args[0], 1+roundsOf(args[0])/2) // the keys are in lists of their own
}

func sortedCost(in any) int { return times(shallowCost(in), 6) }

// rounds is how often each of n elements is compared when they are sorted.
func rounds(n int) int { return 1 + bits.Len(uint(n)) }

func roundsOf(v any) int {
	list, _ := v.([]any)
	return rounds(len(list))
}

func halved(m *meter, in any, args []any) bool { return m.deepTimes(args[0], roundsOf(in)) }

// parts charges for shallow copies of all elements.
func parts(m *meter, in any, _ []any) bool {
	sum := shallowCost(in)
	switch v := in.(type) {
	case []any:
		for _, e := range v {
			sum += shallowCost(e)
		}
	case map[string]any:
		for _, e := range v {
			sum += shallowCost(e)
		}
	}
	return m.charge(shallowCost(in)) && m.allocate(times(sum, 2)) // it grows
}

func joined(m *meter, in any, args []any) bool {
	list, _ := in.([]any)
	separator, _ := args[0].(string)
	return parts(m, in, nil) && m.allocate(times(len(separator), len(list)))
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
	return m.charge(shallowCost(in)) && m.allocate(times(elementCost*(len(list)+3), longest))
}

// contained charges for the larger value being read for each part of the smaller.
func contained(inside bool) price {
	return func(m *meter, in any, args []any) bool {
		outer, inner := in, args[0]
		if inside {
			outer, inner = inner, outer
		}
		units, ok := m.chargeDeep(inner)
		return ok && m.deepTimes(outer, 1+partsOf(units, inner))
	}
}

// partsOf estimates the number of parts of a value of this cost: text is searched in one go.
func partsOf(units int, v any) int {
	if _, ok := v.(string); ok {
		return 1
	}
	return units * bytesPerUnit / (elementCost + scalarCost)
}

// searched charges for a search that compares at every position as long as it finds the same. Texts are made lists of
// characters for it.
func searched(m *meter, in any, args []any) bool {
	switch v := in.(type) {
	case string:
		x, _ := args[0].(string)
		return m.allocate(times(2*elementCost, len(v)+len(x))) && m.hold(times(2*elementCost, len(v))) && m.searchedTimes(len(v), len(x))
	case []any:
		x, isList := args[0].([]any)
		if !isList {
			x = args[:1]
		}
		units, ok := m.chargeDeep(x)
		return ok && m.allocate(times(3*elementCost, len(v))) && m.spend(times(units, len(v))) && m.searchedTimes(len(v), 0)
	}
	return true
}

// searchedTimes charges for comparing n times, with up to k characters each.
func (m *meter) searchedTimes(n, k int) bool { return m.spend(times(n, compareUnits+k/2)) }

// compareUnits is the cost of a comparison of two lists, in units.
const compareUnits = 3

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
	return m.allocate(times(shallowCost(args[0]), 128)) && m.charge(shallowCost(in))
}
