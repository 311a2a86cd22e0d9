package expr

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The operators of jq, computing in doubles as the protocol does (spec: definition, 14.3) where the interpreter has
// integers of any length. Integers of up to 2^53 stay of Go's type int, which the interpreter is faster with.

const maxExactInt = 1 << 53

// native is a function of this package that programs call in place of one of the interpreter's: in is the value at
// the left of the pipe. A result that is an error is raised. args must not be kept.
type native func(m *meter, in any, args []any) any

// fault is an error that programs can catch. It names types, never values.
type fault struct{ text string }

func (f *fault) Error() string { return f.text }

func faultf(format string, args ...any) *fault { return &fault{fmt.Sprintf(format, args...)} }

func exactInts(l, r any) (a, b int, ok bool) {
	a, aOK := l.(int)
	b, bOK := r.(int)
	return a, b, aOK && bOK && isExact(a) && isExact(b)
}

func isExact(i int) bool { return i >= -maxExactInt && i <= maxExactInt }

// doubleOr returns an integer if a double holds it exactly, else the nearest double.
func doubleOr(i int) any {
	if isExact(i) {
		return i
	}
	return float64(i)
}

func numbers(l, r any) (a, b float64, ok bool) {
	a, aOK := gojq.ToFloat64(l)
	b, bOK := gojq.ToFloat64(r)
	return a, b, aOK && bOK
}

func add(m *meter, _ any, args []any) any {
	l, r := args[0], args[1]
	if a, b, ok := exactInts(l, r); ok {
		return doubleOr(a + b)
	}
	if a, b, ok := numbers(l, r); ok {
		return a + b
	}
	switch a := l.(type) {
	case nil:
		return r
	case string:
		if b, ok := r.(string); ok {
			return m.texts.add(m, a, b)
		}
	case []any:
		if b, ok := r.([]any); ok {
			return addLists(m, a, b)
		}
	case map[string]any:
		if b, ok := r.(map[string]any); ok {
			return addObjects(m, a, b)
		}
	}
	if r == nil {
		return l
	}
	return faultf("cannot add %s and %s", typeName(l), typeName(r))
}

func addLists(m *meter, a, b []any) any {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	return m.lists.add(m, a, b)
}

func addObjects(m *meter, a, b map[string]any) any {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	case !m.allocateObject(len(a) + len(b)):
		return m.exceeded
	}
	sum := make(map[string]any, len(a)+len(b))
	maps.Copy(sum, a)
	maps.Copy(sum, b)
	return sum
}

func subtract(m *meter, _ any, args []any) any {
	l, r := args[0], args[1]
	if a, b, ok := exactInts(l, r); ok {
		return doubleOr(a - b)
	}
	if a, b, ok := numbers(l, r); ok {
		return a - b
	}
	if a, ok := l.([]any); ok {
		if b, ok := r.([]any); ok {
			return subtractLists(m, a, b)
		}
	}
	return faultf("cannot subtract %s and %s", typeName(l), typeName(r))
}

func subtractLists(m *meter, a, b []any) any {
	if !m.charge(elementCost * len(a)) {
		return m.exceeded
	}
	rest := make([]any, 0, len(a))
next:
	for _, x := range a {
		for _, y := range b {
			if m.compare(x, y, 0) == 0 {
				continue next
			}
		}
		if m.exceeded != nil {
			return m.exceeded
		}
		rest = append(rest, x)
	}
	return rest
}

func multiply(m *meter, _ any, args []any) any {
	l, r := args[0], args[1]
	if a, b, ok := numbers(l, r); ok {
		product := a * b
		if x, y, ok := exactInts(l, r); ok && math.Abs(product) <= maxExactInt {
			return x * y
		}
		return product
	}
	if a, ok := l.(map[string]any); ok {
		if b, ok := r.(map[string]any); ok {
			return merge(m, a, b, 0)
		}
	}
	if s, ok := l.(string); ok {
		if n, ok := gojq.ToFloat64(r); ok {
			return repeatString(m, s, n)
		}
	}
	if s, ok := r.(string); ok {
		if n, ok := gojq.ToFloat64(l); ok {
			return repeatString(m, s, n)
		}
	}
	return faultf("cannot multiply %s and %s", typeName(l), typeName(r))
}

