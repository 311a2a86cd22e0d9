package jsonschema

import "regexp/syntax"

// patternSize is about how many instructions Go's engine needs for a pattern. Package backtrack bounds those that the other engine runs.
func patternSize(pattern string) int {
	re, err := syntax.Parse(toGo(pattern), syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 16 // pairs of bounds, which copies share
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, MaxPatterns+1)
}

// patternWidth is about how many places of a pattern Go's engine, or the other, has to follow at once over a text.
func patternWidth(pattern string) int {
	re, err := syntax.Parse(toGo(pattern), syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginText {
		n, _ := width(re)
		return n
	}
	return instructions(re)
}

// width is patternWidth for a part of an anchored pattern; fixed is set if the text that it matches has one length: then what follows
// begins at one place.
func width(re *syntax.Regexp) (n int, fixed bool) {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, true
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 0, true
	case syntax.OpCapture:
		return width(re.Sub[0])
	case syntax.OpRepeat:
		if n, fixed = width(re.Sub[0]); fixed && re.Min == re.Max {
			return n, true
		}
	case syntax.OpConcat:
		fixed = true
		for _, sub := range re.Sub {
			w, same := width(sub)
			if fixed {
				n = max(n, w)
			} else {
				n += instructions(sub)
			}
			fixed = fixed && same
		}
		return n, fixed
	}
	return instructions(re), false
}
