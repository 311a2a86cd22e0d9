package picture

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// The font is of one width, so that the width of a text is known.
const (
	charWidth, labelCharWidth = 7.3, 6.1
	lineHeight                = 16.0
	padding                   = 14.0
	loopWidth                 = 26.0
	factsWidth                = 28 // characters of a node's outcome in a run
)

// Style has the CSS rules of an SVG's classes. A page that shows SVGs of Draw includes them; the colours are variables
// that it may set; without them they follow its color-scheme.
const Style = `.picture text{fill:var(--graph-text,light-dark(#222,#e8e8e8))}
.picture .label{fill:var(--graph-label,light-dark(#444,#bbb))}
.picture .edge{stroke:var(--graph-line,light-dark(#666,#999))}
.picture .arrow{fill:var(--graph-line,light-dark(#666,#999))}
.picture .taken{stroke:var(--graph-taken,light-dark(#222,#eee))}
.picture .box{fill:var(--graph-box,light-dark(#fff,#242424));stroke:var(--graph-line,light-dark(#666,#999))}
.picture .done .box{fill:var(--graph-done,light-dark(#d9f2dd,#1d4427))}
.picture .failed .box{fill:var(--graph-failed,light-dark(#f8d4d4,#5a2323))}
.picture .now .box{fill:var(--graph-now,light-dark(#fff0b8,#574a10))}
.picture .stopped .box{fill:var(--graph-stopped,light-dark(#e4e4e4,#3a3a3a))}
.picture a:focus-visible .box,.picture .node:focus-visible .box{stroke:var(--graph-focus,light-dark(#0b57d0,#8ab4f8));stroke-width:3}
.picture a:hover .box{stroke:var(--graph-focus,light-dark(#0b57d0,#8ab4f8))}
`

// Options configures a drawing.
type Options struct {
	// Link returns the address of a node's visits; "" or a nil function draws a node without a link.
	Link func(node string) string
	// Unfold returns the address of the picture with a parallel block unfolded; nil draws no such link.
	Unfold func(block string) string
	// Unfolded are the ids of parallel blocks that show each branch even if many are alike.
	Unfolded []string
	// Alone adds the style to the SVG, for a file. Otherwise the page includes Style.
	Alone bool
}

// SVG draws a definition, or a run of it, as an image of its own. run is nil for a definition alone.
func SVG(p *definition.Program, run *timeline.Run) string { return Draw(p, run, Options{Alone: true}) }

