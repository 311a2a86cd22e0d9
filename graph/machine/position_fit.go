package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A stored position may be damaged. A position that no machine of this definition can have written is rejected; the run is then rebuilt from its
// history.

// fits checks a token that was read from a position, before the branches below it.
func (t *token) fits(inner *blockPosition) error {
	name := ""
	if t.node != nil {
		name = t.node.ID
	}
	limited := !t.limit.IsZero()
	misfit := problem.New(problem.HistoryCorrupt, "the stored position does not fit node %q", name)
	switch {
	case t.phase > dropped || t.block == nil && t.phase != live || t.visit < 0:
		return misfit
	case t.phase != live:
		if t.wait != nil || inner != nil || t.phase == broken && t.failure == nil {
			return misfit
		}
		return nil
	case t.node == nil || (t.wait == nil) == (inner == nil) || limited && (t.node.Deadline <= 0 || t.rollback != nil || t.item()):
		return misfit
	case inner != nil && inner.Items != nil:
		if t.node.ID != inner.Node || t.node.Map == nil || t.item() {
			return misfit
		}
		return nil
	case inner != nil:
		if t.node.ID != inner.Node || t.node.Parallel == nil || len(inner.Tokens) != len(t.node.Parallel.Branches) || inner.Head < 0 || inner.Head >= len(inner.Tokens) {
			return misfit
		}
		return nil
	case t.wait.Attempt < 0 || t.wait.Task != nil && t.wait.Kind != WaitDelegate || !t.wait.fitsJournal() || !t.wait.suits(t.node):
		return misfit
	}
	return nil
}

// fitsJournal reports whether a wait can have its journal.
func (w *wait) fitsJournal() bool {
	j := w.Journal
	if j == nil {
		return true
	}
	states := 0
	for _, is := range []bool{j.Question != nil, !j.Due.IsZero(), j.Idle} {
		if is {
			states++
		}
	}
	return w.counts() && !w.Host && w.Task == nil && w.Queued == j.Idle && states <= 1 &&
		j.Count > 0 && j.First > 0 && j.Last >= j.First+int64(j.Count)-1 && (j.Reconfigured == 0 || j.Reconfigured > j.First && j.Reconfigured <= j.Last) && j.Rests >= 0
}

// suits reports whether a node can have this wait.
func (w *wait) suits(n *definition.Node) bool {
	switch w.Kind {
	case WaitActivity:
		return n.Type.IsActivity()
	case WaitDelegate:
		return n.Delegate != nil
	case WaitBackoff:
		return n.Type.Info().Attempted()
	case WaitChild:
		return n.Subworkflow != nil
	case WaitInterrupt:
		return n.Interrupt != nil
	case WaitSignal, WaitTimer:
		return n.Wait != nil && (w.Kind == WaitSignal) == (n.Wait.Kind == definition.WaitSignal)
	default:
		return w.Kind == waitWalk
	}
}
