package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func resumeTool() *tool {
	return &tool{
		name:        "workflow_resume",
		title:       "Resume interrupted workflow",
		description: "Answers an interrupt with a payload that fits its resume_schema. A payload that does not fit is refused and can be corrected.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments: []property{
			executionIDArgument,
			required("resume_payload", obj("The person's answer; its members are set in the state.")),
			optional("interrupt_id", aText("Which interrupt, if several are pending.")),
			definitionAgain, inputAgain, modeArgument, waitArgument, sinceArgument, answerBytesArgument,
		},
		answer:  runAnswer(repeatedProperty, warningsProperty),
		invalid: problem.InvalidResumePayload,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.ResumeRequest{
				ExecutionID: a.Require("execution_id").NonEmpty(),
				InterruptID: a.Get("interrupt_id").NonEmpty(),
				Payload:     readObject(a.Require("resume_payload")),
				Caller:      a.caller(problem.InvalidResumePayload),
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := s.Resume(ctx, req)
			return s.ran(ctx, a, run, err, " after resume", nil)
		},
	}
}