// Draw draws a definition, or a run of it, for a page. Places and sizes depend on the definition and on whether it is
// drawn with a run, never on the state of the run: only classes and texts change while it goes on.
func Draw(p *definition.Program, run *timeline.Run, o Options) string {
	d := drawingOf(p, run != nil, o.Unfolded)
	passed := passagesOf(run)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="group" aria-label="%s" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" font-family="monospace" font-size="12">`+"\n",
		xmlText("Graph of "+p.Name), d.width, d.height, d.width, d.height)
	fmt.Fprintf(&b, "<title>%s</title>\n", xmlText(p.Name))
	if o.Alone {
		fmt.Fprintf(&b, "<style>.picture{color-scheme:light dark}\n%s</style>\n", Style)
	}
	b.WriteString(`<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow" d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>` + "\n")
	for i := range d.graph.edges {
		writeLine(&b, &d.graph.edges[i], passed.taken(&d.graph.edges[i]), d.curves[i])
		if at, ok := d.loopLabels[i]; ok {
			writeLabel(&b, d.graph.edges[i].label(), at[0], at[1])
		}
	}
	for _, layer := range d.layers {
		for _, it := range layer {
			if it.node < 0 {
				writeLabel(&b, it.label, it.x, it.y)
				continue
			}
			d.writeNode(&b, it, &passed, run != nil, o)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// drawing is a graph with places: all that does not depend on the state of a run.
type drawing struct {
	*layout
	graph *graph
	half  []float64 // half the width of each box
	// curves are the lines of the edges, loopLabels the centres of the labels of edges from a node to itself.
	curves     []string
	loopLabels map[int][2]float64
}

// drawings keeps the last drawings, by definition.
var drawings struct {
	sync.Mutex
	kept map[string]*drawing
}

// maxDrawings is how many drawings are kept.
const maxDrawings = 64

func drawingOf(p *definition.Program, withRun bool, unfolded []string) *drawing {
	key := ""
	if p.Hash != "" && !p.Incomplete {
		key = fmt.Sprintf("%s %t %q", p.Hash, withRun, slices.Sorted(slices.Values(unfolded)))
	}
	drawings.Lock()
	d := drawings.kept[key]
	drawings.Unlock()
	if d != nil {
		return d
	}
	d = arranged(draw(p, func(block string) bool { return !slices.Contains(unfolded, block) }), withRun)
	if key == "" {
		return d
	}
	drawings.Lock()
	defer drawings.Unlock()
	if len(drawings.kept) >= maxDrawings || drawings.kept == nil {
		drawings.kept = map[string]*drawing{}
	}
	drawings.kept[key] = d
	return d
}

// arranged gives a graph its places.
func arranged(g *graph, withRun bool) *drawing {
	d := &drawing{graph: g, half: make([]float64, len(g.nodes)), curves: make([]string, len(g.edges)), loopLabels: map[int][2]float64{}}
	loops := map[int]edge{}
	for _, e := range g.edges {
		if e.from == e.to {
			loops[e.from] = e
		}
	}
	lines := 2.0
	for i := range g.nodes {
		w := 60.0
		if withRun {
			lines, w = 3, factsWidth*labelCharWidth+padding
		}
		for _, l := range g.nodes[i].lines {
			w = max(w, textWidth(l)*charWidth+2*padding)
		}
		if isHexagon(&g.nodes[i]) {
			w += 2 * padding
		}
		d.half[i] = w / 2
	}
	half := func(i int) float64 { return d.half[i] }
	d.layout = arrange(g, sizes{
		left: func(i int) float64 { // with the room of a loop to itself
			if e, ok := loops[i]; ok {
				return half(i) + loopWidth + textWidth(e.label())*labelCharWidth
			}
			return half(i)
		},
		right: half, half: half,
		height: func(i int) float64 { return lines*lineHeight + padding },
		label:  func(label string) float64 { return textWidth(label)*labelCharWidth + 6 },
	})
	ports := d.ports()
	for i, e := range g.edges {
		if e.from == e.to {
			n := d.nodes[e.from]
			x := n.x - d.half[e.from]
			d.curves[i] = fmt.Sprintf("M%.1f %.1fc%.1f -14 %.1f 26 0 12", x+d.inset(e.from, -6), n.y-6, -loopWidth, -loopWidth)
			d.loopLabels[i] = [2]float64{x - loopWidth - textWidth(e.label())*labelCharWidth/2, n.y}
			continue
		}
		d.curves[i] = d.curve(i, ports[port{i, true}], ports[port{i, false}])
	}
	return d
}

func isHexagon(n *box) bool {
	f := n.Type.Info().Figure
	return f == definition.FigureChoice || f == definition.FigureQuestion
}

// inset returns how far the side of a box is from its bounding rectangle, dy below or above the centre.
func (d *drawing) inset(node int, dy float64) float64 {
	h := d.nodes[node].height / 2
	switch {
	case isHexagon(&d.graph.nodes[node]):
		return padding * math.Abs(dy) / h
	case d.graph.nodes[node].Type.Info().Figure == definition.FigureTerminal:
		return h - math.Sqrt(max(0, h*h-dy*dy))
	}
	return 0
}

// port is an end of an edge.
type port struct {
	edge    int
	leaving bool
}

// ports spreads the edges at each side of a box, in the order of their other ends. The values are distances from the
// box's centre: in x at the top and at the bottom, in y at the right side, where edges that close loops leave and enter.
func (d *drawing) ports() map[port]float64 {
	type end struct {
		port
		node, side int // side: 0 top, 1 bottom, 2 right
		far        float64
	}
	var ends []end
	for i, e := range d.graph.edges {
		path := d.paths[i]
		switch {
		case path == nil:
		case d.back[i]:
			// An edge that leaves goes up, one that enters comes from below. The nearer lane is the outer end, so that they do not cross.
			ends = append(ends, end{port{i, true}, e.from, 2, path[1].x - 1e6}, end{port{i, false}, e.to, 2, 1e6 - path[len(path)-2].x})
		default:
			ends = append(ends, end{port{i, true}, e.from, 1, path[1].x}, end{port{i, false}, e.to, 0, path[len(path)-2].x})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.side, b.side), cmp.Compare(a.far, b.far))
	})
	places := map[port]float64{}
	for i := 0; i < len(ends); {
		j := i
		for j < len(ends) && ends[j].node == ends[i].node && ends[j].side == ends[i].side {
			j++
		}
		count := float64(j - i)
		room := d.nodes[ends[i].node].height
		if ends[i].side < 2 {
			room = 2*d.half[ends[i].node] - 2*padding
			if d.graph.nodes[ends[i].node].Type.Info().Figure == definition.FigureTerminal {
				room -= d.nodes[ends[i].node].height - 2*padding
			}
		}
		step := min(room/(count+1), 40)
		for k := i; k < j; k++ {
			places[ends[k].port] = (float64(k-i) - (count-1)/2) * step
		}
		i = j
	}
	return places
}

