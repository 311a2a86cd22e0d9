package temporal

import (
	"context"
	"errors"
	"strings"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// wireProblem is a *problem.Error as Temporal carries it: the details of an application error whose type is the code.
type wireProblem struct {
	Code     problem.Code     `json:"code"`
	Reason   problem.Code     `json:"reason,omitempty"`
	Message  string           `json:"message"`
	At       problem.Place    `json:"at,omitzero"`
	Hint     string           `json:"hint,omitempty"`
	Details  map[string]any   `json:"details,omitempty"`
	Data     map[string]any   `json:"data,omitempty"`
	Findings problem.Findings `json:"findings,omitempty"`
	Cause    string           `json:"cause,omitempty"`
}

// wireOf returns the form of an error to carry. Any other error than a *problem.Error is an INTERNAL_ERROR.
func wireOf(err error) *wireProblem {
	p, ok := problem.As(err)
	if !ok {
		return &wireProblem{Code: problem.Internal, Message: err.Error()}
	}
	w := &wireProblem{
		Code: p.Code, Reason: p.Reason, Message: p.Message, At: p.At, Hint: p.Hint, Details: p.Details, Data: p.Data, Findings: p.Findings,
	}
	if p.Err != nil {
		w.Cause = p.Err.Error()
	}
	return w
}

// problem returns the carried error.
func (w *wireProblem) problem() *problem.Error {
	p := &problem.Error{
		Code: w.Code, Reason: w.Reason, Message: w.Message, At: w.At, Hint: w.Hint, Details: w.Details, Data: w.Data, Findings: w.Findings,
	}
	if w.Cause != "" {
		p.Err = errors.New(w.Cause)
	}
	return p
}

// rejection returns an error as an application error that carries it. Temporal does not repeat it.
func rejection(err error) error {
	w := wireOf(err)
	return sdk.NewApplicationErrorWithOptions(w.Message, string(w.Code), sdk.ApplicationErrorOptions{NonRetryable: true, Details: []any{*w}})
}

// carried returns the error that rejection has carried, nil for another error.
func carried(err error) *problem.Error {
	app, ok := errors.AsType[*sdk.ApplicationError](err)
	if !ok || !app.HasDetails() {
		return nil
	}
	var w wireProblem
	if app.Details(&w) != nil || string(w.Code) != app.Type() {
		return nil
	}
	return w.problem()
}

// notFound reports whether an error of the service means that no run has the id, or that the run has ended.
func notFound(err error) bool {
	_, ok := errors.AsType[*serviceerror.NotFound](err)
	return ok
}

// unknownRun is the error of an id that no run has.
func unknownRun(executionID string) error {
	return problem.New(problem.ExecutionNotFound, "no run has the id %q", executionID).WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Check the id; Runner.List shows the runs.")
}

// failureOf returns the error of a call to the service at an address. Temporal's errors name no secrets, but may name other addresses.
func failureOf(ctx context.Context, err error, address, executionID string) error {
	at := problem.Place{ExecutionID: executionID}
	if p := carried(err); p != nil {
		return p
	}
	if p, ok := problem.As(err); ok {
		return p
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if notFound(err) && executionID != "" {
		return unknownRun(executionID)
	}
	late := isType[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded)
	switch {
	case executionID != "" && (late || strings.Contains(err.Error(), "RST_STREAM")): // a worker answers for an open run
		return problem.New(problem.StoreUnavailable, "no worker answers for the run in time, or the Temporal service at %s does not", address).WithPlace(at).WithCause(err).
			WithHint("Check that a worker serves the task queue of the run, and that the service runs. Repeat the call then.")
	case isType[*serviceerror.Unavailable](err), late:
		if strings.Contains(err.Error(), "poller") {
			break
		}
		return problem.New(problem.StoreUnavailable, "the Temporal service at %s does not answer", address).WithPlace(at).WithCause(err).
			WithHint("Check that the service runs and that the address is right. Repeat the call then.")
	case isType[*serviceerror.NamespaceNotFound](err):
		return problem.New(problem.StoreUnavailable, "the Temporal service at %s lacks the namespace", address).WithCause(err).
			WithHint("Create the namespace, or name another one.")
	case isType[*serviceerror.ResourceExhausted](err):
		return problem.New(problem.StoreUnavailable, "the Temporal service at %s accepts no more calls at the moment", address).WithPlace(at).WithCause(err).
			WithHint("Nothing was changed. Repeat the call later.")
	}
	if isType[*serviceerror.QueryFailed](err) || isType[*serviceerror.WorkflowNotReady](err) || strings.Contains(err.Error(), "poller") {
		return problem.New(problem.StoreUnavailable, "no worker answers for the run").WithPlace(at).WithCause(err).
			WithHint("Start a worker for the task queue of the run, and repeat the call.")
	}
	return problem.New(problem.StoreUnavailable, "the Temporal service at %s has rejected the call", address).WithPlace(at).WithCause(err)
}

func isType[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// unsupported is the error for something that runs on Temporal lack.
func unsupported(format string, args ...any) *problem.Error {
	return problem.New(problem.Unsupported, format, args...).WithHint("Nothing was changed. Use an engine with its own database.")
}
