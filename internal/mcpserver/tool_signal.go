package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
)

func signalTool() *tool {
	return &tool{
		name:        "workflow_signal",
		title:       "Deliver workflow signal",
		description: "Delivers a signal to a run that waits for it; the payload is merged into the state. A signal that no wait awaits or keeps is rejected.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments:   append(calls.SignalArguments(), calls.SinceArgument, answerBytesArgument),
		answer:      calls.RunAnswer(calls.RepeatedProperty, calls.WarningsProperty),
		invalid:     problem.SignalValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := a.Signal(s.ReadDefinition)
			req.Wait = a.waiting(req.Wait)
			if err := a.Problem(); err != nil {
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
