package timeline

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// The record that starts a visit names its branch only if the attempt is queued. The visit is then put into the innermost open block with a
// branch that leads to it, and moved when a later record names another branch.

// place puts a new visit into its map, branch or the main sequence.
func (r *Run) place(v *Visit, p *history.Payload) {
	if i := r.itemsOf(v); i != nil {
		v.Items = i
		i.Open = append(i.Open, v)
		return
	}
	to := r.spanned(p)
	if to == nil {
		to = r.guess(v)
	}
	to.add(v)
}

// itemsOf returns the items of the open map that a visit belongs to, nil if it is not an item.
func (r *Run) itemsOf(v *Visit) *Items {
	for _, owner := range slices.Backward(r.maps) {
		if owner.Node == v.Node && v.Number > owner.Number &&
			(owner.Items.Total == unknownTotal || v.Number <= owner.Number+owner.Items.Total) {
			return owner.Items
		}
	}
	return nil
}

// spanned returns the open branch that a record names, or nil.
func (r *Run) spanned(p *history.Payload) *Sequence {
	if p.Span == nil {
		return nil
	}
	for _, block := range slices.Backward(r.blocks) {
		if block.Node != p.Span.ParallelNodeID || p.BlockVisit > 0 && block.Number != p.BlockVisit {
			continue
		}
		for _, b := range block.Branches {
			if b.Name == p.Span.BranchName {
				return &b.Sequence
			}
		}
	}
	return nil
}

// guess returns the sequence that a visit most likely continues.
func (r *Run) guess(v *Visit) *Sequence {
	for _, block := range slices.Backward(r.blocks) {
		var possible *Sequence
		for _, b := range block.Branches {
			if !b.nodes[v.Node] || b.Dropped {
				continue
			}
			if r.leads(b, v) {
				return &b.Sequence
			}
			if possible == nil {
				possible = &b.Sequence
			}
		}
		if possible != nil {
			return possible
		}
	}
	return &r.Main
}

// leads reports whether a visit can come next in a branch. The end of a block or a map may be recorded after the visit that follows it.
func (r *Run) leads(b *Branch, v *Visit) bool {
	last := b.Lead()
	if last == nil {
		return b.entry == v.Node
	}
	over := !last.Ended.IsZero() || len(last.Branches) > 0 || last.Items != nil
	return over && last.Definition != nil &&
		slices.ContainsFunc(r.Program.Targets(last.Definition), func(n *definition.Node) bool { return n.ID == v.Node })
}

// move puts a visit into the branch that a record of it names.
func (r *Run) move(v *Visit, p *history.Payload) {
	to := r.spanned(p)
	if to == nil || v.Sequence == nil || v.Sequence == to || to.block == v {
		return
	}
	v.Sequence.remove(v)
	to.add(v)
}

// fork opens the branches of a parallel block. In a branch the record for it may come after the visits in it, so that a block with a known
// definition is opened when its visit starts.
func (r *Run) fork(v *Visit, join string, names []string) {
	if len(v.Branches) > 0 || !v.Ended.IsZero() {
		return
	}
	v.join = join
	for _, name := range names {
		v.Branches = append(v.Branches, &Branch{Name: name, Sequence: Sequence{block: v}})
	}
	r.blocks = append(r.blocks, v)
}

// forkDefined opens the branches that the definition of a block has.
func (r *Run) forkDefined(v *Visit) {
	defined := v.Definition.Parallel
	names := make([]string, len(defined.Branches))
	for i, b := range defined.Branches {
		names[i] = b.Name
	}
	r.fork(v, string(defined.Join), names)
	for i, b := range v.Branches {
		if entry := defined.Branches[i].Entry; entry != nil {
			b.entry, b.nodes = entry.ID, map[string]bool{}
			reach(r.Program, entry, v.Definition.Next, b.nodes)
		}
	}
}

// reach adds the nodes from one on that come before another.
func reach(p *definition.Program, from, until *definition.Node, seen map[string]bool) {
	queue := []*definition.Node{from}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == nil || n == until || seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		queue = append(queue, p.Targets(n)...)
	}
}

// openBlock returns the innermost open block at a node, or nil.
func (r *Run) openBlock(node string) *Visit {
	for _, block := range slices.Backward(r.blocks) {
		if block.Node == node {
			return block
		}
	}
	return nil
}

func nextOf(v *Visit) string {
	if v.Definition == nil || v.Definition.Next == nil {
		return ""
	}
	return v.Definition.Next.ID
}
