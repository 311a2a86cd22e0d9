package graphtest

import "github.com/workflows-engine/workflows-engine/graph/definition"

// Coverage counts what runs have gone through, one entry a definition, in the order in which they were first run. The zero value is
// that of no runs.
type Coverage []*Covered

// Covered counts what runs of one definition have gone through.
type Covered struct {
	Name, Version, Hash string
	// Nodes are in the order of the document; Edges too, by the node that they leave.
	Nodes []CoveredNode
	Edges []CoveredEdge
}

// CoveredNode says how often a node was visited.
type CoveredNode struct {
	ID     string
	Visits int
}

// CoveredEdge says how often runs went from a node to the next: along an edge, to a target of a switch, or into a branch.
type CoveredEdge struct {
	From, To string
	Taken    int
}

// Add adds what other runs have gone through.
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

// of returns the entry of a program, which it makes.
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

// Unvisited lists the nodes that no run visited.
func (d *Covered) Unvisited() (ids []string) {
	for _, n := range d.Nodes {
		if n.Visits == 0 {
			ids = append(ids, n.ID)
		}
	}
	return ids
}

// Untaken lists the edges that no run took.
func (d *Covered) Untaken() (edges []CoveredEdge) {
	for _, e := range d.Edges {
		if e.Taken == 0 {
			edges = append(edges, e)
		}
	}
	return edges
}
