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

// Resume answers an interrupt, of the run or of a subworkflow that it waits for. A refused payload (INVALID_RESUME_PAYLOAD) leaves the
// run interrupted; a resume of a run that is not interrupted, or not there, has the same code and changes nothing either. A resume that
// repeats a recorded one, by the interrupt's id, is answered with where the run stands now (Run.Repeated); one that says something else is told
// what was recorded (Error.Hint, Error.Details).
//
// An answer without InterruptID is taken only where it can mean one question. With the content of the answer that was recorded last, or of the
// last one of the same Actor, it repeats that one; where nothing is asked it is refused, as by the protocol, and Error.Details has repeated: true
// and what was recorded. With another content than an answer that was recorded while the call was on its way it is refused too. If several
// questions are open, or one has ended without an answer since the last one, it is refused with ANSWER_AMBIGUOUS; Error.Details lists what is
// open. Where this process lacks what the run goes on with, the answer is recorded and the rest left to another process
// (Run.Lacks).
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
			if e, ok := problem.As(refusal); ok && recorded { // where nothing is asked, the protocol has the second answer refused
				return last.Again(e)
			}
			if interruptID == noInterrupt {
				return last.Verdict(refusal, code, problem.Place{}, "")
			}
			found, err := (&admit.RepeatedResume{InterruptID: interruptID, Payload: payload}).Search(ctx, r.store, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, code, problem.Place{ExecutionID: req.ExecutionID}, problem.Format("interrupt id %q", interruptID))
		},
	})
}

// noInterrupt is the id of no interrupt: an answer that was made while nothing was asked answers nothing that is asked a moment later.
const noInterrupt = "none"

// meant returns the id of the interrupt that an answer without one is for, noInterrupt if nothing is asked, whether it was recorded
// before, and the answer that was recorded last. From here on the answer is for that interrupt alone, whatever else is answered at the same time.
func (r *Runner) meant(ctx context.Context, x *run.Run, c Caller, payload map[string]any, came arrival.Mark) (interruptID string, recorded bool, last admit.Found, err error) {
	err = r.with(ctx, x, func(*run.Work) error { return x.Admit(ctx, c.verified(), problem.InvalidResumePayload, false) })
	if err != nil {
		return "", false, last, err
	}
	answer := &admit.Unnamed{Payload: payload, Actor: run.ActorOf(ctx)}
	if err := r.eachWait(ctx, x, false, answer.Waits); err != nil {
		return "", false, last, err
	}
	answer.Overtaken = r.answers.Since(x.ID(), came)
	if answer.Now = r.now(); !came.Time.IsZero() {
		answer.Came = answer.Now.Add(-time.Since(came.Time))
	}
	interruptID, found, err := answer.Search(ctx, r.store, x.ID())
	if !answer.Asked() {
		interruptID, last = noInterrupt, answer.Last(ctx, r.store)
	}
	return interruptID, found == admit.Repeated, last, err
}
