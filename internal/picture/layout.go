package picture

import (
	"cmp"
	"slices"
)

// The distances of a layout, in pixels.
const (
	gapX, gapY = 24.0, 14.0
	bendWidth  = 12.0
	laneGap    = 8.0 // between lanes beside a node
	sweeps     = 12
)

// item has a place in a layer: it is a node, or a point of an edge that passes the layer.
type item struct {
	node        int // -1 for a bend of an edge
	label       string
	left, right float64 // how far it reaches from its centre
	height      float64
	x, y        float64 // the centre
	// above and below are the neighbours whose places matter. A node takes no notice of the edges that close loops, so
	// that these run beside its column.
	above, below []neighbour
	at           int // the place in its layer
	lane         bool
}

// neighbour is an item that another one wants to be near to, at a distance to its right.
type neighbour struct {
	*item
	beside float64
}

// layout has the items of a graph in layers from top to bottom. Nodes are in even layers, the labels of edges in odd ones.
type layout struct {
	layers [][]*item
	nodes  []*item
	// paths are the items of each edge from its source to its target; that of an edge from a node to itself is nil.
	paths         [][]*item
	back          []bool
	width, height float64
}

// sizes measures a graph: how far nodes reach to the left and to the right, half the width of their boxes, their
// height, and the width of labels.
type sizes struct {
	left, right, half, height func(int) float64
	label                     func(string) float64
}

// arrange places a graph: a node is below all nodes that lead to it, but for those of a loop. An edge that closes a loop
// passes the layers upwards, beside the nodes. The same graph always has the same layout.
func arrange(g *graph, s sizes) *layout {
	back := backEdges(g)
	rank := ranks(g, back)
	l := &layout{layers: make([][]*item, 2*slices.Max(rank)+1), nodes: make([]*item, len(g.nodes)), paths: make([][]*item, len(g.edges)), back: back}
	put := func(layer int, it *item) *item {
		l.layers[layer] = append(l.layers[layer], it)
		return it
	}
	lanes := make([]int, len(g.nodes))
	for i, e := range g.edges {
		if back[i] && e.from != e.to {
			lanes[e.from]++
			lanes[e.to]++
		}
	}
	for i := range g.nodes {
		room := 0.0
		if lanes[i] > 0 {
			room = laneGap * float64(lanes[i]+1)
		}
		l.nodes[i] = put(2*rank[i], &item{node: i, left: s.left(i), right: s.right(i) + room, height: s.height(i)})
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
			bend := &item{node: -1, left: bendWidth / 2, right: bendWidth / 2, lane: back[i]}
			if text := e.label(); layer == middle && text != "" {
				w := s.label(text)
				bend.label, bend.left, bend.right, bend.height = text, w/2, w/2, 16
			}
			path = append(path, put(layer, bend))
		}
		path = append(path, l.nodes[to])
		for j := 1; j < len(path); j++ {
			upper, lower := path[j-1], path[j]
			if !back[i] {
				upper.below = append(upper.below, neighbour{lower, 0})
				lower.above = append(lower.above, neighbour{upper, 0})
				continue
			}
			beside := func(n int) float64 { return s.half(n) + 2*laneGap + float64(rank[to]-rank[from])/100 }
			if upper.node < 0 {
				d := 0.0
				if lower.node >= 0 {
					d = beside(to)
				}
				upper.below = append(upper.below, neighbour{lower, d})
			}
			if lower.node < 0 {
				d := 0.0
				if upper.node >= 0 {
					d = beside(from)
				}
				lower.above = append(lower.above, neighbour{upper, d})
			}
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
			near := func(it *item) []neighbour { return it.above }
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-i]
				near = func(it *item) []neighbour { return it.below }
			}
			mean := map[*item]float64{}
			for _, it := range layer {
				mean[it] = average(near(it), float64(it.at), func(n neighbour) float64 {
					if n.beside > 0 { // right of the node, a longer edge further out
						return float64(n.at) + 0.3 + n.beside/10000
					}
					return float64(n.at)
				})
			}
			slices.SortStableFunc(layer, func(a, b *item) int { return cmp.Compare(mean[a], mean[b]) })
			for at, it := range layer {
				it.at = at
			}
		}
	}
}

// straighten moves the bends of each edge that closes a loop to one line, right of all that they pass, unless something
// is in the way. Short edges come first: they are nearer to the nodes.
func (l *layout) straighten() {
	layerOf := map[*item]int{}
	for i, layer := range l.layers {
		for _, it := range layer {
			layerOf[it] = i
		}
	}
	var lanes [][]*item
	for i, path := range l.paths {
		if l.back[i] && path != nil {
			lanes = append(lanes, path[1:len(path)-1])
		}
	}
	slices.SortStableFunc(lanes, func(a, b []*item) int { return cmp.Compare(len(a), len(b)) })
	for range 2 { // once more, as a longer edge may have made room
		for _, lane := range lanes {
			x := lane[0].x
			for _, it := range lane {
				x = max(x, it.x)
				if it.at > 0 {
					before := l.layers[layerOf[it]][it.at-1]
					x = max(x, before.x+before.right+laneGap+it.left)
				}
			}
			if slices.ContainsFunc(lane, func(it *item) bool {
				layer := l.layers[layerOf[it]]
				return it.at+1 < len(layer) && !layer[it.at+1].lane && x+it.right+laneGap > layer[it.at+1].x-layer[it.at+1].left
			}) {
				continue
			}
			for _, it := range lane {
				it.x = x
				layer := l.layers[layerOf[it]]
				for _, next := range layer[it.at+1:] { // lanes further out give way
					if !next.lane {
						break
					}
					next.x = max(next.x, layer[next.at-1].x+layer[next.at-1].right+laneGap+next.left)
				}
			}
		}
	}
}

func average(items []neighbour, otherwise float64, value func(neighbour) float64) float64 {
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
				return average(slices.Concat(it.above, it.below), it.x, func(n neighbour) float64 { return n.x + n.beside })
			})
		}
	}
	l.straighten()
	left, right := 0.0, 0.0
	for _, layer := range l.layers {
		for _, it := range layer {
			left, right = min(left, it.x-it.left), max(right, it.x+it.right)
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

// laneWeight is the weight of an edge beside a column, compared with the column.
const laneWeight = 0.01

// align moves the items of a layer as near to where they want to be as their order and widths allow: neighbours that would overlap
// become a block, which is placed at the mean of the places that its items want.
func align(layer []*item, wish func(*item) float64) {
	type block struct {
		sum, weight float64
		count       int
	}
	offsets := make([]float64, len(layer))
	var blocks []block
	for i, it := range layer {
		if i > 0 {
			gap := gapX
			if layer[i-1].lane || it.lane {
				gap = laneGap
			}
			offsets[i] = offsets[i-1] + layer[i-1].right + it.left + gap
		}
		weight := 1.0
		if it.lane {
			weight = laneWeight
		}
		blocks = append(blocks, block{weight * (wish(it) - offsets[i]), weight, 1})
		for n := len(blocks); n > 1 && blocks[n-2].sum/blocks[n-2].weight > blocks[n-1].sum/blocks[n-1].weight; n-- {
			blocks[n-2].sum += blocks[n-1].sum
			blocks[n-2].weight += blocks[n-1].weight
			blocks[n-2].count += blocks[n-1].count
			blocks = blocks[:n-1]
		}
	}
	i := 0
	for _, b := range blocks {
		for range b.count {
			layer[i].x = b.sum/b.weight + offsets[i]
			i++
		}
	}
}
