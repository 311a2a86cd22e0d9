package expr

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Regular expressions. The interpreter's own count characters from the start of the text for every match, which takes
// minutes over a few hundred kilobytes; these count on from the match before.

// regexpArguments reads the arguments that all functions here share; the text is the input.
func regexpArguments(m *meter, in any, args []any) (text string, s *search, f regexpFlags, err error) {
	text, ok := in.(string)
	if !ok {
		return "", nil, f, faultf("match cannot be applied to %s", typeName(in))
	}
	expression, ok := args[0].(string)
	if !ok {
		return "", nil, f, faultf("expected a string as the regular expression, found %s", typeName(args[0]))
	}
	flags, ok := args[1].(string)
	if !ok && args[1] != nil {
		return "", nil, f, faultf("expected a string as the flags of the regular expression, found %s", typeName(args[1]))
	}
	if f, err = readFlags(flags); err == nil {
		s, err = compilePattern(m, expression, f, text)
	}
	return text, s, f, err
}

func testRegexp(m *meter, in any, args []any) any {
	text, s, _, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	found, err := s.matches(m, text)
	if err != nil {
		return err
	}
	return found
}

// found are the matches of an expression in a text. It passes through the interpreter as one value, which takes less
// memory than the objects that describe matches.
type found struct {
	text    string
	names   []string
	matches [][]int
	// bytes are those that the matches hold.
	bytes int
}

// finding returns the matches of an expression in the input.
func finding(m *meter, in any, args []any) (*found, error) {
	text, s, f, err := regexpArguments(m, in, args)
	if err != nil {
		return nil, err
	}
	matches, err := s.findAll(m, text, f)
	return &found{text, s.names, matches, len(matches) * (matchBytes + groupBytes*len(s.names))}, err
}

// objectBytes is the size of an object with a few members and their values.
const objectBytes = objectCost + 3*memberCost

// matches returns the array of match objects.
func matches(m *meter, in any, args []any) any {
	f, err := finding(m, in, args)
	if err != nil {
		return err
	}
	list := make([]any, len(f.matches))
	at := runeCounter{text: f.text}
	for i, match := range f.matches {
		if !m.allocate(objectBytes * len(f.names)) {
			return m.exceeded
		}
		whole := at.object(match[0], match[1])
		groups := make([]any, len(f.names)-1)
		for g := range groups {
			group := at.object(match[2*g+2], match[2*g+3])
			group["name"] = nil
			if name := f.names[g+1]; name != "" {
				group["name"] = name
			}
			groups[g] = group
		}
		whole["captures"] = groups
		list[i] = whole
	}
	m.release(f.bytes)
	return list
}

// scanned returns for each match its text, or the array of its groups' texts if there are groups.
func scanned(m *meter, in any, args []any) any {
	f, err := finding(m, in, args)
	if err != nil {
		return err
	}
	if !m.allocate(times(2*elementCost*len(f.names), len(f.matches))) {
		return m.exceeded
	}
	list := make([]any, len(f.matches))
	for i, match := range f.matches {
		if len(f.names) == 1 {
			list[i] = f.text[match[0]:match[1]]
			continue
		}
		groups := make([]any, len(f.names)-1)
		for g := range groups {
			groups[g] = f.group(match, g+1)
		}
		list[i] = groups
	}
	m.release(f.bytes)
	return list
}

// group returns the text of a group, nil if it took no part.
func (f *found) group(match []int, g int) any {
	if match[2*g] < 0 {
		return nil
	}
	return f.text[match[2*g]:match[2*g+1]]
}

// find returns the matches as they are.
func find(m *meter, in any, args []any) any {
	f, err := finding(m, in, args)
	if err != nil {
		return err
	}
	return f
}

func countFound(_ *meter, in any, _ []any) any { return len(in.(*found).matches) }

// named returns the named groups of a match.
func named(m *meter, in any, args []any) any {
	f := in.(*found)
	bytes := memberCost
	if slices.ContainsFunc(f.names, func(name string) bool { return name != "" }) {
		bytes += objectCost + memberCost*len(f.names)
	}
	if !m.allocate(bytes) {
		return m.exceeded
	}
	match, groups := f.matches[args[0].(int)], map[string]any{}
	for g, name := range f.names {
		if name != "" && (groups[name] == nil || match[2*g] >= 0) {
			groups[name] = f.group(match, g)
		}
	}
	return groups
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

// splitRegexp returns the parts of the text between the matches.
func splitRegexp(m *meter, in any, args []any) any {
	f, err := finding(m, in, args)
	if err != nil {
		return err
	}
	if !m.allocate(times(2*elementCost, len(f.matches)+1)) {
		return m.exceeded
	}
	list := make([]any, 0, len(f.matches)+1)
	from := 0
	for _, match := range f.matches {
		list = append(list, f.text[from:max(from, match[0])])
		from = match[1]
	}
	m.release(f.bytes)
	return append(list, f.text[from:])
}

// splice puts replacements into a text: args are the found matches, and for each match the array of its replacements.
// The n-th result has the n-th replacement of every match that has as many. Without replacements the text itself is
// the only result.
func splice(m *meter, _ any, args []any) any {
	f, replacements := args[0].(*found), args[1].([]any)
	var results []*strings.Builder
	from := 0
	for i, match := range f.matches {
		gap := f.text[min(from, match[0]):match[0]]
		for n, replacement := range replacements[i].([]any) {
			s, ok := replacement.(string)
			if !ok && replacement != nil {
				return faultf("cannot add string and %s", typeName(replacement))
			}
			if n == len(results) {
				results = append(results, new(strings.Builder))
			}
			// Growing copies the text again and again.
			if !m.allocate(2 * (len(gap) + len(s))) {
				return m.exceeded
			}
			results[n].WriteString(gap)
			results[n].WriteString(s)
		}
		from = match[1]
	}
	if len(results) == 0 {
		return []any{f.text}
	}
	list := make([]any, len(results))
	for n, result := range results {
		if !m.allocate(2 * (len(f.text) - from)) {
			return m.exceeded
		}
		result.WriteString(f.text[from:])
		list[n] = result.String()
	}
	return list
}
