package temporal

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
)

// delivery is the common part of submit, resume and signal: an input for a run that waits for it, or for its subworkflow. The rules and their
// order are those of graph.Runner.
type delivery struct {
	id     string
	caller graph.Caller
	// signal is the name of a signal, which a run can keep for a later wait.
	signal string
	// call returns the call for the run that accepts the input: the run with the id above, or a subworkflow.
	call func(target string) call
	// applied, if not nil, is called with the run that has accepted the input.
	applied func(executionID string)
	// fit rates how well a wait matches the input.
	fit func(id string, w machine.Wait) admit.Fit
	// invalid is the code for arguments that do not match the run, unknown the code for an unknown run.
	invalid, unknown problem.Code
	// repeated returns nil for an error of a call that repeats an accepted one, else the error to return.
	repeated func(context.Context, error) error
	// before, if not nil, reports whether the call repeats an accepted one.
	before func(context.Context, *node) (taken bool, err error)
}

// deliver applies an input to a run, or to its subworkflow that waits for it, and returns the status.
func (e *Engine) deliver(ctx context.Context, d delivery) (*view.Run, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	if strings.TrimSpace(d.id) == "" {
		return nil, problem.New(d.invalid, "execution id is missing")
	}
	if err := admit.Mode(d.caller.Mode, d.invalid); err != nil {
		return nil, err
	}
	w, stop := e.waiting(ctx, d.caller.Wait)
	defer stop()
	again, err := e.deliverOnce(ctx, d, w)
	if err != nil {
		return nil, admit.UnreadableAs(admit.NotFoundAs(err, d.unknown, d.id), d.invalid)
	}
	v, err := e.answer(ctx, d.id, w)
	if v != nil {
		v.Repeated = again
		view.ModeKept(v, d.caller.Mode)
	}
	return v, err
}

// settleTime is how long an input waits for active work to reach its next wait.
const settleTime = 5 * time.Second

// settledTree reads a run and its subworkflows once active work has reached its next wait. Otherwise the result of a call would depend on how
// fast the call before it was processed. It also waits for a worker, which may be about to start.
func (e *Engine) settledTree(ctx context.Context, id string) (*node, error) {
	began, pause := e.b.now(), firstLook
	for {
		n, err := e.tree(ctx, id)
		if err != nil || n.lack == nil && n.settled() || e.b.now().Sub(began) > settleTime {
			return n, err
		}
		if err := e.b.sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, lastLook)
	}
}

// deliverOnce applies the input to the run or a subworkflow. again reports that the call repeats an accepted one.
func (e *Engine) deliverOnce(ctx context.Context, d delivery, w *waiting) (again bool, err error) {
	n, err := e.settledTree(ctx, d.id)
	if err == nil && n.lack != nil {
		err = problem.New(problem.StoreUnavailable, "the run lacks %s", n.lack.Missing).WithPlace(problem.Place{ExecutionID: d.id}).
			WithHint("Nothing was changed. Start a worker, and repeat the call.")
	}
	if err != nil {
		return false, err
	}
	if d.before != nil {
		if again, err = d.before(ctx, n); again || err != nil {
			return again, err
		}
	}
	caller := admit.Caller{Definition: d.caller.Definition, Input: d.caller.Input, InputSet: d.caller.InputSet, Mode: d.caller.Mode}
	if err = e.admit(&n.exec, caller, d.invalid); err == nil {
		err = e.deliverBest(ctx, d, n, w)
	}
	if err == nil || !admit.MayRepeat(err) {
		return false, err
	}
	err = d.repeated(ctx, err)
	return err == nil, err
}

// maxRounds bounds how often an input whose wait has just ended is given to another run.
const maxRounds = 10

