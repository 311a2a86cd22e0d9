package picture

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// The widths of the texts in a drawing, in characters.
const (
	maxName  = 32
	maxAbout = 40
	maxLabel = 36
)

// graph has the nodes to draw, in document order, and their edges. It depends on the definition alone.
type graph struct {
	nodes []box
	edges []edge
	entry int
}

type box struct {
	*definition.Node
	// lines are the name and the type with its main setting.
	lines []string
	// alike are the nodes that a folded block shows as this one, itself included; nil if it shows only itself.
	alike []string
	// block is the id of the folded block that alike belongs to.
	block string
}

// edge leads from one node to another, both by their index. There is one of either kind between two nodes.
type edge struct {
	from, to int
	labels   []string
	failure  bool // a failure is caught, or a node undone
	steps    []step
}

func (e *edge) label() string { return cut(clean(strings.Join(e.labels, ", ")), maxLabel) }

// taken reports whether a run went along the edge.
func (p *passages) taken(e *edge) bool {
	return slices.ContainsFunc(e.steps, func(s step) bool { return p.edges[s] })
}

// draw collects nodes and edges. fold selects the parallel blocks whose branches are shown as one if they look alike.
func draw(p *definition.Program, fold func(block string) bool) *graph {
	g := &graph{}
	shownAs := map[*definition.Node]*definition.Node{}
	folded := map[*definition.Node]string{}
	for _, n := range p.Nodes {
		if n.Parallel != nil && fold != nil && fold(n.ID) {
			foldBranches(p, n, shownAs, folded)
		}
	}
	index, alike := map[*definition.Node]int{}, map[*definition.Node][]string{}
	for n, first := range shownAs {
		alike[first] = append(alike[first], n.ID)
	}
	for _, n := range p.Nodes {
		if first := shownAs[n]; first != nil && first != n {
			continue
		}
		index[n] = len(g.nodes)
		b := box{Node: n, lines: []string{cut(clean(n.ID), maxName), cut(clean(about(n)), maxAbout)}, alike: alike[n], block: folded[n]}
		if many := len(b.alike); many > 0 {
			b.lines[0] = fmt.Sprintf("%s × %d", cut(clean(n.ID), maxName-6), many)
		}
		g.nodes = append(g.nodes, b)
	}
	for n, first := range shownAs {
		index[n] = index[first]
	}
	g.entry = index[p.Entry]
	type ends struct {
		from, to int
		failure  bool
	}
	known := map[ends]int{}
	add := func(from, to *definition.Node, label string, failure bool) {
		if to == nil {
			return
		}
		key := ends{index[from], index[to], failure}
		at, ok := known[key]
		if !ok {
			at = len(g.edges)
			known[key] = at
			g.edges = append(g.edges, edge{from: key.from, to: key.to, failure: failure})
		}
		e := &g.edges[at]
		e.steps = append(e.steps, step{from.ID, to.ID, failure})
		if label != "" && (!ok || shownAs[from] == nil && shownAs[to] == nil) {
			e.labels = append(e.labels, label)
		}
	}
	for _, n := range p.Nodes {
		switch {
		case n.Switch != nil:
			otherwise := "else"
			if l := n.Loop; l != nil {
				otherwise = "then"
				add(n, l.Body, "each round", false)
				add(n, l.OnLimit, limitOf(l), false)
			}
			for _, c := range n.Switch.Cases {
				add(n, p.Node(c.Target), c.When.Source(), false)
			}
			add(n, p.Node(n.Switch.Default), otherwise, false)
		case n.Parallel != nil:
			for _, b := range n.Parallel.Branches {
				name := b.Name
				if first := shownAs[b.Entry]; first != nil {
					name = fmt.Sprintf("%d branches", len(alike[first]))
				}
				add(n, b.Entry, name, false)
			}
			add(n, n.Next, "joined", false)
		default:
			add(n, n.Next, "", false)
		}
		for _, k := range n.Catches {
			add(n, k.Target, strings.Join(k.Codes, ", "), true)
		}
		if n.Compensation != nil {
			add(n, n.Compensation.Node, "undone by", true)
		}
	}
	return g
}

// Folded returns the ids of the parallel blocks that a drawing shows folded, but for those of unfolded.
func Folded(p *definition.Program, unfolded []string) (blocks []string) {
	shownAs, folded := map[*definition.Node]*definition.Node{}, map[*definition.Node]string{}
	for _, n := range p.Nodes {
		if n.Parallel == nil || slices.Contains(unfolded, n.ID) {
			continue
		}
		before := len(folded)
		if foldBranches(p, n, shownAs, folded); len(folded) > before {
			blocks = append(blocks, n.ID)
		}
	}
	return blocks
}

// manyBranches is how many alike branches are drawn one beside the other; more are folded.
const manyBranches = 8

// foldBranches groups the branches of a block that have the same shape. Of each group with many branches, it notes for
// each node the node of the first branch that is drawn in its place.
func foldBranches(p *definition.Program, block *definition.Node, shownAs map[*definition.Node]*definition.Node, folded map[*definition.Node]string) {
	uses := map[*definition.Node]int{}
	inside := make([][]*definition.Node, len(block.Parallel.Branches))
	for i, b := range block.Parallel.Branches {
		inside[i] = branchNodes(p, block, b.Entry)
		for _, n := range inside[i] {
			uses[n]++
		}
	}
	groups := map[string][]int{}
	for i := range inside {
		shape := branchShape(p, inside[i])
		shared := slices.ContainsFunc(inside[i], func(n *definition.Node) bool { return uses[n] > 1 || shownAs[n] != nil || n == p.Entry })
		if shape != "" && !shared {
			groups[shape] = append(groups[shape], i)
		}
	}
	for _, branches := range groups {
		if len(branches) <= manyBranches {
			continue
		}
		first := inside[branches[0]]
		for _, i := range branches {
			for at, n := range inside[i] {
				shownAs[n] = first[at]
				folded[n] = block.ID
			}
		}
	}
}

// branchNodes returns the nodes of a branch in the order in which they follow each other, up to the join.
func branchNodes(p *definition.Program, block, entry *definition.Node) []*definition.Node {
	if entry == block.Next {
		return nil
	}
	list := []*definition.Node{entry}
	for i := 0; i < len(list); i++ {
		for _, n := range p.Targets(list[i]) {
			if n != block.Next && n != block && !slices.Contains(list, n) {
				list = append(list, n)
			}
		}
	}
	return list
}

// branchShape describes types and edges of a branch, "" of an empty one.
func branchShape(p *definition.Program, nodes []*definition.Node) string {
	var b strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&b, "%q(", about(n))
		for _, to := range p.Targets(n) {
			if at := slices.Index(nodes, to); at >= 0 {
				fmt.Fprintf(&b, "%d,", at)
			} else {
				fmt.Fprintf(&b, "%q,", to.ID)
			}
		}
		fmt.Fprintf(&b, "%d %t)", len(n.Catches), n.Compensation != nil)
	}
	return b.String()
}

// clean replaces control characters, among them those that change the direction of text, and invalid UTF-8.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			return ' '
		case unicode.Is(unicode.Cf, r), r == 0xFFFE, r == 0xFFFF:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
