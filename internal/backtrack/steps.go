package backtrack

import (
	"maps"
	"math"
	"slices"

	"github.com/dlclark/regexp2/v2/syntax"
)

// Steps is a bound on the steps of a search for all matches in a text, about ten nanoseconds each. It multiplies the ways through what
// follows each other, adds those of alternatives, and takes for a repeat of one kind of character the longest run of such characters in
// the text. What it cannot bound, and what is more than most, counts as math.MaxInt.
func (p *Pattern) Steps(text []rune, most int) int {
	reading := times(p.parts, len(text)+1) // for this bound itself
	if reading > most {
		return math.MaxInt
	}
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	e := estimate{text: text, alphabet: slices.Collect(maps.Keys(seen)), runs: map[*syntax.RegexNode]int{}, groups: map[int]int{}}
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

// parts counts the parts of an expression.
func parts(n *syntax.RegexNode) int {
	count := 1
	for _, below := range n.Children {
		count += parts(below)
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

// effort bounds what a part of an expression takes, once it is come to: the steps until all its ways are tried, the number of these
// ways, each of which what follows may be tried after, and the characters that one of them reads.
type effort struct{ steps, ways, length int }

type estimate struct {
	text []rune
	// alphabet are the characters of the text, each once.
	alphabet []rune
	// runs is the longest run of the characters of a node, groups the longest text of a group.
	runs   map[*syntax.RegexNode]int
	groups map[int]int
}

var unbounded = effort{math.MaxInt, math.MaxInt, math.MaxInt}

func (e *estimate) node(n *syntax.RegexNode) effort {
	switch n.T {
	case syntax.NtOne, syntax.NtNotone, syntax.NtSet:
		return effort{1, 1, 1}
	case syntax.NtMulti:
		return effort{len(n.Str), 1, len(n.Str)}
	case syntax.NtOneloop, syntax.NtNotoneloop, syntax.NtSetloop, syntax.NtOnelazy, syntax.NtNotonelazy, syntax.NtSetlazy:
		k := min(n.N, e.run(n))
		return effort{k + 1, max(1, k-n.M+1), k}
	case syntax.NtOneloopatomic, syntax.NtNotoneloopatomic, syntax.NtSetloopatomic:
		k := min(n.N, e.run(n))
		return effort{k + 1, 1, k}
	case syntax.NtRef:
		k, known := e.groups[n.M]
		if !known {
			k = len(e.text)
		}
		return effort{k + 1, 1, k}
	case syntax.NtBol, syntax.NtEol, syntax.NtBoundary, syntax.NtNonboundary, syntax.NtBeginning, syntax.NtStart, syntax.NtEndZ, syntax.NtEnd,
		syntax.NtECMABoundary, syntax.NtNonECMABoundary, syntax.NtNothing, syntax.NtEmpty, syntax.NtUpdateBumpalong, syntax.NtResetCapture:
		return effort{1, 1, 0}
	case syntax.NtGrapheme:
		return effort{len(e.text) + 1, 1, len(e.text)}
	case syntax.NtConcatenate:
		return e.sequence(n.Children)
	case syntax.NtAlternate, syntax.NtBackRefCond, syntax.NtExprCond:
		return e.alternatives(n.Children)
	case syntax.NtLoop, syntax.NtLazyloop:
		return e.repeat(n)
	case syntax.NtCapture, syntax.NtGroup:
		inside := e.sequence(n.Children)
		if n.T == syntax.NtCapture {
			e.groups[n.M] = min(inside.length, len(e.text))
		}
		return effort{plus(inside.steps, 1), inside.ways, inside.length}
	case syntax.NtPosLook, syntax.NtNegLook, syntax.NtAtomic:
		inside := e.sequence(n.Children)
		if n.T != syntax.NtAtomic {
			inside.length = 0
		}
		return effort{plus(inside.steps, 1), 1, inside.length}
	default:
		return unbounded
	}
}

// sequence is for parts that follow each other: each is come to once for every way through those before.
func (e *estimate) sequence(parts []*syntax.RegexNode) effort {
	all := effort{1, 1, 0}
	efforts := make([]effort, len(parts))
	for i, part := range parts { // in the order of writing: a reference needs its group
		efforts[i] = e.node(part)
	}
	if len(parts) > 0 && parts[0].Options&syntax.RightToLeft != 0 {
		// Look-behind reads backwards, and the engine keeps the parts in the order of writing or of reading: take the worse.
		sum := 0
		for _, x := range efforts {
			all.ways, all.length, sum = times(all.ways, x.ways), plus(all.length, x.length), plus(sum, x.steps)
		}
		all.steps = times(all.ways, plus(sum, 1))
		return all
	}
	for _, x := range efforts {
		all = effort{plus(all.steps, times(all.ways, x.steps)), times(all.ways, x.ways), plus(all.length, x.length)}
	}
	return all
}

// alternatives are ways of their own, unless no character of the text can begin two of them.
func (e *estimate) alternatives(parts []*syntax.RegexNode) effort {
	all, most := effort{1, 0, 0}, 1
	for _, part := range parts {
		x := e.node(part)
		all = effort{plus(all.steps, plus(x.steps, 1)), plus(all.ways, x.ways), max(all.length, x.length)}
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

// first is the part that reads the first character of an expression, nil if it is not known or there may be none.
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

// repeat is for a repeat of more than a character. Each round but the required ones reads something.
func (e *estimate) repeat(n *syntax.RegexNode) effort {
	round, rounds := e.sequence(n.Children), plus(n.M, len(e.text))
	if read, ok := readers(n.Children); ok {
		rounds = plus(n.M, e.longest(read...)/max(1, shortest(n.Children)))
	}
	rounds = min(rounds, n.N)
	length := min(len(e.text), times(rounds, round.length))
	if round.ways == 1 {
		return effort{times(plus(rounds, 1), plus(round.steps, 1)), plus(rounds, 1), length}
	}
	steps, ways, reached := 1, 1, 1
	for range rounds {
		steps = plus(steps, times(reached, plus(round.steps, 1)))
		reached = times(reached, round.ways)
		ways = plus(ways, reached)
		if steps == math.MaxInt {
			return unbounded
		}
	}
	return effort{steps, ways, length}
}

// readers are the parts of expressions that read characters. ok is false if there are others that do.
func readers(parts []*syntax.RegexNode) (list []*syntax.RegexNode, ok bool) {
	for _, n := range parts {
		switch n.T {
		case syntax.NtRef, syntax.NtGrapheme:
			return nil, false
		case syntax.NtPosLook, syntax.NtNegLook:
			continue
		}
		switch {
		case isLoop(n), n.T == syntax.NtOne, n.T == syntax.NtNotone, n.T == syntax.NtSet, n.T == syntax.NtMulti:
			list = append(list, n)
			continue
		}
		below, ok := readers(n.Children)
		if !ok {
			return nil, false
		}
		list = append(list, below...)
	}
	return list, true
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

// shortest is the least number of characters that expressions which follow each other read.
func shortest(parts []*syntax.RegexNode) int {
	sum := 0
	for _, n := range parts {
		switch {
		case n.T == syntax.NtMulti:
			sum = plus(sum, len(n.Str))
		case n.T == syntax.NtOne, n.T == syntax.NtNotone, n.T == syntax.NtSet:
			sum++
		case isLoop(n):
			sum = plus(sum, n.M)
		case n.T == syntax.NtConcatenate, n.T == syntax.NtCapture, n.T == syntax.NtGroup, n.T == syntax.NtAtomic:
			sum = plus(sum, shortest(n.Children))
		case n.T == syntax.NtAlternate:
			least := math.MaxInt
			for i := range n.Children {
				least = min(least, shortest(n.Children[i:i+1]))
			}
			sum = plus(sum, least)
		case n.T == syntax.NtLoop, n.T == syntax.NtLazyloop:
			sum = plus(sum, times(n.M, shortest(n.Children)))
		}
	}
	return sum
}

// run is the longest run in the text of the characters that a node repeats.
func (e *estimate) run(n *syntax.RegexNode) int {
	if _, known := e.runs[n]; !known {
		e.runs[n] = e.longest(n)
	}
	return e.runs[n]
}

// longest is the longest run in the text of characters that one of the nodes reads.
func (e *estimate) longest(nodes ...*syntax.RegexNode) int {
	longest, now := 0, 0
	for _, r := range e.text {
		if now++; !slices.ContainsFunc(nodes, func(n *syntax.RegexNode) bool { return accepts(n, r) || slices.Contains(n.Str, r) }) {
			now = 0
		}
		longest = max(longest, now)
	}
	return longest
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
