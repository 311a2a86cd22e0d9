package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

func resumeTool(who elicit.Mode) *tool {
	payload := optional("resume_payload", obj("The person's answer, set in the state. Left out, the host asks for it."))
	if who == elicit.Never {
		payload = required("resume_payload", obj("The person's answer; its fields are set in the state."))
	}
	return &tool{
		name:        "workflow_resume",
		title:       "Resume interrupted workflow",
		description: "Answers an interrupt with a payload that fits its resume_schema. A rejected payload can be corrected.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments:   append(calls.ResumeArguments(payload), calls.SinceArgument, answerBytesArgument),
		answer:      calls.RunAnswer(calls.RepeatedProperty, calls.WarningsProperty),
		invalid:     problem.InvalidResumePayload,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := a.Resume(s.ReadDefinition)
			req.Wait = a.waiting(req.Wait)
			given := a.Get("resume_payload").Present()
			if asks := who == elicit.Required || who != elicit.Never && a.asking.able; !given && !asks {
				a.Missing("resume_payload")
			}
			if err := a.Problem(); err != nil {
				return nil, err
			}
			switch {
			case !given:
				return s.askAgain(ctx, a, req)
			case who == elicit.Required:
				return nil, s.guide(ctx, a, req.ExecutionID, s.refusedAnswer(ctx, a, req.ExecutionID))
			}
			run, err := s.drive(ctx, a, func() (*view.Run, error) { return s.Resume(ctx, req) })
			if err != nil {
				return nil, s.guide(ctx, a, req.ExecutionID, err)
			}
			return s.ran(ctx, a, run, err, " after resume", nil)
		},
	}
}

// askAgain has the host ask the person, even if they were asked before.
func (s *server) askAgain(ctx context.Context, a *arguments, req graph.ResumeRequest) (*answer, error) {
	run, err := s.drive(ctx, a, func() (*view.Run, error) {
		run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID})
		if err != nil {
			return nil, err
		}
		p := interruptOf(run, req.InterruptID)
		if p == nil {
			return nil, notAwaited(run)
		}
		if end, more := a.asking.state(p); !more && end.State != elicit.Asking {
			return nil, a.asking.cannotAsk(a, run, p)
		}
		a.asking.again, a.asking.only = true, p.ID
		return run, nil
	})
	return s.ran(ctx, a, run, err, "", nil)
}

// refusedAnswer returns the error for an answer that a model passes on where only a person may answer: that of any such call if the run has no
// open question.
func (s *server) refusedAnswer(ctx context.Context, a *arguments, executionID string) error {
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: executionID})
	switch {
	case err != nil:
		return err
	case interruptOf(run, "") == nil:
		return notAwaited(run)
	}
	return a.asking.personRequired(executionID)
}

// notAwaited is the error for an answer that a run does not wait for.
func notAwaited(run *view.Run) error {
	return problem.New(problem.InvalidResumePayload, "cannot resume: the run is %s and does not wait for this answer", run.Status).
		WithReason(problem.NotAwaiting).WithPlace(problem.Place{ExecutionID: run.ExecutionID}).WithHint("Read the run with Runner.Status.")
}

// interruptOf returns the interrupt with this id, or the first one if it is "".
func interruptOf(run *view.Run, id string) *view.Pending {
	for i := range run.Pending {
		if p := &run.Pending[i]; p.Kind == machine.WaitInterrupt && !isUnbound(p) && (id == "" || id == p.ID) {
			return p
		}
	}
	return nil
}