// repeatString truncates the count; a negative one and NaN yield null.
func repeatString(m *meter, s string, n float64) any {
	if n < 0 || math.IsNaN(n) {
		return nil
	}
	count := int(min(n, math.MaxInt32))
	if !m.allocate(times(len(s), count)) {
		return m.exceeded
	}
	return strings.Repeat(s, count)
}

// merge is the sum of two objects; objects under the same name are merged too.
func merge(m *meter, a, b map[string]any, depth int) any {
	if depth > maxDepth {
		return m.exceed(overWork)
	}
	if !m.allocateObject(len(a) + len(b)) {
		return m.exceeded
	}
	merged := make(map[string]any, len(a)+len(b))
	maps.Copy(merged, a)
	for name, y := range b {
		if x, ok := merged[name].(map[string]any); ok {
			if y, ok := y.(map[string]any); ok {
				both := merge(m, x, y, depth+1)
				if err, ok := both.(error); ok {
					return err
				}
				merged[name] = both
				continue
			}
		}
		merged[name] = y
	}
	return merged
}

func divide(m *meter, _ any, args []any) any {
	l, r := args[0], args[1]
	if a, b, ok := numbers(l, r); ok {
		if b == 0 {
			return faultf("cannot divide by zero")
		}
		if x, y, ok := exactInts(l, r); ok && x%y == 0 {
			return x / y
		}
		return a / b
	}
	if _, ok := l.(string); ok {
		if _, ok := r.(string); ok {
			return split(m, l, []any{r})
		}
	}
	return faultf("cannot divide %s and %s", typeName(l), typeName(r))
}

// modulo computes with the whole parts; its sign is that of the left operand.
func modulo(_ *meter, _ any, args []any) any {
	l, r := args[0], args[1]
	a, b, ok := numbers(l, r)
	if !ok {
		return faultf("cannot modulo %s and %s", typeName(l), typeName(r))
	}
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	x, _ := gojq.ToInt(l)
	y, _ := gojq.ToInt(r)
	switch y {
	case 0:
		return faultf("cannot modulo by zero")
	case -1:
		return 0 // the smallest integer has no negative
	}
	return doubleOr(x % y)
}

func comparison(holds func(c int) bool) native {
	return func(m *meter, _ any, args []any) any { return holds(m.compare(args[0], args[1], 0)) }
}

// Programs build texts and lists by repeated addition in a reduce, which is quadratic if each addition copies. These
// remember the last long result: an addition to exactly that result is written behind it in the same memory. Earlier
// results keep their length and do not see it.

const (
	longText = 1 << 10 // bytes
	longList = 1 << 6  // elements
)

// textAppender remembers the last long text.
type textAppender struct{ last *strings.Builder }

func (a *textAppender) add(m *meter, l, r string) any {
	if len(l) < longText {
		if !m.allocate(len(l) + len(r)) {
			return m.exceeded
		}
		return l + r
	}
	if a.last == nil || a.last.Len() != len(l) || a.last.String() != l {
		if !m.allocate(2 * len(l)) {
			return m.exceeded
		}
		a.last = new(strings.Builder)
		a.last.Grow(2 * len(l))
		a.last.WriteString(l)
	}
	// Growing doubles the memory, so that each byte is paid for several times.
	if !m.allocate(4 * len(r)) {
		return m.exceeded
	}
	a.last.WriteString(r)
	return a.last.String()
}

// listAppender remembers the last long list.
type listAppender struct{ last []any }

func (a *listAppender) add(m *meter, l, r []any) any {
	if len(l) < longList {
		if !m.allocate(elementCost * (len(l) + len(r))) {
			return m.exceeded
		}
		sum := make([]any, len(l)+len(r))
		copy(sum, l)
		copy(sum[len(l):], r)
		return sum
	}
	if len(a.last) != len(l) || &a.last[0] != &l[0] {
		if !m.allocate(2 * elementCost * len(l)) {
			return m.exceeded
		}
		a.last = append(make([]any, 0, 2*len(l)), l...)
	}
	if !m.allocate(4 * elementCost * len(r)) {
		return m.exceeded
	}
	a.last = append(a.last, r...)
	return a.last[:len(a.last):len(a.last)]
}

// compare is gojq.Compare, charged by the bytes read. It returns 0 at a limit.
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
