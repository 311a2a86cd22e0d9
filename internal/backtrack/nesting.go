package backtrack

import (
	"math"
	"strings"
)

// compileCost is the steps that the engine takes for a byte of an expression, doubled for each level of groups within groups: it
// optimises what stands at the end of a group once for the group and once for what is around it.
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

// nesting is how deep groups are nested in an expression, or more. Where the notations differ in what a parenthesis is, all that open count.
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
