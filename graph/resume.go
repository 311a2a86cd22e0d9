package graph

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/admit"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Resume answers an interrupt, of the run or of a subworkflow that it waits for. A refused payload (INVALID_RESUME_PAYLOAD) leaves the
// run interrupted; a resume of a run that is not interrupted, or not there, has the same code and changes nothing either. A resume that
// repeats a recorded one, by the interrupt's id, is answered with where the run stands now (Run.Repeated). Where this process lacks what
// the run goes on with, the answer is recorded and the rest left to another process (Run.Lacks).
func (r *Runner) Resume(ctx context.Context, req ResumeRequest) (*Run, error) {
	const code = problem.InvalidResumePayload
	payload, err := r.object("resume_payload", req.Payload, problem.ValidationError)
	if err != nil {
		return nil, err
	}
	return r.deliver(ctx, delivery{
		id: req.ExecutionID, caller: req.Caller, invalid: code, unknown: code,
		input: func(target string) machine.Input {
			return machine.Resume{Key: strings.TrimPrefix(req.InterruptID, target+":"), Payload: payload}
		},
		fit: func(id string, w machine.Wait) admit.Fit { return admit.ResumeFit(req.InterruptID, id, w) },
		repeated: func(ctx context.Context, refusal error) error {
			found, err := (&admit.RepeatedResume{InterruptID: req.InterruptID, Payload: payload}).Search(ctx, r.store, req.ExecutionID)
			if err != nil {
				return refusal
			}
			return found.Verdict(refusal, code, problem.Place{ExecutionID: req.ExecutionID}, problem.Format("interrupt id %q", req.InterruptID))
		},
	})
}
