package format

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// formatYAML writes a YAML text once, which has been read without an error before. The library carries the comments along, but it drops
// or doubles some: each gets a mark of its own, which has to be in the result once.
func formatYAML(text []byte) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil { // a fault of the library
			out, err = nil, fmt.Errorf("the text cannot be written: %v", v)
		}
	}()
	mark := "#~"
	for bytes.Contains(text, []byte(mark)) {
		mark += "~"
	}
	comments, err := findComments(text, mark)
	if err != nil {
		return nil, err
	}
	source := withMarks(text, mark, comments)
	var doc yaml.Node
	if err := yaml.Unmarshal(source, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("the text holds no document")
	}
	apart := map[*yaml.Node]bool{}
	lines := bytes.Split(source, []byte("\n"))
	begun := 0 // a dash and the first member behind it begin on one line, which is that of the element
	eachPart(doc.Content[0], func(n *yaml.Node) {
		at := above(lines, n)
		apart[n] = n.Line > begun && at > 0 && blank(lines[at-1])
		begun = n.Line
	})
	arrange(doc.Content[0], rootRole)
	var written bytes.Buffer
	e := yaml.NewEncoder(&written)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return nil, err
	}
	if out, err = setApart(written.Bytes(), doc.Content[0], apart); err != nil {
		return nil, err
	}
	stood, err := places(source, mark)
	if err != nil {
		return nil, err
	}
	stands, err := places(out, mark)
	if err != nil {
		return nil, err
	}
	kept := numbers(string(out), mark)
	for i, at := range comments {
		if kept[i] != 1 || !stood[i].near(stands[i]) {
			return nil, lost(text, at)
		}
	}
	return wrapped(regexp.MustCompile(regexp.QuoteMeta(mark)+"[0-9]+~").ReplaceAll(out, []byte("#")))
}

// lineBreaks lists the line breaks of YAML.
const lineBreaks = "\n\r\u0085\u2028\u2029"

// findComments returns where the comments of a text begin: each # that, marked, turns up in no value.
func findComments(text []byte, mark string) (found []int, err error) {
	var may []int
	for i, c := range text {
		if c == '#' {
			may = append(may, i)
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(withMarks(text, mark, may), &doc); err != nil {
		return nil, err
	}
	var values strings.Builder
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		values.WriteString(n.Value + n.Tag + "\n")
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(&doc)
	end := 0 // of the comment before, which may hold another #
	inValues := numbers(values.String(), mark)
	for i, at := range may {
		if inValues[i] > 0 || at < end {
			continue
		}
		found = append(found, at)
		end = len(text)
		if length := bytes.IndexAny(text[at:], lineBreaks); length >= 0 {
			end = at + length
		}
	}
	return found, nil
}

// withMarks returns a text with a mark and a number in place of each # at a list of offsets.
func withMarks(text []byte, mark string, at []int) (out []byte) {
	from := 0
	for i, to := range at {
		out = fmt.Appendf(append(out, text[from:to]...), "%s%d~", mark, i)
		from = to + 1
	}
	return append(out, text[from:]...)
}

// place is the position of a comment: after a part of a text, and, on its own line, before another one. Parts of flow collections do
// not count.
type place struct{ after, before string }

// atEnd is the position of a comment at the end of the text.
const atEnd = "end"

// near reports whether a comment is still next to one of the parts that it was between.
func (p place) near(q place) bool {
	switch p.before {
	case "":
		return p == q
	case atEnd:
		return q.before == atEnd
	}
	return p.after == q.after || p.before == q.before
}

// places returns the places of the marked comments, by their numbers.
func places(text []byte, mark string) (map[int]place, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	parts := map[int][]string{} // by line
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		for i, inner := range n.Content {
			below := fmt.Sprint(path, "/", i)
			if n.Kind == yaml.MappingNode {
				below = path + "/" + n.Content[i&^1].Value
			}
			if n.Style&yaml.FlowStyle == 0 && (n.Kind == yaml.SequenceNode || i%2 == 0) {
				parts[inner.Line] = append(parts[inner.Line], below)
			}
			if n.Kind == yaml.SequenceNode || i%2 == 1 {
				walk(inner, below)
			}
		}
	}
	walk(doc.Content[0], "")
	found, last, open := map[int]place{}, "", []int(nil)
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if here := parts[number]; len(here) > 0 {
			for _, i := range open {
				found[i] = place{found[i].after, here[0]}
			}
			open, last = nil, here[len(here)-1]
		}
		for i := range numbers(string(line), mark) {
			if found[i] = (place{after: last}); bytes.HasPrefix(bytes.TrimSpace(line), []byte(mark)) {
				found[i] = place{last, atEnd}
				open = append(open, i)
			}
		}
	}
	return found, nil
}

