// Package backtrack runs the regular expressions that Go's own engine cannot run: with look-around, back-references,
// possessive repeats or repeats beyond 1,000. Such an engine tries one way through an expression after the other, and
// for some expressions the number of ways doubles with each character of the text. So the cost of a search is bounded
// beforehand, from the expression and the text (Steps), and a search that may cost too much is rejected. No clock is
// involved: a search has the same outcome on every machine.
package backtrack

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/dlclark/regexp2/v2"
	"github.com/dlclark/regexp2/v2/syntax"
)

// MaxPattern is the largest length of a written expression, in bytes. Compile accepts longer ones in Go's notation,
// up to maxTranslated, because a translation into it may have to spell out sets.
const (
	MaxPattern    = 8 << 10
	maxTranslated = 64 << 10
)

// maxStack is how many entries the engine may keep in order to come back to them.
const maxStack = 1 << 20

// ErrTooMuch ends a search that keeps too many alternatives.
var ErrTooMuch = errors.New("the search keeps too many alternatives")

// Dialect is a notation of regular expressions.
type Dialect int

const (
	// Go is the notation of package regexp, with this package's additions. \w, \d and \s are ASCII, \b is not.
	Go Dialect = iota
	// ECMAScript is that of JavaScript with the flag u.
	ECMAScript
)

// Pattern is a compiled expression, safe for concurrent use.
type Pattern struct {
	re     *regexp2.Regexp
	root   *syntax.RegexNode
	parts  int
	groups []string
	// classes are the numbers of Unicode's classes in sets.
	classes map[*syntax.RegexNode]int
	// compiling is a bound on the steps that the compilation took.
	compiling int
}

func options(d Dialect) regexp2.RegexOptions {
	if d == ECMAScript {
		return regexp2.ECMAScript | regexp2.Unicode
	}
	return regexp2.RE2
}

// Compile compiles an expression.
func Compile(text string, d Dialect) (*Pattern, error) {
	most := maxTranslated
	if d == ECMAScript {
		most = MaxPattern
	}
	if len(text) > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	if compiling(text) > maxCompiling {
		return nil, errors.New("its groups are nested too deeply")
	}
	tree, err := syntax.Parse(text, syntax.ParseOptions{RegexOptions: syntax.RegexOptions(options(d)), MaintainCaptureOrder: true})
	if err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(text, options(d), regexp2.OptionMaintainCaptureOrder(), regexp2.OptionMaxBacktrackingStackSize(maxStack))
	if err != nil {
		return nil, err
	}
	p := &Pattern{
		re: re, root: tree.Root, groups: make([]string, len(re.GetGroupNumbers())), classes: map[*syntax.RegexNode]int{}, compiling: compiling(text),
	}
	p.parts = p.weigh(tree.Root)
	for i, n := range re.GetGroupNumbers() {
		if name := re.GroupNameFromNumber(n); name != fmt.Sprint(n) {
			p.groups[i] = name
		}
	}
	return p, nil
}

// Compiling is a bound on the steps that Compile took; see Steps.
func (p *Pattern) Compiling() int { return p.compiling }

// Groups are the names of the groups, as in package regexp: the first is the whole match, "" is a group without a
// name.
func (p *Pattern) Groups() []string { return p.groups }

// Match reports whether the expression matches somewhere in a text.
func (p *Pattern) Match(text []rune) (bool, error) {
	found, err := p.re.MatchRunes(text)
	if err != nil {
		return false, ErrTooMuch
	}
	return found, nil
}

// Find returns all matches, or the first: for each match and each of its groups, the bounds in the text; -1 for a
// group that took no part.
func (p *Pattern) Find(text []rune, all bool) (found [][]int, err error) {
	numbers := p.re.GetGroupNumbers()
	err = p.re.FindRunesMatches(text, 0, func(m regexp2.MatchView) bool {
		at := make([]int, 0, 2*len(numbers))
		for _, n := range numbers {
			begin, length, ok := m.GroupRange(n)
			if !ok {
				begin, length = -1, 0
			}
			at = append(at, begin, begin+length)
		}
		found = append(found, at)
		return all
	})
	if err != nil {
		return nil, ErrTooMuch
	}
	return found, nil
}

// compileCost is the steps of compiling a byte of an expression, doubled for each level of nested groups: the engine
// optimises the end of a group once for the group and once for its surroundings.
const compileCost = 8

// maxCompiling is how many steps the compilation of an expression may take: a definition may hold some hundred of them.
const maxCompiling = 1 << 23

// compiling is a bound on the steps that the compilation of an expression takes.
func compiling(text string) int {
	depth := nesting(text)
	if depth > 32 {
		return math.MaxInt
	}
	return times(compileCost<<depth, len(text))
}

// nesting is the depth of nested groups in an expression, or more. Where the notations disagree about parentheses,
// all opening ones count.
func nesting(text string) int {
	for _, unclear := range []string{"#", "[]", "[^]", "[:", "-[", `\Q`} {
		if strings.Contains(text, unclear) {
			return strings.Count(text, "(")
		}
	}
	deepest, depth, inClass := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case inClass:
			inClass = c != ']'
		case c == '[':
			inClass = true
		case c == '(':
			depth++
			deepest = max(deepest, depth)
		case c == ')':
			depth--
		}
	}
	return deepest
}
