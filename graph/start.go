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

// Start starts a run and executes it until it needs input, ends or the wait limit passes.
//
// A run that fails is a result with status failed. After an error no run was started: VALIDATION_ERROR or INTERRUPT_IN_PARALLEL_BRANCH for
// the definition; VALIDATION_ERROR for the input, sizes and the id; WORKFLOW_NOT_FOUND for DefinitionRef; WEBHOOK_TARGET_UNKNOWN;
// DUPLICATE_EXECUTION_ID; COMPOSITE_EXECUTOR_NOT_CONFIGURED with RequireCapable.
//
// With AllowExisting, an existing run is the result if it has the same input, if given, and the same workflow name; else the error is
// SUBMIT_VALIDATION_ERROR. The run keeps its definition; the warning DEFINITION_NOT_CHANGED reports that another version was given.
func (r *Runner) Start(ctx context.Context, req StartRequest) (*view.Run, error) {
	return r.start(ctx, req, nil)
}

// start is Start with a signal that the run must accept, unless that is nil.
func (r *Runner) start(ctx context.Context, req StartRequest, signal *machine.Signal) (*view.Run, error) {
	if err := r.enterToWrite(ctx); err != nil {
		return nil, err
	}
	defer r.p.Leave()
	if err := cmp.Or(admit.Mode(req.Mode, problem.ValidationError), admit.Branches(req.Branches, problem.ValidationError), admit.ExecutionID(req.ExecutionID), history.CheckCaption(req.Title, req.Labels), admit.Queue(req.Queue, problem.ValidationError), admit.Deadline(req.Deadline, problem.ValidationError)); err != nil {
		return nil, err
	}
	notify, err := r.p.Outbox.Targets.Admit(req.Notify)
	if err != nil {
		return nil, err
	}
	asked := req.Mode
	req.Mode = cmp.Or(req.Mode, r.opts.DefaultMode)
	req.Branches = cmp.Or(req.Branches, r.opts.Branches)
	if strings.TrimSpace(req.ExecutionID) == "" {
		req.ExecutionID = r.opts.NewID()
	}
	x := r.p.Runs.Hold(req.ExecutionID)
	defer r.p.Runs.Drop(x)
	if req.AllowExisting {
		switch _, err := r.p.Store.Execution(ctx, x.ID()); {
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
	req.Queue = cmp.Or(req.Queue, prog.Queue)
	can, err := r.p.Capabilities(ctx, req.Queue)
	if err != nil {
		return nil, err
	}
	warning, err := r.p.Library.Lacking(ctx, prog, can, req.Mode, req.RequireCapable)
	if err != nil {
		return nil, err
	}
	if warning != nil && r.opts.Work == WorkNone {
		warning.Hint = "The run waits until a worker performs such a node."
	}
	config := machine.Config{
		ExecutionID: x.ID(), Mode: req.Mode, Branches: req.Branches, MaxVisits: r.opts.MaxVisits,
		TraceParent: work.TraceParent(ctx),
		Attempts:    r.opts.Attempts,
		Priority:    req.Priority, Title: req.Title, Labels: req.Labels, Notify: notify, Queue: req.Queue, Deadline: req.Deadline,
	}
	var children []history.StoredDefinition
	config.Subworkflows, children = r.p.Library.Versions(ctx, prog, nil)
	c := r.call(x, req.Wait)
	err = c.Apply(ctx, func(w *run.Work) (bool, error) {
		return true, x.Begin(ctx, run.Beginning{Program: prog, Children: children, Config: config, Input: input, StartedHere: r.opts.Work != WorkNone, Signal: signal}, w)
	})
	switch {
	case errors.Is(err, run.ErrConflict) && req.AllowExisting:
		return r.startExisting(ctx, x, req, asked)
	case errors.Is(err, run.ErrConflict):
		return nil, r.used(ctx, x.ID(), "Choose another id, ask Runner.Status for that run, or let the existing run answer (StartRequest.AllowExisting).")
	case err != nil:
		return nil, err
	}
	run, err := c.Answer(ctx)
	if run != nil && warning != nil {
		run.Warnings = append(run.Warnings, *warning)
	}
	return run, err
}

// used returns the error of an id that a run has, or had before it was deleted.
func (r *Runner) used(ctx context.Context, id, hint string) error {
	if _, err := r.p.Store.Execution(ctx, id); history.IsBeingDeleted(err) {
		return err
	}
	return problem.New(problem.DuplicateExecutionID, "execution id %q is already in use", id).
		WithPlace(problem.Place{ExecutionID: id}).WithHint("%s", hint)
}

// checkStart returns the definition and the checked input of a new run.
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
		return r.p.Library.Admit(req.Definition)
	}
	return r.p.Library.Find(ctx, req.DefinitionRef)
}

// startExisting returns the status of an existing run, and claims it if it is active and has no owner. asked is the mode of the request.
func (r *Runner) startExisting(ctx context.Context, x *run.Run, req StartRequest, asked machine.Mode) (*view.Run, error) {
	call := Caller{Definition: req.Definition, Input: req.Input, InputSet: req.Input != nil, Mode: req.Mode}
	if call.Definition == nil && req.DefinitionRef != "" {
		prog, err := r.p.Library.Find(ctx, req.DefinitionRef)
		if err != nil {
			return nil, err
		}
		call.Definition = prog.Document
	}
	began, err := r.p.Store.Execution(ctx, x.ID())
	if err != nil {
		return nil, err
	}
	given := call.Definition
	if view.OtherVersion(&began, given) {
		call.Definition = nil // a repeated start, after a deployment of a new version
	}
	err = r.p.With(ctx, x, func(w *run.Work) error {
		err := x.Admit(ctx, call.verified(), problem.SubmitValidationError)
		switch {
		case err == nil && !x.Ended():
			return x.TakeOver(ctx, true, w)
		case errors.Is(err, problem.DefinitionNotFound):
			return nil // the status needs no definition
		}
		if p, ok := problem.As(err); ok && p.Code == problem.SubmitValidationError {
			return p.WithReason(problem.DuplicateExecutionID)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.p.TakeOverChildren(ctx, x, true)
	run, err := r.call(x, req.Wait).Answer(ctx)
	view.ModeKept(run, asked)
	view.DefinitionKept(run, &began, given)
	return run, err
}

// WithTraceParent returns a context with the parent span of a call, in the form of the HTTP header traceparent (W3C Trace Context). A run
// started with it keeps it: the contexts of its executors have it (TraceParent), in subworkflows and in other processes, too.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return work.WithTraceParent(ctx, parent)
}

// TraceParent returns the trace parent of an executor's context: that of the call that led to the attempt, else that of the start; "" without
// one.
func TraceParent(ctx context.Context) string { return work.TraceParent(ctx) }

// MaxExecutionID is the largest id of a run that callers can choose, in bytes. Ids of subworkflows are longer.
const MaxExecutionID = admit.MaxExecutionID
