package graph

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Signal delivers a signal to the first wait for its name, in branch order, also in subworkflows. Without such a wait it returns
// SIGNAL_NOT_AWAITING or SIGNAL_NAME_MISMATCH, unless the run has a wait that keeps early signals (Run.KeptSignals). A signal with a key is
// delivered once: a repeated call returns the status (Run.Repeated). If this process cannot continue the run, another one does, as after
// Resume.
func (r *Runner) Signal(ctx context.Context, req SignalRequest) (*view.Run, error) {
	const code = problem.SignalValidationError
	if strings.TrimSpace(req.Name) == "" {
		return nil, problem.New(code, "signal name is missing").WithHint("Set the name that the run waits for.")
	}
	payload, err := r.object("payload", req.Payload, code)
	if err != nil {
		return nil, err
	}
	if req.Start != nil && strings.TrimSpace(req.ExecutionID) != "" {
		run, err := r.startSignalled(ctx, req, payload)
		if run != nil || err != nil {
			return run, err
		}
	}
	verdict := func(found admit.Found, refusal error) error {
		return found.Verdict(refusal, code, problem.Place{ExecutionID: req.ExecutionID}, problem.Format("idempotency key %q", req.IdempotencyKey))
	}
	search := func() *admit.RepeatedSignal {
		return &admit.RepeatedSignal{Name: req.Name, IdempotencyKey: req.IdempotencyKey, Payload: payload}
	}
	return r.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, signal: req.Name, invalid: code, unknown: problem.ExecutionNotFound,
		input: func(string) machine.Input {
			return machine.Signal{Name: req.Name, Payload: payload, IdempotencyKey: req.IdempotencyKey}
		},
		fit: func(_ string, w machine.Wait) admit.Fit { return admit.SignalFit(req.Name, w) },
		before: func(ctx context.Context, _ *run.Run) (bool, error) {
			found, err := search().SearchBelow(ctx, r.p.Store, req.ExecutionID)
			if err != nil || found.Repeat == admit.NotRepeated {
				return false, err
			}
			err = verdict(found, nil)
			return err == nil, err
		},
		repeated: func(ctx context.Context, refusal error) error {
			found, err := search().Search(ctx, r.p.Store, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return verdict(found, refusal)
		},
	})
}

// startSignalled starts a run with a signal. Without a run or an error, the run exists.
func (r *Runner) startSignalled(ctx context.Context, req SignalRequest, payload map[string]any) (*view.Run, error) {
	switch _, err := r.p.Store.Execution(ctx, req.ExecutionID); {
	case err == nil:
		return nil, nil
	case !errors.Is(err, problem.ExecutionNotFound), history.IsBeingDeleted(err):
		return nil, err
	}
	start := *req.Start
	start.ExecutionID, start.AllowExisting, start.Wait = req.ExecutionID, false, req.Wait
	start.Mode = cmp.Or(start.Mode, req.Mode)
	run, err := r.start(ctx, start, &machine.Signal{Name: req.Name, Payload: payload, IdempotencyKey: req.IdempotencyKey})
	if errors.Is(err, problem.DuplicateExecutionID) && !history.IsBeingDeleted(err) {
		return nil, nil // another process has started it meanwhile
	}
	return run, err
}
