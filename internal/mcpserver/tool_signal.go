package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

func signalTool() *tool {
	return &tool{
		name:        "workflow_signal",
		title:       "Deliver workflow signal",
		description: "Delivers a signal to a run that waits for it; the payload is merged into the state. A signal that no wait awaits or keeps is rejected.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments: []property{
			executionIDArgument,
			required("signal_name", aText("The signal's name, exactly.")),
			optional("payload", obj("Payload of the signal; default {}.")),
			optional("idempotency_key", aText("Any text that names this signal: repeated with it, the signal counts once.")),
			definitionAgain, inputAgain, modeArgument, waitArgument, sinceArgument, answerBytesArgument,
		},
		answer:  runAnswer(repeatedProperty, warningsProperty),
		invalid: problem.SignalValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.SignalRequest{
				ExecutionID: a.Require("execution_id").NonEmpty(),
				Name:        a.Require("signal_name").NonEmpty(),
				Payload:     readObject(a.Get("payload")),

				IdempotencyKey: a.Get("idempotency_key").NonEmpty(),
				Caller:         s.caller(a, problem.SignalValidationError),
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := s.drive(ctx, a, func() (*view.Run, error) { return s.Signal(ctx, req) })
			if err != nil {
				return nil, s.guide(ctx, a, req.ExecutionID, err)
			}
			return s.ran(ctx, a, run, err, " after signal delivery", nil)
		},
	}
}
