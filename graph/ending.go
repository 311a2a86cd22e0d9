package graph

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ending is how a run ended.
type ending struct {
	status machine.Status
	state  map[string]any
	result any
	// message, code and nodeID describe a failure, reason a cancellation.
	message, code, nodeID string
	reason                string
	// keepsTasks says of a stored ending that no agent is told of it.
	keepsTasks bool
	hash       string
}

// tell makes the input by which the parent that waits under key learns of the ending.
func (e ending) tell(key string) machine.ChildEnded {
	text := e.message
	if e.status == machine.Cancelled {
		text = e.reason
	}
	return machine.ChildEnded{
		Key: key, Status: e.status, FinalState: e.state, Result: e.result, Error: text, Code: e.code, DefinitionHash: e.hash,
	}
}

// ending tells how the run ended: from the machine that ended it, or from the last records.
func (x *run) ending(ctx context.Context) (ending, error) {
	if x.m == nil {
		return x.r.storedEnding(ctx, x.exec)
	}
	e := ending{status: x.m.Status(), state: x.m.State(), reason: x.m.Reason(), hash: x.exec.DefinitionHash}
	e.result, _ = x.m.Result()
	e.message, e.code, e.nodeID = x.m.Failure()
	return e, nil
}

// lastRecords is how many records at the end of a history surely hold the terminal event and the FailNode before it,
// unless another engine wrote on after the end.
const lastRecords = 8

// storedEnding reads how a run ended.
func (r *Runner) storedEnding(ctx context.Context, exec history.Execution) (ending, error) {
	e, err := r.lastWords(ctx, exec)
	if err != nil {
		return e, err
	}
	if e.nodeID == "" && e.status == machine.Failed {
		e.nodeID = exec.CurrentNodeID
	}
	e.state, err = r.storedState(ctx, exec)
	return e, err
}

// lastWords reads of a run's end what its last records say.
func (r *Runner) lastWords(ctx context.Context, exec history.Execution) (ending, error) {
	e := ending{status: machine.Status(exec.Phase), hash: exec.DefinitionHash}
	from := max(exec.Seq-lastRecords, 0) + 1
	found := false
	for !found {
		records, err := r.store.Read(ctx, exec.ID, from, 0)
		if err != nil {
			return e, err
		}
		if found = e.take(records); found || from == 1 {
			break
		}
		from = 1
	}
	if !found { // it may have been deleted since exec was read
		if _, err := r.store.Execution(ctx, exec.ID); err != nil {
			return e, err
		}
	}
	return e, nil
}

// keepsTasks reports whether a run was ended in such a way that its tasks at agents go on: they belong to a copy of it in
// another database. Of a run that is gone nobody knows; to end a task that goes on to be wanted is the greater harm.
func (r *Runner) keepsTasks(ctx context.Context, id string) (bool, error) {
	switch exec, err := r.store.Execution(ctx, id); {
	case errors.Is(err, problem.ExecutionNotFound):
		return true, nil
	case err != nil:
		return false, err
	case exec.Phase != history.PhaseCancelled:
		return false, nil
	default:
		e, err := r.lastWords(ctx, exec)
		return e.keepsTasks, err
	}
}

// take reads the terminal event among the last records, and reports whether it is there.
func (e *ending) take(records []history.Record) bool {
	found := false
	for i := len(records) - 1; i >= 0; i-- {
		p := &records[i].Payload
		switch name := records[i].Name; {
		case found && name == history.FailNode:
			e.code, e.nodeID = p.Code, p.NodeID
			if e.nodeID == "" {
				e.nodeID = p.FailedNodeID
			}
			return true
		case found:
		case name == history.ExecutionCompleted && e.status == machine.Completed:
			e.result = p.Result.Value
			return true
		case name == history.ExecutionCancelled && e.status == machine.Cancelled:
			e.reason, e.keepsTasks = p.Reason, p.KeepTasks
			return true
		case name == history.ExecutionFailed && e.status == machine.Failed:
			e.message, e.code, found = p.Error, p.Code, true
		}
	}
	return found
}

// storedState reads a run's newest state; before the first snapshot that is the recorded input.
func (r *Runner) storedState(ctx context.Context, exec history.Execution) (map[string]any, error) {
	at := max(exec.StateSeq, 1)
	records, err := r.store.Read(ctx, exec.ID, at, 1)
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