// deliverBest applies the input to the run itself, if that waits for it, else to the subworkflow with the best matching wait, the first of
// equals. Without a full match, that run's error explains the mismatch.
func (e *Engine) deliverBest(ctx context.Context, d delivery, n *node, w *waiting) error {
	for round := 0; ; round++ {
		best, target := d.target(n)
		c := d.call(target)
		c.Mode, c.Actor, c.Wait = d.caller.Mode, run.ActorOf(ctx), w.inUpdate()
		if n.exec.Phase.Terminal() && target == d.id {
			return admit.Ended(&n.exec, c.input())
		}
		err := e.checkAnswer(ctx, n, target, &c)
		if err == nil {
			err = e.apply(w.ctx, target, c, w.apply)
		}
		if err == nil {
			if d.applied != nil {
				d.applied(target)
			}
			return nil
		}
		if best != admit.FitWhole || !admit.IsRefusal(err) || round == maxRounds {
			return err
		}
		again, failed := e.settledTree(ctx, d.id)
		if failed != nil {
			return failed
		}
		if b, t := d.target(again); b != admit.FitWhole || t == target {
			return err
		}
		n = again
	}
}

// checkAnswer checks an answer to the question of an executor; see graph.Options.CheckAnswer.
func (e *Engine) checkAnswer(ctx context.Context, n *node, target string, c *call) error {
	if c.Resume == nil || e.o.CheckAnswer == nil {
		return nil
	}
	var waits []machine.Wait
	n.waits(func(id string, w machine.Wait) {
		if id == target {
			waits = append(waits, w)
		}
	})
	return run.CheckAnswer(e.o.CheckAnswer).Of(ctx, past{Engine: e}, target, waits, *c.Resume)
}

// target returns the run that gets the input, and how well it fits.
func (d *delivery) target(n *node) (admit.Fit, string) {
	best, target := admit.FitNone, d.id
	if len(n.children) == 0 {
		for _, w := range n.pending() {
			best = max(best, d.fit(d.id, w))
		}
		return best, target
	}
	for _, w := range n.pending() {
		if d.fit(d.id, w) == admit.FitWhole {
			return admit.FitWhole, d.id
		}
	}
	if d.signal != "" && n.m != nil {
		best = admit.KeptFit(d.signal, n.m)
	}
	n.waits(func(id string, w machine.Wait) {
		if f := d.fit(id, w); f > best {
			best, target = f, id
		}
	})
	return best, target
}

// Resume answers an interrupt of a run or its subworkflow; see graph.Runner.Resume.
func (e *Engine) Resume(ctx context.Context, req graph.ResumeRequest) (*view.Run, error) {
	const code = problem.InvalidResumePayload
	payload, err := admit.Object("resume_payload", req.Payload, e.o.MaxDocumentBytes, problem.ValidationError)
	if err != nil {
		return nil, err
	}
	came, arrived := arrival.Of(ctx), e.b.now()
	interruptID, recorded, last := req.InterruptID, false, admit.Found{}
	return e.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: code, unknown: code,
		before: func(ctx context.Context, n *node) (taken bool, err error) {
			if interruptID != "" {
				return false, nil
			}
			caller := admit.Caller{Definition: req.Definition, Input: req.Input, InputSet: req.InputSet}
			if err := e.admit(&n.exec, caller, code); err != nil {
				return false, err
			}
			answer := &admit.Unnamed{Payload: payload, Actor: run.ActorOf(ctx), Overtaken: e.answers.Since(req.ExecutionID, came), Now: e.b.now(), Came: arrived}
			n.waits(answer.Waits)
			var found admit.Repeat
			interruptID, found, err = answer.Search(ctx, past{Engine: e}, req.ExecutionID)
			if !answer.Asked() {
				interruptID, last = noInterrupt, answer.Last(ctx, past{Engine: e})
			}
			recorded = found == admit.Repeated
			return recorded && interruptID != noInterrupt, err
		},
		call: func(target string) call {
			return call{Resume: &machine.Resume{Key: strings.TrimPrefix(interruptID, target+":"), Payload: payload}}
		},
		applied: e.answers.Recorded,
		fit:     func(id string, w machine.Wait) admit.Fit { return admit.ResumeFit(interruptID, id, w) },
		repeated: func(ctx context.Context, refusal error) error {
			if p, ok := problem.As(refusal); ok && recorded { // without an open question the protocol requires an error
				return last.Again(p)
			}
			if interruptID == noInterrupt {
				return last.Verdict(refusal, code, problem.Place{}, "")
			}
			found, err := (&admit.RepeatedResume{InterruptID: interruptID, Payload: payload}).Search(ctx, past{Engine: e}, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, code, problem.Place{ExecutionID: req.ExecutionID}, problem.Format("interrupt id %q", interruptID))
		},
	})
}

