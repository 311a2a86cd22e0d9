package backtrack

import (
	"math"
	"slices"
	"strings"

	"github.com/dlclark/regexp2/v2/syntax"
)

// Steps is a bound on the steps of a search for all matches in a text; a step takes about ten nanoseconds. It
// multiplies the ways through parts in sequence, adds those of alternatives, and takes for a repeat of one kind of
// character the longest run of such characters in the text. A search without a bound, or with one above most, counts
// as math.MaxInt.
func (p *Pattern) Steps(text []rune, most int) int {
	reading := times(p.parts, len(text)+1) // for this bound itself
	if reading > most {
		return math.MaxInt
	}
	e := estimate{text: make([]int, len(text)), groups: map[int]int{}, classes: p.classes}
	numbers := map[rune]int{}
	for i, r := range text {
		n, known := numbers[r]
		if !known {
			n = len(e.alphabet)
			numbers[r], e.alphabet = n, append(e.alphabet, r)
		}
		e.text[i] = n
	}
	once := e.node(p.root)
	starts := len(text) + 1
	if anchored(p.root) {
		starts = 1
	}
	if steps := plus(reading, times(2*starts, once.steps)); steps <= most {
		return steps
	}
	return math.MaxInt
}

// weigh counts the parts of an expression: each character of a string is a part, and so is each Unicode class of a
// set, because each is looked up.
func (p *Pattern) weigh(n *syntax.RegexNode) int {
	count := 1 + len(n.Str)
	if n.Set != nil {
		if classes := strings.Count(strings.ToLower(n.Set.String()), `\p`); classes > 0 {
			p.classes[n] = classes
			count += classes
		}
	}
	for _, below := range n.Children {
		count += p.weigh(below)
	}
	return count
}

// anchored reports whether an expression can match at the beginning of the text only.
func anchored(n *syntax.RegexNode) bool {
	switch n.T {
	case syntax.NtBeginning:
		return true
	case syntax.NtCapture, syntax.NtGroup, syntax.NtAtomic, syntax.NtConcatenate:
		return len(n.Children) > 0 && anchored(n.Children[0])
	default:
		return false
	}
}

// effort bounds the cost of a part of an expression: the steps to try all its ways, the number of ways, after each of
// which the next part may be tried, and the characters that one of them reads: at most, at least, and which.
type effort struct {
	steps, ways, length, least int
	reads                      set
}

type estimate struct {
	// text are the characters of the text, by their places in alphabet, which holds each of them once.
	text     []int
	alphabet []rune
	// groups is the longest text of a group.
	groups map[int]int
	// classes are the numbers of Unicode's classes in sets.
	classes map[*syntax.RegexNode]int
}

func (e *estimate) unbounded() effort {
	return effort{steps: math.MaxInt, ways: math.MaxInt, length: math.MaxInt, reads: e.all()}
}

func (e *estimate) node(n *syntax.RegexNode) effort {
	switch n.T {
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet:
		return effort{1 + e.classes[n], 1, 1, 1, e.read(n)}
	case syntax.NtMulti:
		return effort{len(n.Str), 1, len(n.Str), len(n.Str), e.read(n)}
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop, syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy:
		reads := e.read(n)
		k := min(n.N, e.longest(reads))
		return effort{times(k+1, 1+e.classes[n]), max(1, k-n.M+1), k, n.M, reads}
	case syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		reads := e.read(n)
		k := min(n.N, e.longest(reads))
		return effort{times(k+1, 1+e.classes[n]), 1, k, n.M, reads}
	case syntax.NtRef:
		k, known := e.groups[n.M]
		if !known {
			k = len(e.text)
		}
		return effort{k + 1, 1, k, 0, e.all()}
	case syntax.NtBol, syntax.NtEol, syntax.NtBoundary, syntax.NtNonboundary, syntax.NtBeginning, syntax.NtStart, syntax.NtEndZ, syntax.NtEnd,
		syntax.NtECMABoundary, syntax.NtNonECMABoundary, syntax.NtNothing, syntax.NtEmpty, syntax.NtUpdateBumpalong, syntax.NtResetCapture:
		return effort{steps: 1, ways: 1}
	case syntax.NtGrapheme:
		return effort{len(e.text) + 1, 1, len(e.text), 0, e.all()}
	case syntax.NtConcatenate:
		return e.sequence(n.Children)
	case syntax.NtAlternate, syntax.NtBackRefCond, syntax.NtExprCond:
		x := e.alternatives(n.Children)
		if n.T != syntax.NtAlternate {
			x.least = 0
		}
		return x
	case syntax.NtLoop, syntax.NtLazyloop:
		return e.repeat(n)
	case syntax.NtCapture, syntax.NtGroup:
		x := e.sequence(n.Children)
		if n.T == syntax.NtCapture {
			e.groups[n.M] = max(e.groups[n.M], min(x.length, len(e.text)))
		}
		x.steps = plus(x.steps, 1)
		return x
	case syntax.NtPosLook, syntax.NtNegLook, syntax.NtAtomic:
		x := e.sequence(n.Children)
		x.steps, x.ways = plus(x.steps, 1), 1
		if n.T != syntax.NtAtomic {
			x.length, x.least, x.reads = 0, 0, nil
		}
		return x
	default:
		return e.unbounded()
	}
}

