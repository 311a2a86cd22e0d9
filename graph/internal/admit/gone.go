package admit

import (
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// hintStatus is the hint for a run that has ended.
const hintStatus = "Ask Runner.Status for its outcome."

// Ended returns the rejection of an input to a run that has ended, by the kind of the input.
func Ended(e *history.Execution, in machine.Input) error {
	code, what := problem.HistoryConflict, "does not accept input"
	switch in.(type) {
	case machine.Outcome:
		code, what = problem.SubmitNotAwaiting, "does not await an activity"
	case machine.Resume:
		return problem.New(problem.InvalidResumePayload, "cannot resume: the run is %s", e.Phase).WithReason(problem.ExecutionEnded).
			WithPlace(problem.Place{ExecutionID: e.ID}).WithHint(hintStatus)
	case machine.Signal:
		code, what = problem.SignalNotAwaiting, "does not await a signal"
	case machine.Cancel:
		code, what = problem.CancelNotAllowed, "cannot be cancelled"
	}
	return problem.New(code, "the run is %s and %s", e.Phase, what).WithReason(problem.ExecutionEnded).
		WithPlace(problem.Place{ExecutionID: e.ID}).WithHint(hintStatus)
}

// NotFoundAs gives the error for an unknown run the code of a call, and the reason EXECUTION_NOT_FOUND; it returns other errors
// unchanged.
func NotFoundAs(err error, code problem.Code, executionID string) error {
	if !errors.Is(err, problem.ExecutionNotFound) || history.IsBeingDeleted(err) {
		return err
	}
	text := "no run has the id %q"
	if code == problem.InvalidResumePayload {
		text = "cannot resume: no run has the id %q"
	}
	return problem.New(code, text, executionID).WithReason(problem.ExecutionNotFound).
		WithPlace(problem.Place{ExecutionID: executionID}).
		WithHint("Check the id; Runner.List shows the runs.")
}

// UnreadableAs gives the error for a run with unreadable records the code of a call (spec: execution, 10.7); it returns other errors
// unchanged.
func UnreadableAs(err error, code problem.Code) error {
	if !errors.Is(err, problem.HistoryNewer) {
		return err
	}
	p, _ := problem.As(err)
	e := problem.New(code, "the run cannot be read").WithCause(err)
	e.At, e.Hint = p.At, p.Hint
	return e
}

// IsRefusal reports whether an error is a rejection, based on the history, and not a failure of the store.
func IsRefusal(err error) bool {
	p, ok := problem.As(err)
	if !ok {
		return false
	}
	switch p.Code {
	case problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.StoreReplaced,
		problem.Internal, problem.HistoryCorrupt, problem.HistoryNewer, problem.DefinitionNotFound, problem.ExecutionNotFound,
		problem.DeletionUnfinished:
		return false
	}
	return true
}

// IgnoreRefusal drops the errors for a run that is gone or has ended in another way.
func IgnoreRefusal(err error) error {
	if errors.Is(err, problem.ExecutionNotFound) || err != nil && IsRefusal(err) {
		return nil
	}
	return err
}
