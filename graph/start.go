package graph

import (
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Start begins a run and drives it until it rests, ends or the wait limit passes.
//
// A run that fails is a result with status failed. An error means that no run was begun: VALIDATION_ERROR or
// INTERRUPT_IN_PARALLEL_BRANCH for the definition, VALIDATION_ERROR for the input, sizes and the id, WORKFLOW_NOT_FOUND
// for DefinitionRef, DUPLICATE_EXECUTION_ID. With AllowExisting the existing run answers, provided that the definition
// and the input, as far as they are given, are its own (else SUBMIT_VALIDATION_ERROR).
func (r *Runner) Start(ctx context.Context, req StartRequest) (*Run, error) {
	if err := r.enter(); err != nil {
		return nil, err
	}
	defer r.tasks.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkMode(req.Mode, problem.ValidationError), checkBranches(req.Branches, problem.ValidationError), checkExecutionID(req.ExecutionID)); err != nil {
		return nil, firstError(err)
	}
	fallback(&req.Mode, r.opts.DefaultMode)
	fallback(&req.Branches, r.opts.Branches)
	if strings.TrimSpace(req.ExecutionID) == "" {
		req.ExecutionID = r.opts.NewID()
	}
	x := r.runs.hold(req.ExecutionID)
	defer r.runs.drop(x)
	if req.AllowExisting {
		switch _, err := r.store.Execution(ctx, x.id); {
		case err == nil:
			return r.startExisting(ctx, x, req)
		case !errors.Is(err, problem.ExecutionNotFound), history.IsBeingDeleted(err):
			return nil, err
		}
	}
	prog, input, err := r.checkStart(ctx, req)
	if err != nil {
		return nil, err
	}
	var y yield
	x.mu.Lock()
	err = x.begin(ctx, prog, machine.Config{
		ExecutionID: x.id, Mode: req.Mode, Branches: req.Branches, MaxVisits: r.opts.MaxVisits, Limits: r.limits(),
	}, input, true, &y)
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	switch {
	case errors.Is(err, errAgain) && req.AllowExisting:
		return r.startExisting(ctx, x, req)
	case errors.Is(err, errAgain):
		return nil, r.used(ctx, x.id, "Choose another id, ask workflow_status where that run stands, or let the existing run answer (allow_existing_execution_id).")
	case err != nil:
		return nil, err
	}
	return r.answer(ctx, x, req.Wait)
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
	return prog, input, checkInput(prog, input)
}

func (r *Runner) findDefinition(ctx context.Context, req StartRequest) (*definition.Program, error) {
	if req.Definition != nil || req.DefinitionRef == "" {
		return r.library.admit(req.Definition)
	}
	return r.library.find(ctx, req.DefinitionRef)
}

// begin writes the first records of a new run. errAgain means that a run with this id exists.
func (x *run) begin(ctx context.Context, prog *definition.Program, config machine.Config, input map[string]any, started bool, y *yield) error {
	if x.exec.Seq > 0 {
		// Known here already; should it be gone from the store by now, it is known no more.
		switch _, err := x.behind(ctx); {
		case err == nil:
			return errAgain
		case !errors.Is(err, problem.ExecutionNotFound):
			return err
		}
		x.forget()
	}
	x.exec, x.prior = history.Execution{ID: x.id}, history.Prior{}
	x.prog, x.unstored = prog, storedForm(prog)
	x.m = machine.Start(prog, config, input, x.r.now())
	x.lastStatus, x.sincePosition, x.started = "", 0, started
	b := x.m.Ready()
	err := x.refuseLarge(input, b)
	if err == nil {
		err = x.commit(ctx, b, true, y)
	} else {
		x.forget()
	}
	if err != nil {
		x.exec, x.unstored, x.started = history.Execution{}, nil, false
	}
	return err
}

// startExisting answers a start for a run that exists: a run that has ended gives its recorded outcome, and nothing is
// appended; any other goes on where it stands, here if its driver is gone.
func (r *Runner) startExisting(ctx context.Context, x *run, req StartRequest) (*Run, error) {
	call := Caller{Definition: req.Definition, Input: req.Input, InputSet: req.Input != nil, Mode: req.Mode}
	if call.Definition == nil && req.DefinitionRef != "" {
		prog, err := r.library.find(ctx, req.DefinitionRef)
		if err != nil {
			return nil, err
		}
		call.Definition = prog.Document
	}
	var y yield
	x.mu.Lock()
	err := x.admit(ctx, call, problem.SubmitValidationError, true)
	switch {
	case err == nil && !x.ended():
		x.insistent = true
		err = x.takeOver(ctx, &y)
		x.insistent = false
	case errors.Is(err, problem.DefinitionNotFound):
		err = nil // it can at least say where it stands
	}
	x.mu.Unlock()
	r.carry(ctx, x, &y)
	if err != nil {
		return nil, err
	}
	r.takeOverBelow(ctx, x)
	return r.answer(ctx, x, req.Wait)
}

// firstError unpacks joined errors: callers get one problem at a time.
func firstError(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		return j.Unwrap()[0]
	}
	return err
}
