package picture

import (
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// The widths of the texts in a drawing, in characters.
const (
	maxName  = 32
	maxAbout = 40
	maxLabel = 36
)

// graph has the nodes to draw, in document order, and their edges.
type graph struct {
	nodes []box
	edges []edge
	entry int
}

type box struct {
	*definition.Node
	// lines are the name, the type with its main setting, and in the picture of a run the outcome.
	lines []string
	state State
}

// edge leads from one node to another, both by their index. There is one of either kind between two nodes.
type edge struct {
	from, to int
	labels   []string
	failure  bool // a failure is caught, or a node undone
	taken    bool
}

func (e *edge) label() string { return cut(clean(strings.Join(e.labels, ", ")), maxLabel) }

// draw collects nodes and edges. run is nil for the picture of a definition alone.
func draw(p *definition.Program, run *timeline.Run) *graph {
	g, passed := &graph{}, passagesOf(run)
	for _, n := range p.Nodes {
		b := box{Node: n, lines: []string{cut(clean(n.ID), maxName), cut(clean(about(n)), maxAbout)}, state: passed.nodes[n.ID].state}
		if facts := passed.facts(n.ID); facts != "" {
			b.lines = append(b.lines, facts)
		}
		g.nodes = append(g.nodes, b)
	}
	index := map[*definition.Node]int{}
	for i, n := range p.Nodes {
		index[n] = i
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
			g.edges = append(g.edges, edge{from: key.from, to: key.to, failure: failure, taken: passed.edges[step{from.ID, to.ID, failure}]})
		}
		if label != "" {
			g.edges[at].labels = append(g.edges[at].labels, label)
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
				add(n, b.Entry, b.Name, false)
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
