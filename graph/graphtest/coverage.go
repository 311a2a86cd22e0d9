package graphtest

import "github.com/workflows-engine/workflows-engine/graph/definition"

// Coverage counts visits of nodes and edges, with one entry for each definition in the order of their first runs.
type Coverage []*Covered

// Covered is the coverage of one definition.
type Covered struct {
	Name, Version, Hash string
	// Nodes and Edges are in the order of the document.
	Nodes []CoveredNode
	Edges []CoveredEdge
}

// CoveredNode counts the visits of a node.
type CoveredNode struct {
	ID     string
	Visits int
}

// CoveredEdge counts the runs along an edge, to the target of a switch, or into a branch.
type CoveredEdge struct {
	From, To string
	Taken    int
}

// Add adds the coverage of other runs.
func (c *Coverage) Add(other Coverage) {
	for _, o := range other {
		mine := c.find(o.Hash)
		if mine == nil {
			mine = &Covered{Name: o.Name, Version: o.Version, Hash: o.Hash, Nodes: make([]CoveredNode, len(o.Nodes)), Edges: make([]CoveredEdge, len(o.Edges))}
			*c = append(*c, mine)
		}
		for i, n := range o.Nodes {
			mine.Nodes[i] = CoveredNode{n.ID, mine.Nodes[i].Visits + n.Visits}
		}
		for i, e := range o.Edges {
			mine.Edges[i] = CoveredEdge{e.From, e.To, mine.Edges[i].Taken + e.Taken}
		}
	}
}

func (c Coverage) find(hash string) *Covered {
	for _, d := range c {
		if d.Hash == hash {
			return d
		}
	}
	return nil
}

// of returns the entry of a program, and adds it if needed.
func (c *Coverage) of(prog *definition.Program) *Covered {
	if d := c.find(prog.Hash); d != nil {
		return d
	}
	d := &Covered{Name: prog.Name, Version: prog.Version, Hash: prog.Hash}
	for _, n := range prog.Nodes {
		d.Nodes = append(d.Nodes, CoveredNode{ID: n.ID})
		for _, to := range prog.Targets(n) {
			d.Edges = append(d.Edges, CoveredEdge{From: n.ID, To: to.ID})
		}
	}
	*c = append(*c, d)
	return d
}

func (d *Covered) moved(from, to *definition.Node) {
	for i := range d.Edges {
		if e := &d.Edges[i]; e.From == from.ID && e.To == to.ID {
			e.Taken++
			return
		}
	}
}

// Unvisited returns the nodes without a visit.
func (d *Covered) Unvisited() (ids []string) {
	for _, n := range d.Nodes {
		if n.Visits == 0 {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// Untaken returns the edges that no run has taken.
func (d *Covered) Untaken() (edges []CoveredEdge) {
	for _, e := range d.Edges {
		if e.Taken == 0 {
			edges = append(edges, e)
		}
	}
	return edges
}
