package picture

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// Mermaid draws a definition, or a run of it, as a Mermaid flowchart.
func Mermaid(p *definition.Program, run *timeline.Run) string {
	g, passed := draw(p, nil), passagesOf(run)
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	for i, n := range g.nodes {
		left, right := mermaidShape(n.Type)
		shown := n.lines
		if facts := passed.facts(n.ID); facts != "" {
			shown = append(slices.Clip(shown), facts)
		}
		lines := make([]string, len(shown))
		for j, l := range shown {
			lines[j] = mermaidText(l)
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, left, strings.Join(lines, "<br/>"), right)
		if state := passed.nodes[n.ID].state; state != "" {
			fmt.Fprintf(&b, "  class n%d %s\n", i, state)
		}
	}
	for i, e := range g.edges {
		arrow, taken := "-->", passed.taken(&e)
		switch {
		case e.failure:
			arrow = "-.->"
		case taken:
			arrow = "==>"
		}
		label := ""
		if l := e.label(); l != "" {
			label = `|"` + mermaidText(l) + `"|`
		}
		fmt.Fprintf(&b, "  n%d %s%s n%d\n", e.from, arrow, label, e.to)
		if e.failure && taken {
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
