package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// lastRecords is how many records at the end of a history surely hold the terminal event and the FailNode before it,
// unless another engine wrote on after the end.
const lastRecords = 8

// RecordedEnding reads how a run ended.
func RecordedEnding(ctx context.Context, store history.Store, exec history.Execution) (view.Ending, error) {
	e, err := outcome(ctx, store, exec)
	if err != nil {
		return e, err
	}
	if e.NodeID == "" && e.Status == machine.Failed {
		e.NodeID = exec.CurrentNodeID
	}
	e.State, err = RecordedState(ctx, store, exec)
	return e, err
}

// outcome reads of a run's ending what its last records say.
func outcome(ctx context.Context, store history.Store, exec history.Execution) (view.Ending, error) {
	e := view.Ending{Status: machine.Status(exec.Phase), DefinitionHash: exec.DefinitionHash}
	from := max(exec.Seq-lastRecords, 0) + 1
	found := false
	for !found {
		records, err := store.Read(ctx, exec.ID, from, 0)
		if err != nil {
			return e, err
		}
		if found = e.TakeRecords(records); found || from == 1 {
			break
		}
		from = 1
	}
	if !found { // it may have been deleted since exec was read
		if _, err := store.Execution(ctx, exec.ID); err != nil {
			return e, err
		}
	}
	return e, nil
}

// KeepsTasks reports whether a run was ended in such a way that its tasks at agents go on: they belong to a copy of it in
// another database. Of a run that is gone nobody knows; to end a task that goes on to be wanted is the greater harm.
func KeepsTasks(ctx context.Context, store history.Store, id string) (bool, error) {
	switch exec, err := store.Execution(ctx, id); {
	case errors.Is(err, problem.ExecutionNotFound):
		return true, nil
	case err != nil:
		return false, err
	case exec.Phase != history.PhaseCancelled:
		return false, nil
	default:
		e, err := outcome(ctx, store, exec)
		return e.KeepsTasks, err
	}
}

// RecordedState reads a run's newest state; before the first snapshot that is the recorded input.
func RecordedState(ctx context.Context, store history.Store, exec history.Execution) (map[string]any, error) {
	at := max(exec.StateSeq, 1)
	records, err := store.Read(ctx, exec.ID, at, 1)
	if err != nil || len(records) == 0 {
		return map[string]any{}, err
	}
	p := &records[0].Payload
	switch {
	case p.State != nil:
		return p.State, nil
	case p.Input != nil:
		return p.Input, nil
	default:
		return map[string]any{}, nil
	}
}

// StoredTimers is how the timers of a run are stored.
func StoredTimers(id string, ts []machine.Timer) []history.Timer {
	if len(ts) == 0 {
		return nil
	}
	out := make([]history.Timer, len(ts))
	for i, t := range ts {
		out[i] = history.Timer{ExecutionID: id, Key: t.Key, Due: t.Due}
	}
	return out
}
