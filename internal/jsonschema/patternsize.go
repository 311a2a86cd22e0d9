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
