package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// formatYAML writes a YAML text once, which has been read without an error before, with or without the empty lines between its parts.
func formatYAML(text []byte, blanks bool) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil { // a fault of the library
			out, err = nil, fmt.Errorf("the text cannot be written: %v", v)
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("the text holds no document")
	}
	apart := blankLines(text)
	arrange(doc.Content[0], rootRole)
	var written bytes.Buffer
	e := yaml.NewEncoder(&written)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	folded, err := wrapped(written.Bytes())
	if err != nil || !blanks {
		return folded, err
	}
	return spaced(&doc, apart, folded)
}

// arrange sorts the members of a value, and writes the document and its lists of nodes and edges in block style.
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
			}
			arrange(m.value, r.member(m.key.Value))
			n.Content = append(n.Content, m.key, m.value)
		}
	case yaml.SequenceNode:
		for _, e := range n.Content {
			arrange(e, r)
		}
	case yaml.ScalarNode:
		// The library writes a folded text with indented lines as another one.
		if n.Style&yaml.FoldedStyle != 0 && (strings.Contains(n.Value, "\n ") || strings.Contains(n.Value, "\n\t")) {
			n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
		}
	}
}

// blankLines reports of each line of a text, from 1 on, whether it follows an empty one.
func blankLines(text []byte) []bool {
	after := []bool{false}
	blank := false
	for line := range bytes.Lines(text) {
		after = append(after, blank)
		blank = len(bytes.TrimSpace(line)) == 0
	}
	return after
}

// spaced puts an empty line before each member and element that had one before it, or before its comment. The tree is that from which
// the text was written, with the lines of the text before.
func spaced(tree *yaml.Node, apart []bool, text []byte) ([]byte, error) {
	var now yaml.Node
	if err := yaml.Unmarshal(text, &now); err != nil {
		return nil, err
	}
	before := map[int]bool{}
	var walk func(was, is *yaml.Node)
	walk = func(was, is *yaml.Node) {
		block := is.Kind == yaml.DocumentNode || is.Style&yaml.FlowStyle == 0
		for i := range min(len(was.Content), len(is.Content)) {
			w, n := was.Content[i], is.Content[i]
			begins := is.Kind == yaml.SequenceNode || is.Kind == yaml.MappingNode && i%2 == 0
			if line := first(w); block && begins && line < len(apart) && line > 0 && apart[line] {
				before[first(n)] = true
			}
			walk(w, n)
		}
	}
	walk(tree, &now)
	var out []byte
	number := 0
	blank := true // none at the beginning, and never two
	for line := range bytes.Lines(text) {
		number++
		empty := len(bytes.TrimSpace(line)) == 0
		if before[number] && !blank {
			out = append(out, '\n')
		}
		out = append(out, line...)
		blank = empty
	}
	return out, nil
}

// first is the line on which a value begins, with the comment before it.
func first(n *yaml.Node) int {
	if n.HeadComment == "" {
		return n.Line
	}
	return n.Line - strings.Count(n.HeadComment, "\n") - 1
}

// keepsComments says which comment of a text another one lacks.
func keepsComments(text, formatted []byte) error {
	kept := map[string]int{}
	for _, comment := range comments(formatted) {
		kept[comment]++
	}
	for _, comment := range comments(text) {
		if kept[comment]--; kept[comment] < 0 {
			return problem.New(problem.Unsupported, "the definition cannot be formatted: the comment %q would be lost", problem.Excerpt(comment, 60)).
				WithHint("Put the comment on a line of its own, before a member or an element of a list.")
		}
	}
	return nil
}

// comments lists the comments of a text by their words. What looks like one within a text value counts as well: it is kept, too.
func comments(text []byte) []string {
	var list []string
	for line := range bytes.Lines(text) {
		at := bytes.IndexByte(line, '#')
		if at < 0 || at > 0 && line[at-1] != ' ' && line[at-1] != '\t' {
			continue
		}
		if words := strings.Join(strings.Fields(string(line[at:])), " "); words != "#" {
			list = append(list, words)
		}
	}
	return list
}