// curve goes from the border of the first item of an edge to that of the last, upright through all between them. It has
// a gap where its label is.
func (d *drawing) curve(i int, leave, enter float64) string {
	path, e := d.paths[i], &d.graph.edges[i]
	up := d.back[i]
	first, last := path[0], path[len(path)-1]
	side := func(it *item, leaving bool) float64 {
		if leaving != up {
			return it.y + it.height/2
		}
		return it.y - it.height/2
	}
	var b strings.Builder
	x, y := first.x+leave, side(first, true)
	if up { // from the right side, beside the box to its top
		from, lane := first.x+d.half[e.from]-d.inset(e.from, leave), first.x+d.half[e.from]+laneGap*(1+d.slot(i, true))
		fmt.Fprintf(&b, "M%.1f %.1fH%.1fQ%.1f %.1f %.1f %.1fV%.1f", from, first.y+leave, lane-4, lane, first.y+leave, lane, first.y+leave-4, y)
		x = lane
	} else {
		fmt.Fprintf(&b, "M%.1f %.1f", x, y)
	}
	to := func(nx, ny float64) {
		middle := (y + ny) / 2
		fmt.Fprintf(&b, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, nx, middle, nx, ny)
		x, y = nx, ny
	}
	for _, it := range path[1 : len(path)-1] {
		to(it.x, side(it, false))
		y = side(it, true)
		switch {
		case it.label != "":
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case it.height > 0:
			fmt.Fprintf(&b, "V%.1f", y)
		}
	}
	if !up {
		to(last.x+enter, side(last, false))
		return b.String()
	}
	lane := last.x + d.half[e.to] + laneGap*(1+d.slot(i, false))
	to(lane, side(last, false))
	fmt.Fprintf(&b, "V%.1fQ%.1f %.1f %.1f %.1fH%.1f", last.y+enter+4, lane, last.y+enter, lane-4, last.y+enter, last.x+d.half[e.to]-d.inset(e.to, enter))
	return b.String()
}

