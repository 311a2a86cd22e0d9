package transfer

import (
	"cmp"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// beforeUndone ends the past, which ends before a visit of BeforeNode, before the first of its visits that a rollback has undone since, or
// is about to undo. It refuses a past with anything else in it that is undone: the new run would build upon what is no longer there.
func (f *ForkedPast) beforeUndone(records []history.Record) error {
	var undone history.Undone
	for i := range records {
		undone.Take(&records[i])
	}
	undoing, err := f.undoing(records)
	if err != nil {
		return err
	}
	for _, v := range undoing {
		undone.Undoing(v)
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
	does := "has undone"
	if slices.ContainsFunc(undoing, func(v history.Visit) bool { return v.NodeID == node }) {
		does = "is about to undo"
	}
	return problem.New(problem.ValidationError,
		"run %q %s what node %q did, and a run forked before node %q would build upon it", f.From, does, node, f.BeforeNode).
		WithPlace(problem.Place{ExecutionID: f.From, NodeID: node}).
		WithHint("Fork it before node %q; at the number of a record what was undone counts as done.", node)
}

// undoing lists the visits that a rollback which has not ended is about to undo.
func (f *ForkedPast) undoing(records []history.Record) ([]history.Visit, error) {
	began := slices.ContainsFunc(records, func(r history.Record) bool { return r.Name == history.RollbackStarted })
	if !began || slices.ContainsFunc(records, ends) {
		return nil, nil
	}
	prog := f.Own
	if prog == nil {
		prog = f.Program
	}
	m, _, _, err := Replay(prog, f.From, records, InputOf(records), f.MaxVisits, records[len(records)-1].CreatedAt)
	if err != nil {
		return nil, err
	}
	return m.Undoing(), nil
}
