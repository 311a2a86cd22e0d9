package graph

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Start begins a run and executes it until it rests, ends or the wait limit passes.
//
// A run that fails is a result with status failed. An error means that no run was begun: VALIDATION_ERROR or
// INTERRUPT_IN_PARALLEL_BRANCH for the definition, VALIDATION_ERROR for the input, sizes and the id, WORKFLOW_NOT_FOUND
// for DefinitionRef, WEBHOOK_TARGET_UNKNOWN, DUPLICATE_EXECUTION_ID, COMPOSITE_EXECUTOR_NOT_CONFIGURED with RequireCapable. With AllowExisting the existing run answers, provided that the
// input, if it is given, is its own, and so is the name of the workflow (else SUBMIT_VALIDATION_ERROR). It goes on with the definition
// that it began with; a warning (DEFINITION_NOT_CHANGED) says so where another version is given.
func (r *Runner) Start(ctx context.Context, req StartRequest) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := cmp.Or(admit.Mode(req.Mode, problem.ValidationError), admit.Branches(req.Branches, problem.ValidationError), admit.ExecutionID(req.ExecutionID), history.CheckCaption(req.Title, req.Labels)); err != nil {
		return nil, err
	}
	notify, err := r.outbox.Targets.Admit(req.Notify)
	if err != nil {
		return nil, err
	}
	asked := req.Mode
	req.Mode = cmp.Or(req.Mode, r.opts.DefaultMode)
	req.Branches = cmp.Or(req.Branches, r.opts.Branches)
	if strings.TrimSpace(req.ExecutionID) == "" {
		req.ExecutionID = r.opts.NewID()
	}
	x := r.runs.Hold(req.ExecutionID)
	defer r.runs.Drop(x)
	if req.AllowExisting {
		switch _, err := r.store.Execution(ctx, x.ID()); {
		case err == nil:
			return r.startExisting(ctx, x, req, asked)
		case !errors.Is(err, problem.ExecutionNotFound), history.IsBeingDeleted(err):
			return nil, err
		}
	}
	prog, input, err := r.checkStart(ctx, req)
	if err != nil {
		return nil, err
	}
	warning, err := r.library.Lacking(ctx, prog, r.performer, req.Mode, req.RequireCapable)
	if err != nil {
		return nil, err
	}
	config := machine.Config{
		ExecutionID: x.ID(), Mode: req.Mode, Branches: req.Branches, MaxVisits: r.opts.MaxVisits,
		TraceParent: work.TraceParent(ctx),
		Attempts:    r.opts.Attempts,
		Priority:    req.Priority, Title: req.Title, Labels: req.Labels, Notify: notify,
	}
	var children []history.StoredDefinition
	config.Subworkflows, children = r.library.Versions(ctx, prog, nil)
	err = r.with(ctx, x, func(w *run.Work) error { return x.Begin(ctx, prog, children, config, input, true, w) })
	switch {
	case errors.Is(err, run.ErrConflict) && req.AllowExisting:
		return r.startExisting(ctx, x, req, asked)
	case errors.Is(err, run.ErrConflict):
		return nil, r.used(ctx, x.ID(), "Choose another id, ask Runner.Status where that run stands, or let the existing run answer (StartRequest.AllowExisting).")
	case err != nil:
		return nil, err
	}
	run, err := r.answer(ctx, x, req.Wait)
	if run != nil && warning != nil {
		run.Warnings = append(run.Warnings, *warning)
	}
	return run, err
}

// used is the error of an id under which there is a run already, or what is left of one.
func (r *Runner) used(ctx context.Context, id, hint string) error {
	if _, err := r.store.Execution(ctx, id); history.IsBeingDeleted(err) {
		return err
	}
	return problem.New(problem.DuplicateExecutionID, "execution id %q has been used", id).
		WithPlace(problem.Place{ExecutionID: id}).WithHint("%s", hint)
}

// checkStart checks what a new run is made of.
func (r *Runner) checkStart(ctx context.Context, req StartRequest) (*definition.Program, map[string]any, error) {
	prog, err := r.findDefinition(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	input, err := r.object("input", req.Input, problem.ValidationError)
	if err != nil {
		return nil, nil, err
	}
	return prog, input, admit.Input(prog, input)
}

func (r *Runner) findDefinition(ctx context.Context, req StartRequest) (*definition.Program, error) {
	if req.Definition != nil || req.DefinitionRef == "" {
		return r.library.Admit(req.Definition)
	}
	return r.library.Find(ctx, req.DefinitionRef)
}

// startExisting answers a start for a run that exists: a run that has ended answers with its recorded outcome, and nothing is
// appended; any other goes on where it stands, here if its driver is gone. asked is the mode that the caller named.
func (r *Runner) startExisting(ctx context.Context, x *run.Run, req StartRequest, asked machine.Mode) (*view.Run, error) {
	call := Caller{Definition: req.Definition, Input: req.Input, InputSet: req.Input != nil, Mode: req.Mode}
	if call.Definition == nil && req.DefinitionRef != "" {
		prog, err := r.library.Find(ctx, req.DefinitionRef)
		if err != nil {
			return nil, err
		}
		call.Definition = prog.Document
	}
	began, err := r.store.Execution(ctx, x.ID())
	if err != nil {
		return nil, err
	}
	given := call.Definition
	if view.OtherVersion(&began, given) {
		call.Definition = nil // the same start, repeated after a deployment
	}
	err = r.with(ctx, x, func(w *run.Work) error {
		err := x.Admit(ctx, call.verified(), problem.SubmitValidationError, true)
		switch {
		case err == nil && !x.Ended():
			return x.TakeOver(ctx, true, w)
		case errors.Is(err, problem.DefinitionNotFound):
			return nil // it can at least say where it stands
		}
		if p, ok := problem.As(err); ok && p.Code == problem.SubmitValidationError {
			return p.WithReason(problem.DuplicateExecutionID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.takeOverChildren(ctx, x, true)
	run, err := r.answer(ctx, x, req.Wait)
	view.ModeKept(run, asked)
	view.DefinitionKept(run, &began, given)
	return run, err
}

// WithTraceParent returns a context that says, as the HTTP header traceparent does (W3C Trace Context), which span a call belongs to.
// A run that is started with it keeps it: executors' contexts have it, in subworkflows and after a takeover too (TraceParent).
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return work.WithTraceParent(ctx, parent)
}

// TraceParent returns the trace parent of an executor's context: that of the call which has led to the attempt, else that of the call
// which started the run; "" without one.
func TraceParent(ctx context.Context) string { return work.TraceParent(ctx) }

// MaxExecutionID is the length in bytes up to which callers may choose the id of a run. Those of subworkflows are longer.
const MaxExecutionID = admit.MaxExecutionID
