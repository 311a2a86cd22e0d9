package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Repeated calls are looked for in the history only when they are refused, and signals with a key to a run that has started
// subworkflows: they are looked for first. Package admit says what counts as a repetition.

// backwards passes the records of a run to look, the newest first, until it returns true.
func (r *Runner) backwards(ctx context.Context, id string, look func(*history.Record) (done bool)) error {
	const page = 256
	exec, err := r.store.Execution(ctx, id)
	if err != nil {
		return err
	}
	for last := exec.Seq; last > 0; last -= page {
		from := max(last-page+1, 1)
		records, err := r.store.Read(ctx, id, from, int(last-from+1))
		if err != nil {
			return err
		}
		for i := len(records) - 1; i >= 0; i-- {
			if look(&records[i]) {
				return nil
			}
		}
	}
	return nil
}

// lineage returns a run and the subworkflows that it started last, one in the other.
func (r *Runner) lineage(ctx context.Context, id string) []string {
	ids := []string{id}
	for range r.opts.MaxDepth {
		exec, err := r.store.Execution(ctx, id)
		if err != nil || exec.ChildExecutionID == "" || exec.ChildExecutionID == id {
			break
		}
		id = exec.ChildExecutionID
		ids = append(ids, id)
	}
	return ids
}

// submittedBefore looks for a refused submit: by its key, or without one by node, branch and content.
func (r *Runner) submittedBefore(ctx context.Context, executionID string, s admit.Submitted, o machine.Outcome) (admit.Repeat, error) {
	search := admit.RepeatedSubmit{Submitted: s, Outcome: o}
	id, keyed, ok := search.Run(executionID)
	if !ok {
		return admit.NotRepeated, nil
	}
	ids := []string{id}
	if !keyed {
		ids = r.lineage(ctx, executionID)
	}
	for _, id := range ids {
		search.Node = func(nodeID string) *definition.Node { return r.storedNode(ctx, id, nodeID) }
		err := r.backwards(ctx, id, search.Look)
		if err != nil && !errors.Is(err, problem.ExecutionNotFound) || search.Found != admit.NotRepeated {
			return search.Found, err
		}
	}
	return admit.NotRepeated, nil
}

// storedNode returns a node of a run's definition, nil if that is not known.
func (r *Runner) storedNode(ctx context.Context, executionID, nodeID string) *definition.Node {
	exec, err := r.store.Execution(ctx, executionID)
	if err != nil {
		return nil
	}
	prog, err := r.library.Stored(ctx, exec.DefinitionHash)
	if err != nil {
		return nil
	}
	return prog.Node(nodeID)
}

// resumedBefore looks for a refused resume by the interrupt's id.
func (r *Runner) resumedBefore(ctx context.Context, req *ResumeRequest, payload map[string]any) (admit.Repeat, error) {
	search := admit.RepeatedResume{InterruptID: req.InterruptID, Payload: payload}
	id, ok := search.Run(req.ExecutionID)
	if !ok {
		return admit.NotRepeated, nil
	}
	err := r.backwards(ctx, id, search.Look)
	return search.Found, err
}

// maxSignalRuns is how many runs are looked at for a signal's key, the ones started last first.
const maxSignalRuns = 64

// signalledBefore looks for a signal by its key, in the run and in the subworkflows below it.
func (r *Runner) signalledBefore(ctx context.Context, req *SignalRequest, payload map[string]any) (admit.Repeat, error) {
	if req.IdempotencyKey == "" {
		return admit.NotRepeated, nil
	}
	search := admit.RepeatedSignal{Name: req.Name, IdempotencyKey: req.IdempotencyKey, Payload: payload}
	ids := []string{req.ExecutionID}
	for i := 0; i < len(ids) && i < maxSignalRuns; i++ {
		search.Children = nil
		err := r.backwards(ctx, ids[i], func(rec *history.Record) bool { return search.Look(ids[i], rec) })
		ids = append(ids, search.Children...)
		if i > 0 && errors.Is(err, problem.ExecutionNotFound) {
			continue // about to be started
		}
		if err != nil || search.Found != admit.NotRepeated {
			return search.Found, err
		}
	}
	return admit.NotRepeated, nil
}

// signalledBelow looks for a signal before it is delivered. A run knows the keys that it has taken itself; but where there are
// subworkflows another run may wait for the same name by now.
func (r *Runner) signalledBelow(ctx context.Context, req *SignalRequest, payload map[string]any) (admit.Repeat, error) {
	if req.IdempotencyKey == "" {
		return admit.NotRepeated, nil
	}
	exec, err := r.store.Execution(ctx, req.ExecutionID)
	if err != nil || !history.Descends(exec.ChildExecutionID, exec.ID) {
		return admit.NotRepeated, err
	}
	return r.signalledBefore(ctx, req, payload)
}