// slot is the place of an edge among those that run beside the box at one of its ends, counted from the box.
func (d *drawing) slot(i int, leaving bool) float64 {
	path := d.paths[i]
	node, mine := d.graph.edges[i].to, path[len(path)-2].x
	if leaving {
		node, mine = d.graph.edges[i].from, path[1].x
	}
	n := 0.0
	for j, e := range d.graph.edges {
		if !d.back[j] || d.paths[j] == nil || j == i {
			continue
		}
		other := d.paths[j]
		if e.from == node && (other[1].x < mine || other[1].x == mine && j < i) || e.to == node && (other[len(other)-2].x < mine || other[len(other)-2].x == mine && j < i) {
			n++
		}
	}
	return n
}

func writeLine(b *strings.Builder, e *edge, taken bool, d string) {
	class, width, dash := "edge", 1.2, ""
	if taken {
		class, width = "edge taken", 3
	}
	if e.failure {
		class += " failure"
		dash = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<path class="%s" d="%s" fill="none" stroke="#666" stroke-width="%.1f"%s marker-end="url(#arrow)"/>`+"\n", class, d, width, dash)
}

func writeLabel(b *strings.Builder, label string, x, y float64) {
	if label == "" {
		return
	}
	fmt.Fprintf(b, `<text class="label" x="%.1f" y="%.1f" font-size="10" text-anchor="middle" fill="#444">%s</text>`+"\n", x, y+3.5, xmlText(label))
}

// writeNode writes a node with its outcome in a run.
func (d *drawing) writeNode(b *strings.Builder, it *item, passed *passages, withRun bool, o Options) {
	n := &d.graph.nodes[it.node]
	state, facts := passed.nodes[n.ID].state, passed.facts(n.ID)
	if n.alike != nil {
		state, facts = passed.together(n.alike)
	}
	about := []string{n.lines[0], string(n.Type)}
	switch {
	case facts != "":
		about = append(about, facts)
	case withRun:
		about = append(about, "not visited")
	}
	link := ""
	if n.alike != nil && o.Unfold != nil {
		link = o.Unfold(n.block)
	} else if n.alike == nil && o.Link != nil {
		link = o.Link(n.ID)
	}
	label := xmlText(strings.Join(about, ", "))
	class := strings.TrimSpace("node " + string(state))
	id := xmlText("n-" + url.PathEscape(n.ID))
	if link != "" {
		fmt.Fprintf(b, `<a href="%s" aria-label="%s"><g id="%s" class="%s">`, xmlText(link), label, id, class)
	} else {
		fmt.Fprintf(b, `<g id="%s" class="%s" tabindex="0" role="img" aria-label="%s">`, id, class, label)
	}
	d.writeBox(b, n, it, state, facts)
	b.WriteString("</g>")
	if link != "" {
		b.WriteString("</a>")
	}
	b.WriteString("\n")
}

func (d *drawing) writeBox(b *strings.Builder, n *box, it *item, state State, facts string) {
	w := 2 * d.half[it.node]
	x, y, h := it.x-w/2, it.y-it.height/2, it.height
	style := fmt.Sprintf(`class="box" fill="%s" stroke="#666"`, fill(state))
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
	if facts != "" {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" font-size="10" text-anchor="middle">%s</text>`, it.x, y+padding/2+3*lineHeight-4, xmlText(cut(facts, factsWidth)))
	}
}

// together adds up the states of nodes that are drawn as one: the worst state, and how many nodes have which.
func (p *passages) together(nodes []string) (state State, facts string) {
	counts := map[State]int{}
	for _, id := range nodes {
		counts[p.nodes[id].state]++
	}
	var words []string
	for _, s := range []State{Done, Failed, Stopped, Now} {
		if counts[s] > 0 {
			name := string(s)
			if s == Now {
				name = "running"
			}
			state = s
			words = append(words, fmt.Sprintf("%d %s", counts[s], name))
		}
	}
	if counts[Failed] > 0 && counts[Now] == 0 {
		state = Failed
	}
	return state, strings.Join(words, ", ")
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
