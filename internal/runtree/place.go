package runtree

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// Records do not always name the branch to which they belong: a node is then put into the open block that it can belong to, the
// innermost first, and there into the branch that leads to it. A record that names another branch moves it.

// place puts a new visit where it belongs.
func (r *run) place(v *Visit, span *history.ParallelSpan) {
	if i := r.itemsOf(v); i != nil {
		v.items = i
		i.open = append(i.open, v)
		return
	}
	to := r.spanned(span)
	if to == nil {
		to = r.likely(v)
	}
	to.add(v)
}

// itemsOf returns the items of the open map that a visit is one of, nil if it is none.
func (r *run) itemsOf(v *Visit) *items {
	for _, owner := range r.visits[v.Node] {
		if i := owner.items; i != nil && i.owner == owner && v.Number > owner.Number && v.Number <= owner.Number+i.total {
			return i
		}
	}
	return nil
}

// spanned returns the branch that a record names, nil if it names none that is open.
func (r *run) spanned(span *history.ParallelSpan) *sequence {
	if span == nil {
		return nil
	}
	for _, block := range slices.Backward(r.blocks) {
		if block.Node != span.ParallelNodeID {
			continue
		}
		for _, b := range block.branches {
			if b.name == span.BranchName {
				return &b.sequence
			}
		}
	}
	return nil
}

// likely returns the sequence that a visit most likely continues.
func (r *run) likely(v *Visit) *sequence {
	for _, block := range slices.Backward(r.blocks) {
		var possible *sequence
		for _, b := range block.branches {
			if !b.nodes[v.Node] || b.state == drops {
				continue
			}
			if r.leads(b, v) {
				return &b.sequence
			}
			if possible == nil {
				possible = &b.sequence
			}
		}
		if possible != nil {
			return possible
		}
	}
	return &r.main
}

// leads reports whether a branch comes to a visit from where it is.
func (r *run) leads(b *branch, v *Visit) bool {
	last := b.last()
	if last == nil {
		return b.entry == v.Node
	}
	return last.node != nil && slices.ContainsFunc(r.program.Targets(last.node), func(n *definition.Node) bool { return n.ID == v.Node })
}

// move puts a visit into the branch that a record of it names.
func (r *run) move(v *Visit, span *history.ParallelSpan) {
	to := r.spanned(span)
	if to == nil || v.container == nil || v.container == to {
		return
	}
	v.container.visits = slices.DeleteFunc(v.container.visits, func(other *Visit) bool { return other == v })
	to.add(v)
}

// fork opens the branches of a parallel block.
func (r *run) fork(v *Visit, p *history.Payload) {
	v.join = p.Join
	for _, name := range p.BranchNames {
		b := &branch{name: name, nodes: map[string]bool{}}
		if v.node != nil && v.node.Parallel != nil {
			for _, defined := range v.node.Parallel.Branches {
				if defined.Name == name && defined.Entry != nil {
					b.entry = defined.Entry.ID
					r.reach(defined.Entry, v.node.Next, b.nodes)
				}
			}
		}
		v.branches = append(v.branches, b)
	}
	r.blocks = append(r.blocks, v)
}

// reach notes the nodes from one on that come before another.
func (r *run) reach(from, until *definition.Node, seen map[string]bool) {
	queue := []*definition.Node{from}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		if n == nil || n == until || seen[n.ID] {
			continue
		}
		seen[n.ID] = true
		queue = append(queue, r.program.Targets(n)...)
	}
}

// openBlock is the innermost open block at a node, nil if there is none.
func (r *run) openBlock(node string) *Visit {
	for _, block := range slices.Backward(r.blocks) {
		if block.Node == node {
			return block
		}
	}
	return nil
}
