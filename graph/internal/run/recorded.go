package run

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// lastRecords is the number of records at the end of a history that include the terminal event and the FailNode before it, unless another
// engine wrote after the end.
const lastRecords = 8

// RecordedEnding reads the end of a run from the store.
func RecordedEnding(ctx context.Context, store history.Store, exec history.Execution) (view.Ending, error) {
	e, err := outcome(ctx, store, exec)
	if err != nil {
		return e, err
	}
	if e.NodeID == "" && e.Status == machine.Failed && e.Code != string(problem.RunTimeout) { // the run as a whole has failed
		e.NodeID = exec.CurrentNodeID
	}
	e.State, err = RecordedState(ctx, store, exec)
	return e, err
}

// outcome reads the end of a run from its last records.
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
	if !found { // the run may have been deleted meanwhile
		if _, err := store.Execution(ctx, exec.ID); err != nil {
			return e, err
		}
	}
	return e, nil
}

// KeepsTasks reports whether a run was ended so that its tasks at agents continue, as tasks of a copy in another database. It returns
// true for a run that is gone: to end a wanted task is worse than to leak one.
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

// RecordedState reads a run's newest state: the recorded input before the first snapshot.
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

// StoredTimers converts the timers of a run to their stored form.
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

// RecordPage reads records of a run, with their texts. The error is EXECUTION_NOT_FOUND for an unknown run.
func RecordPage(ctx context.Context, store history.Store, executionID string, from int64, limit int) ([]history.Record, error) {
	records, err := store.Read(ctx, executionID, from, limit)
	if err != nil {
		return nil, err
	}
	// A run that is being deleted may have records left.
	switch _, err := store.Execution(ctx, executionID); {
	case errors.Is(err, problem.ExecutionNotFound), err != nil && len(records) == 0:
		return nil, admit.NotFoundAs(err, problem.ExecutionNotFound, executionID)
	}
	for i := range records {
		records[i].Raw = records[i].Text(executionID)
	}
	return records, nil
}

// CheckAnswer checks an answer to the question of an executor against the journal of the attempt; see graph.Options.CheckAnswer.
type CheckAnswer func(asked activities.RecordedAttempt, answer map[string]any) error

// Of checks an answer to an executor's question among the waits of a run. The machine decides which question it is for, and whether that
// is still open.
func (check CheckAnswer) Of(ctx context.Context, store Records, executionID string, waits []machine.Wait, r machine.Resume) error {
	open := 0
	for i := range waits {
		if waits[i].Kind == machine.WaitInterrupt {
			open++
		}
	}
	if check == nil || r.Key == "" && open > 1 {
		return nil
	}
	for _, w := range waits {
		if w.Journal == nil || w.Journal.Question == nil || r.Key != "" && r.Key != w.Key {
			continue
		}
		of := machine.EffectBase{NodeID: w.NodeID, Visit: w.Visit, Attempt: w.Attempt}
		steps, err := RecordedSteps(ctx, store, executionID, &of, w.Journal.First, 0)
		if err != nil {
			return err
		}
		err = check(activities.RecordedAttempt{Steps: steps}, r.Payload)
		if e, ok := problem.As(err); ok {
			return e.WithPlace(problem.Place{ExecutionID: executionID, NodeID: w.NodeID})
		}
		return err
	}
	return nil
}
