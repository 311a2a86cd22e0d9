package replay

import (
	"cmp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// beforeUndone ends the past, which ends before a visit of BeforeNode, before the first of its visits that a rollback has undone since. It
// refuses a past with anything else in it that was undone: the new run would build upon what is no longer there.
func (f *Fork) beforeUndone(records []history.Record) error {
	var undone history.Undone
	for i := range records {
		undone.Take(&records[i])
	}
	before, node := undone.Before(f.Seq)
	switch node {
	case "":
		return nil
	case f.BeforeNode:
		f.Seq = before
		if f.Correction != nil { // the visit sees the state as it was when it was scheduled
			f.Seq = cmp.Or(beforeNode(records[:before], node), before)
		}
		return nil
	}
	return problem.New(problem.ValidationError,
		"run %q has undone what node %q did, and a run forked before node %q would build upon it", f.From, node, f.BeforeNode).
		WithPlace(problem.Place{ExecutionID: f.From, NodeID: node}).
		WithHint("Fork it before node %q; at the number of a record what was undone counts as done.", node)
}
