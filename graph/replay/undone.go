package replay

import (
	"strconv"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// keepsUndone refuses a past, the first n records, with something in it that a rollback has undone since: the new run would build upon
// what is no longer there.
func (f *Fork) keepsUndone(records []history.Record, n int) error {
	undone, compensates := map[string]bool{}, map[string]string{} // visits, and what visits of compensations undo
	for i := n; i < len(records); i++ {
		at := visitOf(&records[i])
		if of := records[i].Payload.Compensates; of != "" {
			compensates[at] = of
		}
		if succeeded(&records[i]) && compensates[at] != "" {
			undone[compensates[at]] = true
		}
	}
	if len(undone) == 0 {
		return nil
	}
	begun := map[string]int64{}
	for i := range records[:n] {
		r := &records[i]
		at := visitOf(r)
		if r.Name == history.NodeScheduled {
			begun[at] = r.Seq
		}
		if succeeded(r) && undone[at] {
			node := r.Payload.NodeID
			return problem.New(problem.ValidationError,
				"run %q has undone what node %q did, and a run forked before node %q would build upon it", f.From, node, f.BeforeNode).
				WithPlace(problem.Place{ExecutionID: f.From, NodeID: node}).
				WithHint("Fork it at record %d, before that node; at another record what was undone counts as done.", max(begun[at]-1, 1))
		}
	}
	return nil
}

func visitOf(r *history.Record) string {
	return r.Payload.NodeID + "#" + strconv.Itoa(max(r.Payload.Visit, 1))
}

// succeeded reports whether a record is the outcome of an activity or a subworkflow that has completed.
func succeeded(r *history.Record) bool {
	return !r.Payload.Replayed && machine.IsOutcome(r.Name) &&
		(r.Name == history.ActivityCompleted || r.Name == history.SubworkflowCompleted && !r.Payload.Failed)
}
