package picture

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Dot draws a definition, or a run of it, in the language of Graphviz.
func Dot(p *definition.Program, run *Run) string {
	g := draw(p, run)
	var b strings.Builder
	b.WriteString("digraph workflow {\n  node [fontname=\"sans-serif\", fontsize=11]\n  edge [fontname=\"sans-serif\", fontsize=9]\n")
	for i, n := range g.nodes {
		lines := make([]string, len(n.lines))
		for j, l := range n.lines {
			lines[j] = dotText(l)
		}
		fmt.Fprintf(&b, "  n%d [label=\"%s\", shape=%s, style=\"filled%s\", fillcolor=\"%s\"]\n",
			i, strings.Join(lines, `\n`), dotShape(n.Type), dotRounding(n.Type), fill(n.state))
	}
	for _, e := range g.edges {
		fmt.Fprintf(&b, "  n%d -> n%d [label=\"%s\"", e.from, e.to, dotText(e.label()))
		if e.failure {
			b.WriteString(", style=dashed")
		}
		if e.taken {
			b.WriteString(", penwidth=3")
		}
		b.WriteString("]\n")
	}
	b.WriteString("}\n")
	return b.String()
}

func dotShape(t definition.Type) string {
	switch t {
	case definition.Switch:
		return "diamond"
	case definition.Interrupt:
		return "hexagon"
	case definition.Parallel:
		return "box, peripheries=2"
	}
	return "box"
}

func dotRounding(t definition.Type) string {
	switch t {
	case definition.Start, definition.End, definition.Wait:
		return ",rounded"
	}
	return ""
}

// dotText writes a text for a quoted string.
func dotText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(clean(text))
}
