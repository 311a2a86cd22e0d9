package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// formatYAML writes a YAML text once, which has been read without an error before. The library writes the values, insert the comments.
func formatYAML(text []byte) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil { // a fault of the library
			out, err = nil, fmt.Errorf("the text cannot be written: %v", v)
		}
	}()
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	notes, err := newLayout(text, root).notes()
	if err != nil {
		return nil, err
	}
	arrange(root, rootRole, notes.block)
	var written bytes.Buffer
	e := yaml.NewEncoder(&written)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	folded, err := wrapped(written.Bytes())
	if err != nil {
		return nil, err
	}
	return insert(root, notes, folded)
}

// read returns the value of a text, without the comments that the library attaches to it.
func read(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, fmt.Errorf("the text holds no document")
	}
	var clear func(n *yaml.Node)
	clear = func(n *yaml.Node) {
		n.HeadComment, n.LineComment, n.FootComment = "", "", ""
		for _, inner := range n.Content {
			clear(inner)
		}
	}
	clear(doc.Content[0])
	return doc.Content[0], nil
}

// arrange sorts the members of a value, and writes the document, its lists of nodes and edges, and some others in block style.
func arrange(n *yaml.Node, r *role, block map[*yaml.Node]bool) {
	if block[n] {
		n.Style &^= yaml.FlowStyle
	}
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
			arrange(m.value, r.member(m.key.Value), block)
			n.Content = append(n.Content, m.key, m.value)
		}
	case yaml.SequenceNode:
		for _, e := range n.Content {
			arrange(e, r, block)
		}
	case yaml.ScalarNode:
		// The library writes a folded text with indented lines, or with empty ones at its end, as another one.
		if n.Style&yaml.FoldedStyle != 0 && (strings.Contains(n.Value, "\n ") || strings.Contains(n.Value, "\n\t") || strings.HasSuffix(n.Value, "\n\n")) {
			n.Style = n.Style&^yaml.FoldedStyle | yaml.LiteralStyle
		}
	}
}
