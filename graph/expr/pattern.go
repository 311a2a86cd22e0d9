package expr

import (
	"regexp"
	"regexp/syntax"
	"sync"
	"unicode/utf8"
)

// pattern is a compiled regular expression.
type pattern struct {
	re *regexp.Regexp
	// after is one character followed by the expression: it finds an empty match right at the end of another one, which
	// jq reports and Go's package leaves out, without losing sight of the character before.
	after *regexp.Regexp
	// size is the number of instructions it compiles to, which the time of a search grows with.
	size int
}

// maxPatterns bounds the cache of compiled expressions: programs can make them from data.
const maxPatterns = 256

var patterns = struct {
	sync.Mutex
	byText map[string]*pattern
}{byText: map[string]*pattern{}}

// compilePattern compiles an expression with jq's flags; of those g is for the caller.
func compilePattern(m *meter, text, flags string) (*pattern, error) {
	prefix := ""
	for _, flag := range flags {
		switch flag {
		case 'g':
		case 'i':
			prefix += "(?i)"
		case 'm':
			prefix += "(?s)"
		default:
			return nil, faultf("unsupported regular expression flag; there are g, i and m")
		}
	}
	text = prefix + text
	p, err := cachedPattern(text)
	if err != nil {
		return nil, faultf("invalid regular expression")
	}
	// Charged whether it was in the cache or not: what a program may do must not depend on what others did before.
	if !m.charge(times(p.size, p.size) / compileDivisor) {
		return nil, m.exceeded
	}
	return p, nil
}

func cachedPattern(text string) (*pattern, error) {
	patterns.Lock()
	p := patterns.byText[text]
	patterns.Unlock()
	if p != nil {
		return p, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	p = &pattern{re: re, size: instructions(text)}
	if after, err := regexp.Compile(`\A(?s:.)(?:` + text + `)`); err == nil {
		p.after = after
	}
	patterns.Lock()
	defer patterns.Unlock()
	if len(patterns.byText) >= maxPatterns {
		clear(patterns.byText)
	}
	patterns.byText[text] = p
	return p, nil
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
	// searchCost is work for each byte of a text to search, and searchDivisor the instructions for one more.
	searchCost    = 4
	searchDivisor = 64
	// matchCost is work for each match: an object of four members, and captures of the same size.
	matchCost = objectCost + 2*memberCost
)

// chargeSearch charges for one pass over a text.
func (p *pattern) chargeSearch(m *meter, text string) bool {
	return m.charge(times(len(text), searchCost+p.size/searchDivisor))
}

// find returns the byte offsets of matches and their groups, as package regexp does, all of them or the first.
func (p *pattern) find(m *meter, text string, all bool) ([][]int, error) {
	if !p.chargeSearch(m, text) {
		return nil, m.exceeded
	}
	limit := 1
	if all {
		limit = -1
	}
	found := p.re.FindAllStringSubmatchIndex(text, limit)
	if !m.charge(times(len(found), matchCost*(1+p.re.NumSubexp()))) {
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