// numbers counts the marks in a text by their numbers.
func numbers(text, mark string) map[int]int {
	found := map[int]int{}
	for _, behind := range strings.Split(text, mark)[1:] {
		digits, _, _ := strings.Cut(behind, "~")
		if i, err := strconv.Atoi(digits); err == nil {
			found[i]++
		}
	}
	return found
}

// lost is the error of a comment that the library cannot keep.
func lost(text []byte, at int) error {
	comment, _, _ := strings.Cut(string(text[at:]), "\n")
	return problem.New(problem.Unsupported, "the definition cannot be formatted: the comment %q on line %d would be lost", problem.Excerpt(comment, 60), bytes.Count(text[:at], []byte("\n"))+1).
		WithHint("Put the comment on a separate line, before a member or an element of a list.")
}

// eachPart calls do with the keys of fields and with the elements of lists.
func eachPart(n *yaml.Node, do func(*yaml.Node)) {
	for i, inner := range n.Content {
		if n.Kind == yaml.SequenceNode || i%2 == 0 {
			do(inner)
		}
		eachPart(inner, do)
	}
}

// above returns the index of the first line of a part, including the comments right before it.
func above(lines [][]byte, n *yaml.Node) int {
	i := n.Line - 1
	for i > 0 && bytes.HasPrefix(bytes.TrimSpace(lines[i-1]), []byte("#")) {
		i--
	}
	return i
}

func blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }

// setApart puts an empty line before the parts of a written tree that had one.
func setApart(text []byte, was *yaml.Node, apart map[*yaml.Node]bool) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte("\n"))
	var before, after []*yaml.Node
	eachPart(was, func(n *yaml.Node) { before = append(before, n) })
	eachPart(doc.Content[0], func(n *yaml.Node) { after = append(after, n) })
	if len(before) != len(after) {
		return nil, errors.New("the text has another structure")
	}
	empty := map[int]bool{}
	for i, n := range after {
		if at := above(lines, n); apart[before[i]] && at > 0 && !blank(lines[at-1]) {
			empty[at] = true
		}
	}
	var out []byte
	for i, line := range lines {
		if empty[i] {
			out = append(out, '\n')
		}
		out = append(append(out, line...), '\n')
	}
	return out[:len(out)-1], nil
}

// arrange sorts the fields of a value, and writes the document, its lists of nodes and edges in block style.
func arrange(n *yaml.Node, r *role) {
	switch n.Kind {
	case yaml.MappingNode:
		if r == rootRole {
			n.Style &^= yaml.FlowStyle
		}
		type member struct{ key, value *yaml.Node }
		var members []member
		for i := 0; i+1 < len(n.Content); i += 2 {
			members = append(members, member{n.Content[i], n.Content[i+1]})
		}
		slices.SortStableFunc(members, func(a, b member) int { return r.rank(a.key.Value) - r.rank(b.key.Value) })
		n.Content = n.Content[:0]
		for _, m := range members {
			if r == rootRole && (m.key.Value == "nodes" || m.key.Value == "edges") && len(m.value.Content) > 0 {
				m.value.Style &^= yaml.FlowStyle
				if m.key.LineComment == "" {
					m.key.LineComment, m.value.LineComment = m.value.LineComment, ""
				}
			}
			arrange(m.value, r.member(m.key.Value))
			n.Content = append(n.Content, m.key, m.value)
		}
	case yaml.SequenceNode:
		for _, e := range n.Content {
			arrange(e, r)
		}
	case yaml.ScalarNode:
		// The library writes a folded text with indented lines, or with empty ones at its end, as another one.
		if n.Style&yaml.FoldedStyle != 0 && (strings.Contains(n.Value, "\n ") || strings.Contains(n.Value, "\n\t") || strings.HasSuffix(n.Value, "\n\n")) {
			n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
		}
	}
}
