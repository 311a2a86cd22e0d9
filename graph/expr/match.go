package expr

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Regular expressions. The interpreter's own count characters from the start of the text for every match, which takes
// minutes over a few hundred kilobytes; these count on from the match before.

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
			return nil, faultf("unsupported regular expression flag: %s", strconv.Quote(string(flag)))
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
	matchCost = 5 * memberCost
)

// chargeSearch charges for one pass over a text.
func (p *pattern) chargeSearch(m *meter, text string) bool {
	return m.charge(times(len(text), searchCost+p.size/searchDivisor))
}

// find gives the byte offsets of matches and their groups, as package regexp does, all of them or the first.
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

// emptyAt gives the empty match at an offset behind at least one character.
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

// regexpArguments are those of all functions here: the text is the input.
func regexpArguments(m *meter, in any, args []any) (text string, p *pattern, all bool, err error) {
	text, ok := in.(string)
	if !ok {
		return "", nil, false, faultf("match cannot be applied to %s", typeName(in))
	}
	expression, ok := args[0].(string)
	if !ok {
		return "", nil, false, faultf("a regular expression is a string, not %s", typeName(args[0]))
	}
	flags, ok := args[1].(string)
	if !ok && args[1] != nil {
		return "", nil, false, faultf("the flags of a regular expression are a string, not %s", typeName(args[1]))
	}
	p, err = compilePattern(m, expression, flags)
	return text, p, strings.Contains(flags, "g"), err
}

func testRegexp(m *meter, in any, args []any) any {
	text, p, _, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	if !p.chargeSearch(m, text) {
		return m.exceeded
	}
	return p.re.MatchString(text)
}

// matches gives the array of match objects.
func matches(m *meter, in any, args []any) any {
	text, p, all, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	found, err := p.find(m, text, all)
	if err != nil {
		return err
	}
	names := p.re.SubexpNames()
	list := make([]any, len(found))
	at := runeCounter{text: text}
	for i, match := range found {
		whole := at.object(match[0], match[1])
		groups := make([]any, len(names)-1)
		for g := range groups {
			group := at.object(match[2*g+2], match[2*g+3])
			group["name"] = nil
			if name := names[g+1]; name != "" {
				group["name"] = name
			}
			groups[g] = group
		}
		whole["captures"] = groups
		list[i] = whole
	}
	return list
}

// runeCounter turns byte offsets into character offsets, from the place it was asked for last.
type runeCounter struct {
	text         string
	bytes, runes int
}

func (c *runeCounter) at(offset int) int {
	if offset >= c.bytes {
		c.runes += utf8.RuneCountInString(c.text[c.bytes:offset])
	} else {
		c.runes -= utf8.RuneCountInString(c.text[offset:c.bytes])
	}
	c.bytes = offset
	return c.runes
}

// object describes a range of the text; -1 is a group that took no part.
func (c *runeCounter) object(from, to int) map[string]any {
	if from < 0 {
		return map[string]any{"offset": -1, "length": 0, "string": nil}
	}
	start := c.at(from)
	return map[string]any{"offset": start, "length": c.at(to) - start, "string": c.text[from:to]}
}

// captures makes the object of named groups from the array of them.
func captures(m *meter, in any, _ []any) any {
	groups, ok := in.([]any)
	if !ok {
		return faultf("expected an array but got: %s", typeName(in))
	}
	object := make(map[string]any, len(groups))
	for _, group := range groups {
		if group, ok := group.(map[string]any); ok {
			if name, ok := group["name"].(string); ok {
				object[name] = group["string"]
			}
		}
	}
	if !m.charge(memberCost * len(object)) {
		return m.exceeded
	}
	return object
}

// splitRegexp gives the parts of the text between the matches.
func splitRegexp(m *meter, in any, args []any) any {
	text, p, _, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	found, err := p.find(m, text, true)
	if err != nil {
		return err
	}
	list := make([]any, 0, len(found)+1)
	from := 0
	for _, match := range found {
		list = append(list, text[from:max(from, match[0])])
		from = match[1]
	}
	return append(list, text[from:])
}

// splice puts replacements into a text: args are its match objects, in order, and for each the array of its
// replacements. The n-th result has the n-th replacement of every match that has as many. Without replacements the
// text itself is the only result.
func splice(m *meter, in any, args []any) any {
	text, replacements := in.(string), args[1].([]any)
	var results []*strings.Builder
	at := byteCounter{text: text}
	from := 0
	for i, match := range args[0].([]any) {
		match := match.(map[string]any)
		start := at.at(match["offset"].(int))
		end := at.at(match["offset"].(int) + match["length"].(int))
		gap := text[min(from, start):start]
		for n, replacement := range replacements[i].([]any) {
			s, ok := replacement.(string)
			if !ok && replacement != nil {
				return faultf("cannot add string and %s", typeName(replacement))
			}
			if n == len(results) {
				results = append(results, new(strings.Builder))
			}
			if !m.charge(len(gap) + len(s)) {
				return m.exceeded
			}
			results[n].WriteString(gap)
			results[n].WriteString(s)
		}
		from = end
	}
	if len(results) == 0 {
		return []any{text}
	}
	list := make([]any, len(results))
	for n, result := range results {
		if !m.charge(len(text) - from) {
			return m.exceeded
		}
		result.WriteString(text[from:])
		list[n] = result.String()
	}
	return list
}

// byteCounter turns character offsets into byte offsets, forward from the place it was asked for last.
type byteCounter struct {
	text         string
	bytes, runes int
}

func (c *byteCounter) at(offset int) int {
	for c.runes < offset && c.bytes < len(c.text) {
		_, size := utf8.DecodeRuneInString(c.text[c.bytes:])
		c.bytes += size
		c.runes++
	}
	return c.bytes
}
