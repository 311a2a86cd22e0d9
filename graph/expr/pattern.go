package expr

import (
	"math"
	"regexp/syntax"
	"sync"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/backtrack"
)

// pattern is a compiled regular expression, for texts of one kind (notation).
type pattern struct {
	// program is nil if only the other engine can run the expression.
	program *syntax.Prog
	other   *backtrack.Pattern
	// prefix begins every match; atBegin is set if a match begins at the start of the text.
	prefix  string
	atBegin bool
	longest bool
	// names are the names of the groups; the first group is the whole match.
	names []string
}

// Bounds of the cache of compiled expressions, which programs can make from data.
const (
	maxPatterns    = 256
	maxCachedBytes = 64 << 10
)

var patterns = struct {
	sync.Mutex
	byKey map[patternKey]*pattern
}{byKey: map[patternKey]*pattern{}}

// regexpFlags are jq's flags of regular expressions.
type regexpFlags struct {
	all, longest, notEmpty, extended bool
	// prefix is the flags in Go's notation.
	prefix string
}

func readFlags(flags string) (f regexpFlags, err error) {
	for _, flag := range flags {
		switch flag {
		case 'g':
			f.all = true
		case 'i':
			f.prefix += "(?i)"
		case 'm', 'p':
			f.prefix += "(?s)"
		case 'l':
			f.longest = true
		case 'n':
			f.notEmpty = true
		case 's': // ^ and $ do not stand at each line, without it either
		case 'x':
			f.extended = true
		default:
			return f, faultf("unsupported regular expression flag; there are g, i, l, m, n, p, s and x")
		}
	}
	return f, nil
}

// patternKey is all that a compiled expression depends on.
type patternKey struct {
	expression, prefix string
	longest            bool
	notation
}

// compilePattern compiles an expression for a text.
func compilePattern(m *meter, expression string, f regexpFlags, text string) (*search, error) {
	if !m.charge(len(expression)) {
		return nil, m.exceeded
	}
	key := patternKey{expression, f.prefix, f.longest, notationFor(text, f.extended)}
	if s := m.patterns[key]; s != nil {
		return s, nil
	}
	// Charged whether it is in the common cache or not: the cost of a program must not depend on other evaluations.
	if !m.charge(times(len(expression), parseCost)) {
		return nil, m.exceeded
	}
	translated, classes := key.translate(expression)
	if classes > maxClasses {
		return nil, faultf("the regular expression has too many classes such as \\w")
	}
	if !m.allocate(times(classes, classCost)) {
		return nil, m.exceeded
	}
	p, size, err := cachedPattern(key, f.prefix+translated)
	if err != nil {
		return nil, faultf("invalid regular expression")
	}
	if !m.allocate(times(size, instructionCost)) {
		return nil, m.exceeded
	}
	if p == nil {
		return nil, m.exceed(overWork)
	}
	s, ok := newSearch(m, p)
	if !ok {
		return nil, m.exceeded
	}
	if m.patterns == nil || len(m.patterns) >= maxPatterns {
		m.patterns = map[patternKey]*search{}
	}
	m.patterns[key] = s
	return s, nil
}

const (
	// parseCost is work for each byte of an expression, classCost for each class of Unicode in it, instructionCost for
	// each instruction that it compiles to.
	parseCost       = 4 * bytesPerUnit
	classCost       = 32 << 10
	instructionCost = 10 * bytesPerUnit
	// maxInstructions bounds the size of a compiled expression: repeats of repeats multiply.
	maxInstructions = 20_000
)

// cachedPattern returns a compiled expression and its size; nil is one of more than maxInstructions.
func cachedPattern(key patternKey, text string) (p *pattern, size int, err error) {
	patterns.Lock()
	p = patterns.byKey[key]
	patterns.Unlock()
	if p != nil {
		return p, p.size(text), nil
	}
	if p, size, err = newPattern(text, len(key.expression), key.longest); p == nil {
		return nil, size, err
	}
	patterns.Lock()
	defer patterns.Unlock()
	if len(patterns.byKey) >= maxPatterns {
		clear(patterns.byKey)
	}
	if len(key.expression)+len(text) <= maxCachedBytes {
		patterns.byKey[key] = p
	}
	return p, size, nil
}

// newPattern compiles the translation of an expression of so many bytes.
func newPattern(text string, written int, longest bool) (p *pattern, size int, err error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		if longest || written > backtrack.MaxPattern {
			return nil, 0, err
		}
		other, err := backtrack.Compile(text, backtrack.Go)
		if err != nil {
			return nil, 0, err
		}
		p = &pattern{other: other, names: other.Groups()}
		return p, p.size(text), nil
	}
	if size = instructions(tree); size > maxInstructions {
		return nil, size, nil
	}
	names := tree.CapNames()
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, 0, err
	}
	p = &pattern{program: program, longest: longest, names: names}
	p.prefix, _ = program.Prefix()
	p.atBegin = program.StartCond()&syntax.EmptyBeginText != 0
	return p, p.size(text), nil
}

