package expr

import "strings"

// Programs build texts and lists by adding to what they have so far, in a reduce. The sum of such additions is
// quadratic if each one copies. These remember the last result that was long: where the next addition appends to
// exactly that result, it is written behind it in the same memory. What was handed out before ends where it ended and
// does not see it.

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
