package picture

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// Mermaid draws a definition, or a run of it, as a Mermaid flowchart.
func Mermaid(p *definition.Program, run *timeline.Run) string {
	g := draw(p, run)
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range g.nodes {
		left, right := mermaidShape(n.Type)
		lines := make([]string, len(n.lines))
		for j, l := range n.lines {
			lines[j] = mermaidText(l)
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, left, strings.Join(lines, "<br/>"), right)
		if n.state != "" {
			fmt.Fprintf(&b, "  class n%d %s\n", i, n.state)
		}
	}
	for i, e := range g.edges {
		arrow := "-->"
		switch {
		case e.failure:
			arrow = "-.->"
		case e.taken:
			arrow = "==>"
		}
		label := ""
		if l := e.label(); l != "" {
			label = `|"` + mermaidText(l) + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s%s n%d\n", e.from, arrow, label, e.to)
		if e.failure && e.taken {
			fmt.Fprintf(&b, "  linkStyle %d stroke-width:3px\n", i)
		}
	}
	if run != nil {
		for _, s := range []State{Done, Failed, Now, Stopped} {
			fmt.Fprintf(&b, "  classDef %s fill:%s,stroke:#444,color:#111\n", s, fill(s))
		}
	}
	return b.String()
}

// mermaidShapes are the brackets around the text of a node.
var mermaidShapes = map[definition.Figure][2]string{
	definition.FigureBox: {"[", "]"}, definition.FigureTerminal: {"([", "])"}, definition.FigureChoice: {"{", "}"},
	definition.FigureQuestion: {"{{", "}}"}, definition.FigureFork: {"[[", "]]"}, definition.FigurePause: {"(", ")"},
}

func mermaidShape(t definition.Type) (left, right string) {
	shape, ok := mermaidShapes[t.Info().Figure]
	if !ok {
		shape = mermaidShapes[definition.FigureBox]
	}
	return shape[0], shape[1]
}

// mermaidText writes a text for a quoted label: all but letters, digits and harmless signs by number.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range clean(text) {
		if r < 0x80 && !strings.ContainsRune(" .,_()=?!/+-:", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fill is the colour of a node.
func fill(s State) string {
	switch s {
	case Done:
		return "#d9f2dd"
	case Failed:
		return "#f8d4d4"
	case Now:
		return "#fff0b8"
	case Stopped:
		return "#e4e4e4"
	}
	return "#ffffff"
}