// size is the number of instructions of a compiled expression, or an equivalent of its compile time.
func (p *pattern) size(text string) int {
	if p.program == nil {
		return max(len(text), p.other.Compiling()/(otherSteps*instructionCost/bytesPerUnit))
	}
	return len(p.program.Inst)
}

// ValidRegexp reports whether one of the engines can run an expression.
func ValidRegexp(expression string) bool {
	text, _ := notation{unicode: true, lineEnd: true}.translate(expression)
	_, _, err := newPattern(text, len(expression), false)
	return err == nil
}

// instructions is about the number of instructions that a parsed expression compiles to.
func instructions(tree *syntax.Regexp) int {
	sum := 1 + len(tree.Rune)/2
	if tree.Op == syntax.OpLiteral {
		sum = len(tree.Rune)
	} else if tree.Op == syntax.OpCharClass {
		sum = 1
	}
	for _, part := range tree.Sub {
		sum = min(sum+instructions(part), math.MaxInt32)
	}
	switch tree.Op {
	case syntax.OpRepeat:
		return times(sum+1, max(tree.Min, tree.Max, 1))
	case syntax.OpCapture:
		return sum + 1
	}
	return sum
}

// matches reports whether the expression matches somewhere in a text.
func (s *search) matches(m *meter, text string) (bool, error) {
	if s.program != nil {
		found, ok := s.find(m, text, 0, 0)
		if !ok {
			return false, m.exceeded
		}
		return found != nil, nil
	}
	runes, ok := s.chargeOther(m, text)
	if !ok {
		return false, m.exceeded
	}
	found, err := s.other.Match(runes)
	if err != nil {
		return false, m.exceed(overWork)
	}
	return found, nil
}

// chargeOther charges for all that the other engine may do, and returns the text as it needs it.
func (s *search) chargeOther(m *meter, text string) (runes []rune, ok bool) {
	if !m.allocate(times(len(text), otherCost)) {
		return nil, false
	}
	runes = []rune(text)
	steps := s.other.Steps(runes, times(m.units, otherSteps))
	// The engine keeps its alternatives, up to a bound of its own.
	return runes, m.spend(steps/otherSteps) && m.hold(min(times(steps, 8), otherMemory))
}

const (
	// otherCost is work and memory for each byte of a text for the other engine, otherSteps how many of its steps are a
	// unit, otherMemory the most that it keeps.
	otherCost   = 16
	otherSteps  = 4
	otherMemory = 8 << 20
	// matchBytes is the size of a match in a list, groupBytes that of each group, spareMatchBytes the extra size
	// while the list grows.
	matchBytes      = 48
	groupBytes      = 16
	spareMatchBytes = 64
)

// findAll returns the byte offsets of matches and their groups, as package regexp does, those that the flags ask for.
func (s *search) findAll(m *meter, text string, f regexpFlags) ([][]int, error) {
	next := func(from int) ([]int, bool) { return s.find(m, text, from, 2*len(s.names)) }
	if s.program == nil {
		runes, ok := s.chargeOther(m, text)
		if !ok {
			return nil, m.exceeded
		}
		others, err := s.other.Find(runes, f.all || f.notEmpty)
		if err != nil {
			return nil, m.exceed(overWork)
		}
		inBytes(others, text)
		next = func(int) (match []int, ok bool) {
			if len(others) > 0 {
				match, others = others[0], others[1:]
			}
			return match, true
		}
	}
	var found [][]int
	for from := 0; from <= len(text); {
		match, ok := next(from)
		if !ok || match != nil && (!m.allocate(matchBytes+groupBytes*len(s.names)) || !m.hold(spareMatchBytes)) {
			return nil, m.exceeded
		}
		if match == nil {
			break
		}
		if from = match[1]; match[0] == match[1] {
			_, width := runeAt(text, from)
			from += max(width, 1)
		}
		if f.notEmpty && match[0] == match[1] {
			continue
		}
		if found = append(found, match); !f.all {
			break
		}
	}
	m.release(spareMatchBytes * len(found))
	return found, nil
}

// inBytes turns offsets in characters into offsets in bytes.
func inBytes(found [][]int, text string) {
	if len(found) == 0 || utf8.RuneCountInString(text) == len(text) {
		return
	}
	offsets := make([]int, 0, len(text)+1)
	for i := range text {
		offsets = append(offsets, i)
	}
	offsets = append(offsets, len(text))
	for _, match := range found {
		for i, at := range match {
			if at >= 0 {
				match[i] = offsets[at]
			}
		}
	}
}
