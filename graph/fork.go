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

// ForkRequest forks or retries a run.
type ForkRequest struct {
	// ExecutionID is the run to fork. Seq is the last record that the new run copies.
	ExecutionID string
	Seq         int64
	// BeforeNode, instead of Seq, starts the new run before the newest visit of a node; after a rollback, before the first visit that was
	// undone. Before the node that failed the run, the fork is a retry, as with Anew and Again.
	BeforeNode string
	// Correction, with BeforeNode, is a JSON merge patch (RFC 7396) of the state at the start of the new run. It is not possible for nodes in
	// a parallel branch or before the first node.
	Correction map[string]any
	// NewExecutionID is the id of the new run; blank means a new UUID.
	NewExecutionID string
	// Anew and RepeatEffects configure a retry: a request without Seq and BeforeNode. A retry starts where the run failed. If agents have
	// recorded a journal there, they continue it: completed calls are not repeated, and a call with an unknown outcome is repeated, if at
	// all, with its first key. Otherwise, and with Anew, a Correction or a Definition, the failed node starts again. If that repeats calls of
	// agents with effects, RepeatEffects must be set.
	Anew, RepeatEffects bool
	// CurrentAgentConfig makes the failed agent continue with its current models, prices, budgets, retries and fallback; the rest stays as
	// recorded. A retry after a used-up budget needs it.
	CurrentAgentConfig bool
	// Again allows a second retry while another one is open or has completed.
	Again bool
	// Definition is that of the new run; nil means the same one. It must lead to the copied records.
	Definition *definition.Document
	// RequireCapable rejects an in-process run that this Runner cannot perform to its end; see StartRequest.RequireCapable.
	RequireCapable bool
	// Wait limits the time that the call waits; see Wait.
	Wait Wait
}

// Fork starts a run with a copy of the records of another run, and continues it; executors that this process lacks are left to other
// processes (Run.Lacks). The other run is not changed.
//
// The new run keeps all outcomes up to Seq: activities, answers, signals, fired timers and ended subworkflows, also in parallel branches.
// Pending work starts again with the id and keys of the new run: attempts, timers, and active subworkflows from their start. In a retry,
// subworkflows with journals of agents continue, also those that failed or were cancelled by the failure. Times move with the run: a timer
// with one hour left has one hour left. The end of the other run is not copied; completion and failure follow again if nothing else does.
//
// Errors, after which nothing is written: NONDETERMINISM_DETECTED with the first difference if the records do not follow from the definition;
// VALIDATION_ERROR for an unknown Seq, a retry of a run that has not failed, a run of another engine, or an impossible Correction;
// EXECUTION_NOT_FOUND; DEFINITION_REQUIRED; DUPLICATE_EXECUTION_ID; RETRY_REPEATS_EFFECTS; AGENT_BUDGET_SPENT; ALREADY_RETRIED;
// COMPOSITE_EXECUTOR_NOT_CONFIGURED with RequireCapable.
func (r *Runner) Fork(ctx context.Context, req ForkRequest) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
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
		return nil, problem.New(problem.ValidationError, "Again, Anew, RepeatEffects and CurrentAgentConfig can only be used in a retry").
			WithHint("Omit them, or omit the record or node to start from.")
	}
	b, err := (&transfer.Fork{
		From: req.ExecutionID, To: req.NewExecutionID, Seq: req.Seq, BeforeNode: req.BeforeNode, Correction: req.Correction, Definition: req.Definition, Retry: retry, Again: req.Again,
		RequireCapable: req.RequireCapable, Library: r.p.Library, Capabilities: r.p.Performer, Limits: r.p.Limits(), MaxVisits: r.opts.MaxVisits,
		MaxBytes: r.opts.MaxDocumentBytes, Now: r.p.Now().Truncate(time.Millisecond),
	}).Batch(ctx, r.p.Store)
	if err != nil {
		return nil, err
	}
	x := r.p.Runs.Hold(req.NewExecutionID)
	defer r.p.Runs.Drop(x)
	if err := r.p.Store.Append(ctx, b); err != nil {
		if errors.Is(err, problem.HistoryConflict) {
			err = r.used(ctx, req.NewExecutionID, "Choose another id, or omit it.")
		}
		return nil, err
	}
	err = r.p.With(ctx, x, func(w *run.Work) error {
		if err := x.Open(ctx); err != nil || x.Ended() {
			return err
		}
		return x.TakeOver(ctx, false, w)
	})
	if err != nil && !errors.Is(err, run.ErrConflict) {
		return nil, err
	}
	return r.call(x, req.Wait).Answer(ctx)
}

// failedBefore turns a fork before the node that failed the run into a retry with Anew: it, too, must not repeat effects of agents without
// RepeatEffects. It returns nil for other forks.
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

// retryOf returns the failure that a retry continues from.
func (r *Runner) retryOf(ctx context.Context, req *ForkRequest) (*transfer.Retry, error) {
	run, err := r.Status(ctx, StatusRequest{ExecutionID: req.ExecutionID})
	if err != nil {
		return nil, err
	}
	if run.Status != machine.Failed {
		return nil, problem.New(problem.ValidationError, "run %q has not failed; its status is %s", req.ExecutionID, run.Status).
			WithPlace(problem.Place{ExecutionID: req.ExecutionID}).WithHint("To fork a run that has not failed, give the record or the node to start from.")
	}
	return &transfer.Retry{
		Node: run.ErrorNodeID, Code: run.ErrorCode, Message: run.Error, Compensated: run.Compensated, AtLimit: problem.Code(run.ErrorCode).IsLimit(),
		Anew: req.Anew, RepeatEffects: req.RepeatEffects, Current: req.CurrentAgentConfig,
	}, nil
}
