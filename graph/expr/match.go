package expr

import (
	"strings"
	"unicode/utf8"
)

// Regular expressions. The interpreter's own count characters from the start of the text for every match, which takes
// minutes over a few hundred kilobytes; these count on from the match before. That is an improvement for upstream: with
// it the interpreter's own match, splits and sub serve, each with a charge before.

// regexpArguments are those of all functions here: the text is the input.
func regexpArguments(m *meter, in any, args []any) (text string, p *pattern, f regexpFlags, err error) {
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
		p, err = compilePattern(m, expression, f, text)
	}
	return text, p, f, err
}

func testRegexp(m *meter, in any, args []any) any {
	text, p, _, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	found, err := p.matches(m, text)
	if err != nil {
		return err
	}
	return found
}

// matches returns the array of match objects.
func matches(m *meter, in any, args []any) any {
	text, p, f, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	found, err := p.find(m, text, f)
	if err != nil {
		return err
	}
	names := p.groups()
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

// splitRegexp returns the parts of the text between the matches.
func splitRegexp(m *meter, in any, args []any) any {
	text, p, f, err := regexpArguments(m, in, args)
	if err != nil {
		return err
	}
	f.all = true
	found, err := p.find(m, text, f)
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
