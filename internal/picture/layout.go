package picture

import "slices"

// The distances of a layout, in pixels.
const (
	gapX, gapY = 24.0, 14.0
	bendWidth  = 12.0
	sweeps     = 12
)

// item has a place in a layer: it is a node, or a point of an edge that passes the layer.
type item struct {
	node         int // -1 for a bend of an edge
	label        string
	width        float64
	height       float64
	x, y         float64 // the centre
	above, below []*item
	at           int // the place in its layer
}

// layout has the items of a graph in layers from top to bottom. Nodes are in even layers, the labels of edges in odd ones.
type layout struct {
	layers [][]*item
	nodes  []*item
	// paths are the items of each edge from its source to its target; that of an edge from a node to itself is nil.
	paths         [][]*item
	width, height float64
}

// arrange places a graph: a node is below all nodes that lead to it, but for those of a loop. An edge that leads back passes the layers
// upwards. The same graph always has the same layout.
func arrange(g *graph, nodeWidth, nodeHeight func(int) float64, labelWidth func(string) float64) *layout {
	back := backEdges(g)
	rank := ranks(g, back)
	l := &layout{layers: make([][]*item, 2*slices.Max(rank)+1), nodes: make([]*item, len(g.nodes)), paths: make([][]*item, len(g.edges))}
	put := func(layer int, it *item) *item {
		l.layers[layer] = append(l.layers[layer], it)
		return it
	}
	for i := range g.nodes {
		l.nodes[i] = put(2*rank[i], &item{node: i, width: nodeWidth(i), height: nodeHeight(i)})
	}
	for i, e := range g.edges {
		if e.from == e.to {
			continue
		}
		from, to := e.from, e.to
		if back[i] {
			from, to = to, from
		}
		path := []*item{l.nodes[from]}
		middle := 2*rank[from] + 1
		if back[i] {
			middle = 2*rank[to] - 1 // beside the source of the edge
		}
		for layer := 2*rank[from] + 1; layer < 2*rank[to]; layer++ {
			bend := &item{node: -1, width: bendWidth}
			if text := e.label(); layer == middle && text != "" {
				bend.label, bend.width, bend.height = text, labelWidth(text), 16
			}
			path = append(path, put(layer, bend))
		}
		path = append(path, l.nodes[to])
		for j := 1; j < len(path); j++ {
			path[j-1].below = append(path[j-1].below, path[j])
			path[j].above = append(path[j].above, path[j-1])
		}
		if back[i] {
			slices.Reverse(path)
		}
		l.paths[i] = path
	}
	l.order()
	l.place()
	return l
}

// backEdges are the edges that close a loop, by index, found from the first node on.
func backEdges(g *graph) []bool {
	out := make([][]int, len(g.nodes))
	for i, e := range g.edges {
		out[e.from] = append(out[e.from], i)
	}
	back, state := make([]bool, len(g.edges)), make([]int, len(g.nodes))
	var visit func(n int)
	visit = func(n int) {
		state[n] = 1
		for _, i := range out[n] {
			switch to := g.edges[i].to; state[to] {
			case 0:
				visit(to)
			case 1:
				back[i] = true
			}
		}
		state[n] = 2
	}
	visit(g.entry)
	for n := range g.nodes {
		if state[n] == 0 {
			visit(n)
		}
	}
	return back
}

// ranks are the lengths of the longest paths to nodes, without the edges that close loops.
func ranks(g *graph, back []bool) []int {
	rank := make([]int, len(g.nodes))
	for changed := true; changed; {
		changed = false
		for i, e := range g.edges {
			if !back[i] && rank[e.to] <= rank[e.from] {
				rank[e.to], changed = rank[e.from]+1, true
			}
		}
	}
	return rank
}

// order sorts each layer by the mean place of the neighbours, from above and from below in turn.
func (l *layout) order() {
	for _, layer := range l.layers {
		for i, it := range layer {
			it.at = i
		}
	}
	for sweep := range sweeps {
		for i := range l.layers {
			layer := l.layers[i]
			near := func(it *item) []*item { return it.above }
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-i]
				near = func(it *item) []*item { return it.below }
			}
			mean := map[*item]float64{}
			for _, it := range layer {
				mean[it] = average(near(it), float64(it.at), func(n *item) float64 { return float64(n.at) })
			}
			slices.SortStableFunc(layer, func(a, b *item) int {
				switch d := mean[a] - mean[b]; {
				case d < 0:
					return -1
				case d > 0:
					return 1
				}
				return 0
			})
			for at, it := range layer {
				it.at = at
			}
		}
	}
}

func average(items []*item, otherwise float64, value func(*item) float64) float64 {
	if len(items) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, it := range items {
		sum += value(it)
	}
	return sum / float64(len(items))
}

// place gives each item its centre: near its neighbours, with nothing over another.
func (l *layout) place() {
	for sweep := range 2 * sweeps {
		for i := range l.layers {
			layer := l.layers[i]
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-i]
			}
			align(layer, func(it *item) float64 {
				return average(slices.Concat(it.above, it.below), it.x, func(n *item) float64 { return n.x })
			})
		}
	}
	left, right := 0.0, 0.0
	for _, layer := range l.layers {
		for _, it := range layer {
			left, right = min(left, it.x-it.width/2), max(right, it.x+it.width/2)
		}
	}
	y := gapY
	for _, layer := range l.layers {
		height := 0.0
		for _, it := range layer {
			height = max(height, it.height)
		}
		for _, it := range layer {
			it.x += gapX - left
			it.y = y + height/2
			if it.node < 0 {
				it.height = height // an edge goes straight past its neighbours
			}
		}
		y += height + gapY
	}
	l.width, l.height = right-left+2*gapX, y
}

// align moves the items of a layer as near to where they want to be as their order and widths allow: neighbours that would overlap
// become a block, which is placed at the mean of the places that its items want.
func align(layer []*item, wish func(*item) float64) {
	type block struct {
		sum   float64
		count int
	}
	offsets := make([]float64, len(layer))
	var blocks []block
	for i, it := range layer {
		if i > 0 {
			offsets[i] = offsets[i-1] + (layer[i-1].width+it.width)/2 + gapX
		}
		blocks = append(blocks, block{wish(it) - offsets[i], 1})
		for n := len(blocks); n > 1 && blocks[n-2].sum/float64(blocks[n-2].count) > blocks[n-1].sum/float64(blocks[n-1].count); n-- {
			blocks[n-2].sum += blocks[n-1].sum
			blocks[n-2].count += blocks[n-1].count
			blocks = blocks[:n-1]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.count {
			layer[i].x = b.sum/float64(b.count) + offsets[i]
			i++
		}
	}
}
