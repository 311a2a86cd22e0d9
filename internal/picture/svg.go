package picture

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// The font is of one width, so that the width of a text is known.
const (
	charWidth, labelCharWidth = 7.3, 6.1
	lineHeight                = 16.0
	padding                   = 14.0
	loopWidth                 = 26.0
)

// SVG draws a definition, or a run of it, as an image of its own.
func SVG(p *definition.Program, run *timeline.Run) string {
	g := draw(p, run)
	loops := map[int]edge{}
	for _, e := range g.edges {
		if e.from == e.to {
			loops[e.from] = e
		}
	}
	boxWidth := func(i int) float64 {
		w := 60.0
		for _, l := range g.nodes[i].lines {
			w = max(w, textWidth(l)*charWidth+2*padding)
		}
		if f := g.nodes[i].Type.Info().Figure; f == definition.FigureChoice || f == definition.FigureQuestion {
			w += 2 * padding
		}
		return w
	}
	// Both sides leave the room that a loop to itself takes on the right of a node.
	width := func(i int) float64 {
		if e, ok := loops[i]; ok {
			return boxWidth(i) + 2*(loopWidth+textWidth(e.label())*labelCharWidth)
		}
		return boxWidth(i)
	}
	height := func(i int) float64 { return float64(len(g.nodes[i].lines))*lineHeight + padding }
	l := arrange(g, width, height, func(label string) float64 { return textWidth(label)*labelCharWidth + 6 })

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="12">`+"\n",
		l.width, l.height, l.width, l.height)
	fmt.Fprintf(&b, "<title>%s</title>\n", xmlText(p.Name))
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="#444"/></marker></defs>` + "\n")
	b.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	for i, e := range g.edges {
		if e.from == e.to {
			n := l.nodes[e.from]
			x := n.x + boxWidth(e.from)/2
			writeLine(&b, e, fmt.Sprintf("M%.1f %.1fc%.1f -14 %.1f 26 0 12", x, n.y-6, loopWidth, loopWidth))
			writeLabel(&b, e.label(), x+loopWidth+textWidth(e.label())*labelCharWidth/2, n.y)
			continue
		}
		writeLine(&b, e, curve(l.paths[i]))
	}
	for _, layer := range l.layers {
		for _, it := range layer {
			if it.node < 0 {
				writeLabel(&b, it.label, it.x, it.y)
				continue
			}
			writeBox(&b, g.nodes[it.node], it, boxWidth(it.node))
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// curve goes from the border of the first item to that of the last, upright through all between them.
func curve(path []*item) string {
	up := path[0].y > path[len(path)-1].y
	side := func(it *item, leaving bool) float64 {
		if leaving != up {
			return it.y + it.height/2
		}
		return it.y - it.height/2
	}
	x, y := path[0].x, side(path[0], true)
	var b strings.Builder
	fmt.Fprintf(&b, "M%.1f %.1f", x, y)
	to := func(nx, ny float64) {
		middle := (y + ny) / 2
		fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, nx, middle, nx, ny)
		x, y = nx, ny
	}
	for _, it := range path[1 : len(path)-1] {
		to(it.x, side(it, false))
		if it.height > 0 {
			y = side(it, true)
			fmt.Fprintf(&b, "V%.1f", y)
		}
	}
	last := path[len(path)-1]
	to(last.x, side(last, false))
	return b.String()
}

func writeLine(b *strings.Builder, e edge, d string) {
	width, dash := 1.2, ""
	if e.taken {
		width = 3
	}
	if e.failure {
		dash = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<path d="%s" fill="none" stroke="#444" stroke-width="%.1f"%s marker-end="url(#arrow)"/>`+"\n", d, width, dash)
}

func writeLabel(b *strings.Builder, label string, x, y float64) {
	if label == "" {
		return
	}
	w := textWidth(label)*labelCharWidth + 4
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="14" fill="#fff"/>`, x-w/2, y-7, w)
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="10" text-anchor="middle" fill="#333">%s</text>`+"\n", x, y+3.5, xmlText(label))
}

func writeBox(b *strings.Builder, n box, it *item, w float64) {
	x, y, h := it.x-w/2, it.y-it.height/2, it.height
	style := fmt.Sprintf(`fill="%s" stroke="#444"`, fill(n.state))
	rounding := 3.0
	switch n.Type.Info().Figure {
	case definition.FigureChoice, definition.FigureQuestion:
		tip := padding // a hexagon, that of a question with a thick border
		if n.Type.Info().Figure == definition.FigureQuestion {
			style += ` stroke-width="3"`
		}
		fmt.Fprintf(b, `<polygon points="%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f" %s/>`,
			x, it.y, x+tip, y, x+w-tip, y, x+w, it.y, x+w-tip, y+h, x+tip, y+h, style)
	default:
		switch n.Type.Info().Figure {
		case definition.FigureTerminal:
			rounding = h / 2
		case definition.FigurePause:
			rounding = 10
		case definition.FigureFork:
			style += ` stroke-width="2" stroke-dasharray="10 2"`
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="%.1f" %s/>`, x, y, w, h, rounding, style)
	}
	for i, line := range n.lines {
		weight := ""
		if i == 0 {
			weight = ` font-weight="bold"`
		}
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle"%s>%s</text>`, it.x, y+padding/2+float64(i+1)*lineHeight-4, weight, xmlText(line))
	}
	b.WriteString("\n")
}

// textWidth counts characters; those beyond Latin, Greek and Cyrillic are taken to be twice as wide.
func textWidth(text string) float64 {
	n := 0.0
	for _, r := range text {
		if n++; r >= 0x1100 && (r < 0x2000 || r > 0x2bff) {
			n++
		}
	}
	return n
}

func xmlText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(clean(text))) // a strings.Builder takes everything
	return b.String()
}
