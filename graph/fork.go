package graph

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// ForkRequest begins a run with the past of another one.
type ForkRequest struct {
	// ExecutionID is the run to fork, Seq the last of its records that the new run takes over: any record from the first
	// to the last.
	ExecutionID string
	Seq         int64
	// BeforeNode, instead of Seq, is the node whose newest visit the new run begins with; of visits that a rollback has undone, the first. Before the
	// node at which the run has failed, the new run is a retry of it, as with Anew and Again.
	BeforeNode string
	// Correction, with BeforeNode, is a JSON merge patch (RFC 7396) of the state with which the new run continues: members replace
	// those of the state, null removes. Nil leaves the state as it was. It does not go with a node in a parallel branch or at the
	// beginning.
	Correction map[string]any
	// NewExecutionID is the new run's; blank means a new one.
	NewExecutionID string
	// Without Seq and BeforeNode the new run is a retry: it begins where the other one has failed. Where agents have recorded steps there,
	// it goes on where they stood: no call that has a result is made again, and what may have been begun is made again, if at all, under
	// the key of the first run. Else it begins before the node that failed; so it does with Anew, a Correction or a Definition, unless calls
	// of agents that do more than read would be made again: that takes RepeatEffects.
	Anew, RepeatEffects bool
	// CurrentAgentConfig has the agent that failed go on with the models, prices, budgets, retries and fallback that it is configured with
	// now; all else is as it was recorded. A retry of an agent whose budget is used up takes it.
	CurrentAgentConfig bool
	// Again begins a retry although another one is open or has completed.
	Again bool
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
// timers, and subworkflows that had not ended, which start from their beginning; in a retry those in which agents have recorded steps
// go on, those that failed or were cancelled by the failure too. Times move along: the new run's past ends
// now, and what had an hour to go has an hour to go. An end, be it completion, failure or cancel, is not taken over;
// completion and failure follow again if nothing else does.
//
// NONDETERMINISM_DETECTED, with the place of the first difference, if the past is not what the definition leads to;
// VALIDATION_ERROR for a Seq that the run does not have, for a retry of a run that has not failed, for runs that another engine began and for a Correction
// that does not fit; EXECUTION_NOT_FOUND;
// DEFINITION_REQUIRED; DUPLICATE_EXECUTION_ID; RETRY_REPEATS_EFFECTS; AGENT_BUDGET_SPENT; ALREADY_RETRIED; COMPOSITE_EXECUTOR_NOT_CONFIGURED with RequireCapable. Nothing is written then.
func (r *Runner) Fork(ctx context.Context, req ForkRequest) (*view.Run, error) {
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
	retry, err := r.failedBefore(ctx, &req)
	if err != nil {
		return nil, err
	}
	if retry != nil {
		req.BeforeNode, req.Again = "", true
	} else if req.Seq == 0 && req.BeforeNode == "" {
		if retry, err = r.retryOf(ctx, &req); err != nil {
			return nil, err
		}
	} else if req.Again || req.Anew || req.RepeatEffects || req.CurrentAgentConfig {
		return nil, problem.New(problem.ValidationError, "Again, Anew, RepeatEffects and CurrentAgentConfig are for retries").
			WithHint("Leave them out, or leave out the place at which the new run begins.")
	}
	b, err := (&transfer.Fork{
		From: req.ExecutionID, To: req.NewExecutionID, Seq: req.Seq, BeforeNode: req.BeforeNode, Correction: req.Correction, Definition: req.Definition, Retry: retry, Again: req.Again,
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
	err = r.with(ctx, x, func(w *run.Work) error {
		if err := x.Open(ctx); err != nil || x.Ended() {
			return err
		}
		return x.TakeOver(ctx, false, w)
	})
	if err != nil && !errors.Is(err, run.ErrConflict) {
		return nil, err
	}
	return r.answer(ctx, x, req.Wait)
}

// failedBefore makes of a fork before the very node at which a run has failed a retry that begins the node anew, beside others: what agents have done
// there is as little done again unasked as in a retry that does not name the place. Nil for all other forks.
func (r *Runner) failedBefore(ctx context.Context, req *ForkRequest) (*transfer.Retry, error) {
	if req.BeforeNode == "" || req.Seq != 0 || req.Again || req.Anew || req.RepeatEffects || req.CurrentAgentConfig {
		return nil, nil
	}
	run, err := r.Status(ctx, StatusRequest{ExecutionID: req.ExecutionID})
	if err != nil || run.Status != machine.Failed || run.ErrorNodeID != req.BeforeNode || run.Compensated > 0 || problem.Code(run.ErrorCode).IsLimit() {
		return nil, err
	}
	return &transfer.Retry{Node: run.ErrorNodeID, Code: run.ErrorCode, Message: run.Error, Anew: true}, nil
}

// retryOf says how the run that a retry is of has failed.
func (r *Runner) retryOf(ctx context.Context, req *ForkRequest) (*transfer.Retry, error) {
	run, err := r.Status(ctx, StatusRequest{ExecutionID: req.ExecutionID})
	if err != nil {
		return nil, err
	}
	if run.Status != machine.Failed {
		return nil, problem.New(problem.ValidationError, "run %q has not failed: it is %s", req.ExecutionID, run.Status).
			WithPlace(problem.Place{ExecutionID: req.ExecutionID}).WithHint("A fork begins a new run at any place of another one: say after which record, or before which node.")
	}
	return &transfer.Retry{
		Node: run.ErrorNodeID, Code: run.ErrorCode, Message: run.Error, Compensated: run.Compensated, AtLimit: problem.Code(run.ErrorCode).IsLimit(),
		Anew: req.Anew, RepeatEffects: req.RepeatEffects, Current: req.CurrentAgentConfig,
	}, nil
}