// sequence is for parts that follow each other: each is come to once for every way through those before.
func (e *estimate) sequence(parts []*syntax.RegexNode) effort {
	all, sum := effort{steps: 1, ways: 1}, 1
	for _, part := range parts { // in the order of writing: a reference needs its group
		x := e.node(part)
		all = effort{
			plus(all.steps, times(all.ways, x.steps)), times(all.ways, x.ways), plus(all.length, x.length), plus(all.least, x.least), union(all.reads, x.reads),
		}
		sum = plus(sum, x.steps)
	}
	if len(parts) > 0 && parts[0].Options&syntax.RightToLeft != 0 {
		// Look-behind reads backwards, and the engine keeps the parts in the order of writing or of reading: take the worse.
		all.steps = times(all.ways, sum)
	}
	return all
}

// alternatives are ways of their own, unless no character of the text can begin two of them.
func (e *estimate) alternatives(parts []*syntax.RegexNode) effort {
	all, most := effort{steps: 1, least: math.MaxInt}, 1
	for _, part := range parts {
		x := e.node(part)
		all = effort{
			plus(all.steps, plus(x.steps, 1)), plus(all.ways, x.ways), max(all.length, x.length), min(all.least, x.least), union(all.reads, x.reads),
		}
		most = max(most, x.ways)
	}
	if all.ways = max(1, all.ways); e.exclusive(parts) {
		all.ways = most
	}
	return all
}

func (e *estimate) exclusive(list []*syntax.RegexNode) bool {
	firsts := make([]*syntax.RegexNode, len(list))
	for i, part := range list {
		if firsts[i] = first(part); firsts[i] == nil {
			return false
		}
	}
	for _, r := range e.alphabet {
		beginning := 0
		for _, n := range firsts {
			if accepts(n, r) {
				beginning++
			}
		}
		if beginning > 1 {
			return false
		}
	}
	return true
}

// first is the part that reads the first character of an expression, nil if it is unknown or optional.
func first(n *syntax.RegexNode) *syntax.RegexNode {
	if n.Options&syntax.RightToLeft != 0 {
		return nil
	}
	switch n.T {
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet, syntax.NtMulti:
		return n
	case syntax.NtConcatenate, syntax.NtCapture, syntax.NtGroup, syntax.NtAtomic:
		if len(n.Children) > 0 {
			return first(n.Children[0])
		}
	}
	if isLoop(n) && n.M > 0 {
		return n
	}
	return nil
}

// accepts reports whether a part that reads characters may begin with r.
func accepts(n *syntax.RegexNode, r rune) bool {
	switch n.T {
	case syntax.NtOne, syntax.NtOneloop, syntax.NtOnelazy, syntax.NtOneloopatomic:
		return r == n.Ch
	case syntax.NtNotone, syntax.NtNotoneloop, syntax.NtNotonelazy, syntax.NtNotoneloopatomic:
		return r != n.Ch
	case syntax.NtMulti:
		return r == n.Str[0]
	default:
		return n.Set.CharIn(r)
	}
}

// repeat is for a repeat of more than a character. Each round but the required ones reads something, and the last one may read nothing.
func (e *estimate) repeat(n *syntax.RegexNode) effort {
	round := e.sequence(n.Children)
	reading := e.longest(round.reads) / max(1, round.least)
	if round.least == 0 {
		reading++
	}
	rounds := min(plus(n.M, reading), n.N)
	all := effort{
		length: min(len(e.text), times(rounds, round.length)), least: times(n.M, round.least), reads: round.reads,
	}
	if round.ways == 1 {
		all.steps, all.ways = times(plus(rounds, 1), plus(round.steps, 1)), plus(rounds, 1)
		return all
	}
	all.steps, all.ways = 1, 1
	reached := 1
	for i := 0; i <= rounds && i < n.N; i++ { // one more than can succeed is tried
		all.steps = plus(all.steps, times(reached, plus(round.steps, 1)))
		if all.steps == math.MaxInt {
			return e.unbounded()
		}
		if i < rounds {
			reached = times(reached, round.ways)
			all.ways = plus(all.ways, reached)
		}
	}
	return all
}

// set holds characters by their places in the alphabet.
type set []uint64

func union(a, b set) set {
	if a == nil {
		return b
	}
	for i := range b {
		a[i] |= b[i]
	}
	return a
}

func (e *estimate) all() set {
	s := make(set, len(e.alphabet)/64+1)
	for i := range s {
		s[i] = math.MaxUint64
	}
	return s
}

// read returns the characters of the text that a part which reads characters accepts somewhere.
func (e *estimate) read(n *syntax.RegexNode) set {
	s := make(set, len(e.alphabet)/64+1)
	for i, r := range e.alphabet {
		if accepts(n, r) || slices.Contains(n.Str, r) {
			s[i/64] |= 1 << (i % 64)
		}
	}
	return s
}

// longest is the length of the longest run of some characters in the text.
func (e *estimate) longest(s set) int {
	longest, now := 0, 0
	for _, i := range e.text {
		if now++; s == nil || s[i/64]&(1<<(i%64)) == 0 {
			now = 0
		}
		longest = max(longest, now)
	}
	return longest
}

func isLoop(n *syntax.RegexNode) bool {
	switch n.T {
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop, syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy,
		syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		return true
	default:
		return false
	}
}

// plus and times stay at the top instead of overflowing.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func times(a, b int) int {
	if a > 0 && b > math.MaxInt/a {
		return math.MaxInt
	}
	return a * b
}
