package history

import "slices"

// Waits are derived from facts: one event opens a wait, another closes it. Slices are replaced, so that copies of an Execution do not change;
// ApplyAll changes only its own slices in place.

// manyWaits is the minimum number of waits that justifies a count by node.
const manyWaits = 64

// changeWaits makes the waits exclusive to this fold, with room for more.
func (f *fold) changeWaits(more int) {
	if !f.own {
		f.waits = append(make([]Wait, 0, len(f.waits)+more), f.waits...)
		f.own = true
	}
}

// findWait returns the index of the first wait of the given kinds that matches a record, -1 without a match.
func (f *fold) findWait(p *Payload, ks ...WaitKind) int {
	if f.own && f.nodes == nil && len(f.waits) >= manyWaits {
		f.nodes = map[string]int{}
		for i := range f.waits {
			f.nodes[f.waits[i].NodeID]++
		}
	}
	if f.nodes != nil && f.nodes[p.NodeID] == 0 {
		return -1
	}
	for i := range f.waits {
		if w := &f.waits[i]; w.NodeID == p.NodeID && slices.Contains(ks, w.Kind) && w.meets(p) {
			return i
		}
	}
	return -1
}

// beginWait adds a wait. It replaces the existing wait for a repeated record and for the attempt after a back-off.
func (f *fold) beginWait(p *Payload, w Wait, replaces ...WaitKind) {
	w.NodeID, w.Visit, w.Span, w.BlockVisit = p.NodeID, p.Visit, p.Span, p.BlockVisit
	if i := f.findWait(p, append(replaces, w.Kind)...); i >= 0 {
		f.replaceWait(i, w)
		return
	}
	f.changeWaits(1)
	if f.nodes != nil {
		f.nodes[w.NodeID]++
	}
	f.waits = slices.Insert(f.waits, f.waitPlace(w.Span), w)
}

func (f *fold) replaceWait(i int, w Wait) {
	f.changeWaits(0)
	f.waits[i] = w
}

// waitPlace returns the index for a new wait: the waits of one parallel block are in branch order.
func (f *fold) waitPlace(s *ParallelSpan) int {
	last := len(f.waits)
	place := last
	if s == nil {
		return last
	}
	i := slices.IndexFunc(f.forks, func(k fork) bool { return k.node == s.ParallelNodeID })
	if i < 0 {
		return last
	}
	branches := f.forks[i].branches
	until := slices.Index(branches, s.BranchName)
	for i := last; i > 0; i-- { // usually the newest branch is the last one
		w := &f.waits[i-1]
		if w.Span == nil || w.Span.ParallelNodeID != s.ParallelNodeID {
			continue
		}
		if !isAfter(branches, until, w.Span.BranchName) {
			return place
		}
		place = i - 1
	}
	return place
}

// isAfter reports whether a branch comes after the branch at an index. It searches backwards from the index first.
func isAfter(branches []string, index int, name string) bool {
	for i := index; i >= 0; i-- {
		if branches[i] == name {
			return false
		}
	}
	return slices.Contains(branches[index+1:], name)
}

// endWait removes the wait that a record closes.
func (f *fold) endWait(p *Payload, ks ...WaitKind) {
	if i := f.findWait(p, ks...); i >= 0 {
		f.changeWaits(0)
		if f.nodes != nil {
			f.nodes[p.NodeID]--
		}
		if f.waits = slices.Delete(f.waits, i, i+1); len(f.waits) == 0 {
			f.waits = nil
		}
	}
}

func (f *fold) dropWaits(drop func(w *Wait) bool) {
	var kept []Wait
	f.own, f.nodes = true, nil
	for i := range f.waits {
		if !drop(&f.waits[i]) {
			kept = append(kept, f.waits[i])
		}
	}
	f.waits = kept
}

// openFork adds a parallel block. It closes an open block of the same node, which a loop has left.
func (f *fold) openFork(p *Payload) {
	f.closeForks(f.forkOf(p.NodeID))
	f.forks = append(slices.Clip(f.forks), fork{node: p.NodeID, visit: p.Visit, join: p.Join, branches: p.BranchNames})
}

// forkOf returns the index of a node's open block, len(forks) without one.
func (f *fold) forkOf(node string) int {
	if i := slices.IndexFunc(f.forks, func(k fork) bool { return k.node == node }); i >= 0 {
		return i
	}
	return len(f.forks)
}

// closeForks closes the blocks from index i on and drops the waits of their branches. Blocks are nested, because the commands of branches
// never interleave (spec: execution, 10.6). Facts may precede the command that opens their block, so the end of the last block drops all
// waits in branches. The exception are waits of a later visit of a block whose end was held back: they are kept.
func (f *fold) closeForks(i int) {
	if i >= len(f.forks) {
		return
	}
	closed := f.forks[i:]
	f.forks = f.forks[:i:i]
	f.dropWaits(func(w *Wait) bool {
		return w.Span != nil && (i == 0 || slices.ContainsFunc(closed, func(k fork) bool { return w.within(k.node, k.visit) }))
	})
	if i == 0 {
		f.forks = nil
	}
}

// failBlocks closes the blocks that a FailNode ends: the block of the node, and the enclosing blocks whose joins need all branches, up to the
// block of the node that catches the failure. The failing node is in the innermost block of the script.
func (f *fold) failBlocks(node, caughtBy string) {
	i := f.forkOf(node)
	for i > 0 && f.forks[i-1].join == "all" && caughtBy != node {
		i--
		node = f.forks[i].node
	}
	f.closeForks(i)
}
