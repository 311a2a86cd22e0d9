package graph

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/execution"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/transfer"
)

// ForkRequest begins a run with the past of another one.
type ForkRequest struct {
	// ExecutionID is the run to fork, Seq the last of its records that the new run takes over: any record from the first
	// to the last.
	ExecutionID string
	Seq         int64
	// BeforeNode, instead of Seq, is the node whose newest visit the new run begins with; of visits that a rollback has undone, the first.
	BeforeNode string
	// Correction, with BeforeNode, is a JSON merge patch (RFC 7396) of the state with which the new run continues: members replace
	// those of the state, null removes. Nil leaves the state as it was. It does not go with a node in a parallel branch or at the
	// beginning.
	Correction map[string]any
	// NewExecutionID is the new run's; blank means a new one.
	NewExecutionID string
	// Definition is what the new run follows; nil means the run's own. What is taken over must be what this definition
	// would have led to.
	Definition *definition.Document
	// RequireCapable refuses a run in process that this Runner cannot perform from there to its end; see StartRequest.RequireCapable.
	RequireCapable bool
	// Wait bounds how long the call waits in line; see Wait.
	Wait Wait
}

// Fork begins a run that has done what another one had done up to a record, and continues it; what this process
// lacks is left to another one (Run.Lacks). The other run is not changed, whatever its state.
//
// Every outcome recorded up to Seq is kept: activities, answers, signals, fired timers and ended subworkflows, in parallel
// branches too. What was pending there is begun anew under the new run's id and idempotency keys: attempts in flight,
// timers, and subworkflows that had not ended, which start from their beginning. Times move along: the new run's past ends
// now, and what had an hour to go has an hour to go. An end, be it completion, failure or cancel, is not taken over;
// completion and failure follow again if nothing else does.
//
// NONDETERMINISM_DETECTED, with the place of the first difference, if the past is not what the definition leads to;
// VALIDATION_ERROR for a Seq that the run does not have, for runs that another engine began and for a Correction
// that does not fit; EXECUTION_NOT_FOUND;
// DEFINITION_REQUIRED; DUPLICATE_EXECUTION_ID; COMPOSITE_EXECUTOR_NOT_CONFIGURED with RequireCapable. Nothing is written then.
func (r *Runner) Fork(ctx context.Context, req ForkRequest) (*Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := admit.ExecutionID(req.NewExecutionID); err != nil {
		return nil, err
	}
	if strings.TrimSpace(req.NewExecutionID) == "" {
		req.NewExecutionID = r.opts.NewID()
	}
	b, err := (&transfer.Fork{
		From: req.ExecutionID, To: req.NewExecutionID, Seq: req.Seq, BeforeNode: req.BeforeNode, Correction: req.Correction, Definition: req.Definition,
		RequireCapable: req.RequireCapable, Library: r.library, Capabilities: r.performer, Limits: r.limits(), MaxVisits: r.opts.MaxVisits,
		MaxBytes: r.opts.MaxDocumentBytes, Now: r.now().Truncate(time.Millisecond),
	}).Batch(ctx, r.store)
	if err != nil {
		return nil, err
	}
	x := r.runs.Hold(req.NewExecutionID)
	defer r.runs.Drop(x)
	if err := r.store.Append(ctx, b); err != nil {
		if errors.Is(err, problem.HistoryConflict) {
			err = r.used(ctx, req.NewExecutionID, "Choose another id, or leave it out.")
		}
		return nil, err
	}
	err = r.with(ctx, x, func(w *execution.Work) error {
		if err := x.Open(ctx); err != nil || x.Ended() {
			return err
		}
		return x.TakeOver(ctx, false, w)
	})
	if err != nil && !errors.Is(err, execution.ErrConflict) {
		return nil, err
	}
	return r.answer(ctx, x, req.Wait)
}
