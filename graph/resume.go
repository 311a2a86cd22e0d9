package graph

import (
	"context"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
)

// Resume answers an interrupt of a run or its subworkflow. An error (INVALID_RESUME_PAYLOAD) changes nothing: for an invalid payload, a run
// that is not interrupted, or an unknown run. A resume that repeats a recorded answer, by the interrupt's id, returns the status
// (Run.Repeated). If it has another payload, the error has the recorded answer (Error.Hint, Error.Details).
//
// An answer without InterruptID is accepted only if it can mean a single question. If it equals the last recorded answer, or the last one of
// the same Actor, it repeats that one; if no question is open, it is then rejected, as the protocol requires, with the recorded answer and
// repeated: true in Error.Details. It is also rejected if another answer was recorded while the call was on its way. If several questions are
// open, or one has ended without an answer since the last one, the error is ANSWER_AMBIGUOUS with the open questions in Error.Details.
//
// If this process lacks an executor to continue the run, the answer is recorded, and another process continues (Run.Lacks).
func (r *Runner) Resume(ctx context.Context, req ResumeRequest) (*view.Run, error) {
	const code = problem.InvalidResumePayload
	payload, err := r.object("resume_payload", req.Payload, problem.ValidationError)
	if err != nil {
		return nil, err
	}
	came := arrival.Of(ctx)
	interruptID, recorded, last := req.InterruptID, false, admit.Found{}
	return r.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: code, unknown: code,
		before: func(ctx context.Context, x *run.Run) (taken bool, err error) {
			if interruptID != "" {
				return false, nil
			}
			interruptID, recorded, last, err = r.meant(ctx, x, req.Caller, payload, came)
			return recorded && interruptID != noInterrupt, err
		},
		input: func(target string) machine.Input {
			return machine.Resume{Key: strings.TrimPrefix(interruptID, target+":"), Payload: payload}
		},
		applied: r.answers.Recorded,
		fit:     func(id string, w machine.Wait) admit.Fit { return admit.ResumeFit(interruptID, id, w) },
		repeated: func(ctx context.Context, refusal error) error {
			if e, ok := problem.As(refusal); ok && recorded { // without an open question the protocol requires an error
				return last.Again(e)
			}
			if interruptID == noInterrupt {
				return last.Verdict(refusal, code, problem.Place{}, "")
			}
			found, err := (&admit.RepeatedResume{InterruptID: interruptID, Payload: payload}).Search(ctx, r.p.Store, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, code, problem.Place{ExecutionID: req.ExecutionID}, problem.Format("interrupt id %q", interruptID))
		},
	})
}

// noInterrupt is not the id of any interrupt: an answer made while no question was open must not answer a later question.
const noInterrupt = "none"

// meant returns the interrupt of an answer without an id: its id, or noInterrupt if no question is open, whether the answer repeats a
// recorded one, and the last recorded answer. The call then answers that interrupt alone, whatever else is answered at the same time.
func (r *Runner) meant(ctx context.Context, x *run.Run, c Caller, payload map[string]any, came arrival.Mark) (interruptID string, recorded bool, last admit.Found, err error) {
	err = r.p.With(ctx, x, func(*run.Work) error { return x.Admit(ctx, c.verified(), problem.InvalidResumePayload) })
	if err != nil {
		return "", false, last, err
	}
	answer := &admit.Unnamed{Payload: payload, Actor: run.ActorOf(ctx)}
	if err := r.eachWait(ctx, x, false, answer.Waits); err != nil {
		return "", false, last, err
	}
	answer.Overtaken = r.answers.Since(x.ID(), came)
	if answer.Now = r.p.Now(); !came.Time.IsZero() {
		answer.Came = answer.Now.Add(-time.Since(came.Time))
	}
	interruptID, found, err := answer.Search(ctx, r.p.Store, x.ID())
	if !answer.Asked() {
		interruptID, last = noInterrupt, answer.Last(ctx, r.p.Store)
	}
	return interruptID, found == admit.Repeated, last, err
}
