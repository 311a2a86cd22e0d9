package expr

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/backtrack"
)

// pattern is a compiled regular expression, for texts of one kind (notation).
type pattern struct {
	// re is nil if only the other engine can run the expression.
	re    *regexp.Regexp
	other *backtrack.Pattern
	// after is one character followed by the expression: it finds an empty match right at the end of another one, which
	// jq reports and Go's package leaves out, without losing sight of the character before.
	after *regexp.Regexp
	// size is the number of instructions it compiles to, which the time of a search grows with.
	size int
	// compiling is the work of compiling it.
	compiling int
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
	// prefix is what Go has for flags.
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
func compilePattern(m *meter, expression string, f regexpFlags, text string) (*pattern, error) {
	if !m.charge(len(expression)) {
		return nil, m.exceeded
	}
	key := patternKey{expression, f.prefix, f.longest, notationFor(text, f.extended)}
	p := m.patterns[key]
	if p == nil {
		// Charged whether it is in the common cache or not: what a program may do must not depend on what others did before.
		if !m.charge(times(len(expression), searchCost)) {
			return nil, m.exceeded
		}
		translated, classes := key.translate(expression)
		if classes > maxClasses {
			return nil, faultf("the regular expression has too many classes such as \\w")
		}
		if !m.charge(times(classes, classCost)) {
			return nil, m.exceeded
		}
		var err error
		if p, err = cachedPattern(key, f.prefix+translated); err != nil {
			return nil, faultf("invalid regular expression")
		}
		if !m.charge(p.compiling) {
			return nil, m.exceeded
		}
		if m.patterns == nil || len(m.patterns) >= maxPatterns {
			m.patterns = map[patternKey]*pattern{}
		}
		m.patterns[key] = p
	}
	if !m.charge(times(p.size, p.size) / compileDivisor) {
		return nil, m.exceeded
	}
	return p, nil
}

func cachedPattern(key patternKey, text string) (*pattern, error) {
	patterns.Lock()
	p := patterns.byKey[key]
	patterns.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := newPattern(text, len(key.expression), key.longest)
	if err != nil {
		return nil, err
	}
	patterns.Lock()
	defer patterns.Unlock()
	if len(patterns.byKey) >= maxPatterns {
		clear(patterns.byKey)
	}
	if len(key.expression)+len(text) <= maxCachedBytes {
		patterns.byKey[key] = p
	}
	return p, nil
}

// newPattern compiles the translation of an expression of so many bytes.
func newPattern(text string, written int, longest bool) (*pattern, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		if longest || written > backtrack.MaxPattern {
			return nil, err
		}
		other, err := backtrack.Compile(text, backtrack.Go)
		if err != nil {
			return nil, err
		}
		return &pattern{other: other, compiling: max(otherCompileCost*len(text), other.Compiling())}, nil
	}
	p := &pattern{re: re, size: instructions(text)}
	if after, err := regexp.Compile(`\A(?s:.)(?:` + text + `)`); err == nil {
		p.after = after
		if longest {
			after.Longest()
		}
	}
	if longest {
		re.Longest()
	}
	return p, nil
}

// ValidRegexp reports whether an expression is one for one of the engines.
func ValidRegexp(expression string) bool {
	text, _ := notation{unicode: true, lineEnd: true}.translate(expression)
	_, err := newPattern(text, len(expression), false)
	return err == nil
}

func instructions(text string) int {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}

const (
	// compileDivisor makes expressions of ordinary size cheap and those of millions of instructions too expensive.
	compileDivisor = 64
	// classCost is work for each class of Unicode to compile, otherCompileCost for each byte of an expression for the other engine.
	classCost        = 96 << 10
	otherCompileCost = 128
	// searchCost is work for each byte of a text to search, and searchDivisor the instructions for one more.
	searchCost    = 4
	searchDivisor = 64
	// matchCost is work for each match: an object of four members, and captures of the same size.
	matchCost = objectCost + 2*memberCost
)

// chargeSearch charges for one pass over a text, and returns it as the other engine needs it.
func (p *pattern) chargeSearch(m *meter, text string) (runes []rune, ok bool) {
	if p.re != nil {
		return nil, m.charge(times(len(text), searchCost+p.size/searchDivisor))
	}
	if !m.charge(times(len(text), searchCost)) {
		return nil, false
	}
	runes = []rune(text)
	return runes, m.charge(p.other.Steps(runes, m.work))
}

// groups are the names of the groups, the first that of the whole.
func (p *pattern) groups() []string {
	if p.re != nil {
		return p.re.SubexpNames()
	}
	return p.other.Groups()
}

// matches reports whether the expression matches somewhere in a text.
func (p *pattern) matches(m *meter, text string) (bool, error) {
	runes, ok := p.chargeSearch(m, text)
	if !ok {
		return false, m.exceeded
	}
	if p.re != nil {
		return p.re.MatchString(text), nil
	}
	found, err := p.other.Match(runes)
	if err != nil {
		return false, m.exceed(overWork)
	}
	return found, nil
}

// find returns the byte offsets of matches and their groups, as package regexp does, those that the flags ask for.
func (p *pattern) find(m *meter, text string, f regexpFlags) ([][]int, error) {
	found, err := p.findAll(m, text, f.all || f.notEmpty)
	if err != nil || !f.notEmpty {
		return found, err
	}
	found = slices.DeleteFunc(found, func(match []int) bool { return match[0] == match[1] })
	if !f.all && len(found) > 1 {
		found = found[:1]
	}
	return found, nil
}

func (p *pattern) findAll(m *meter, text string, all bool) ([][]int, error) {
	runes, ok := p.chargeSearch(m, text)
	if !ok {
		return nil, m.exceeded
	}
	var found [][]int
	if p.re != nil {
		limit := 1
		if all {
			limit = -1
		}
		found = p.re.FindAllStringSubmatchIndex(text, limit)
	} else {
		var err error
		if found, err = p.other.Find(runes, all); err != nil {
			return nil, m.exceed(overWork)
		}
		inBytes(found, text)
	}
	if !m.charge(times(len(found), matchCost*len(p.groups()))) {
		return nil, m.exceeded
	}
	if !all || p.after == nil {
		return found, nil
	}
	var both [][]int
	for i, match := range found {
		both = append(both, match)
		if match[0] == match[1] || i+1 < len(found) && found[i+1][0] == match[1] {
			continue
		}
		if empty := p.emptyAt(text, match[1]); empty != nil {
			both = append(both, empty)
		}
	}
	return both, nil
}

// emptyAt returns the empty match at an offset behind at least one character.
func (p *pattern) emptyAt(text string, offset int) []int {
	_, width := utf8.DecodeLastRuneInString(text[:offset])
	start := offset - width
	match := p.after.FindStringSubmatchIndex(text[start:])
	if match == nil || match[1] != width {
		return nil
	}
	for i := range match {
		if match[i] >= 0 {
			match[i] += start
		}
	}
	match[0] = offset
	return match
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