// noInterrupt is not the id of any interrupt: an answer made while no question was open must not answer a later question.
const noInterrupt = "none"

// SubmitActivity submits the outcome of a pending activity or delegation of a host-mediated run; see graph.Runner.SubmitActivity.
func (e *Engine) SubmitActivity(ctx context.Context, req graph.SubmitRequest) (*view.Run, error) {
	outcome, submitted, err := admit.Outcome(machine.Outcome{
		NodeID: req.NodeID, Span: req.Span, OK: req.OK, Error: req.Error, Code: req.Code,
		CorrelationID: req.CorrelationID, ExternalTaskID: req.ExternalTaskID, IdempotencyKey: req.IdempotencyKey,
	}, req.Result, e.o.MaxDocumentBytes)
	if err != nil {
		return nil, err
	}
	return e.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: problem.SubmitValidationError, unknown: problem.SubmitNotAwaiting,
		call: func(string) call { return call{Outcome: &outcome} },
		fit:  submitted.Fit,
		repeated: func(ctx context.Context, refusal error) error {
			search := admit.RepeatedSubmit{Submitted: submitted, Outcome: outcome}
			found, err := search.Search(ctx, past{Engine: e}, req.ExecutionID, e.o.MaxDepth)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, problem.SubmitNotAwaiting, problem.Place{ExecutionID: req.ExecutionID, NodeID: req.NodeID},
				problem.Format("idempotency key %q", req.IdempotencyKey))
		},
	})
}

// Signal delivers a signal to the first wait for its name; see graph.Runner.Signal.
func (e *Engine) Signal(ctx context.Context, req graph.SignalRequest) (*view.Run, error) {
	const code = problem.SignalValidationError
	if strings.TrimSpace(req.Name) == "" {
		return nil, problem.New(code, "signal name is missing").WithHint("Set the name that the run waits for.")
	}
	payload, err := admit.Object("payload", req.Payload, e.o.MaxDocumentBytes, code)
	if err != nil {
		return nil, err
	}
	if req.Start != nil && strings.TrimSpace(req.ExecutionID) != "" {
		run, err := e.startSignalled(ctx, req, payload)
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
	return e.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, signal: req.Name, invalid: code, unknown: problem.ExecutionNotFound,
		call: func(string) call {
			return call{Signal: &machine.Signal{Name: req.Name, Payload: payload, IdempotencyKey: req.IdempotencyKey}}
		},
		fit: func(_ string, w machine.Wait) admit.Fit { return admit.SignalFit(req.Name, w) },
		before: func(ctx context.Context, _ *node) (bool, error) {
			found, err := search().SearchBelow(ctx, past{Engine: e}, req.ExecutionID)
			if err != nil || found.Repeat == admit.NotRepeated {
				return false, err
			}
			err = verdict(found, nil)
			return err == nil, err
		},
		repeated: func(ctx context.Context, refusal error) error {
			found, err := search().Search(ctx, past{Engine: e}, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return verdict(found, refusal)
		},
	})
}

// startSignalled starts a run with a signal. Without a run or an error, the run exists.
func (e *Engine) startSignalled(ctx context.Context, req graph.SignalRequest, payload map[string]any) (*view.Run, error) {
	if err := e.enter(ctx); err != nil {
		return nil, err
	}
	switch _, err := e.look(ctx, req.ExecutionID); {
	case err == nil:
		return nil, nil
	case !errors.Is(err, problem.ExecutionNotFound):
		return nil, err
	}
	start := *req.Start
	start.ExecutionID, start.AllowExisting, start.Wait = req.ExecutionID, false, req.Wait
	start.Mode = cmp.Or(start.Mode, req.Mode)
	run, err := e.start(ctx, start, &machine.Signal{Name: req.Name, Payload: payload, IdempotencyKey: req.IdempotencyKey})
	if errors.Is(err, problem.DuplicateExecutionID) {
		return nil, nil // another caller has started it meanwhile
	}
	return run, err
}
