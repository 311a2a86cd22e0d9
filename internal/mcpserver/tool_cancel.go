package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/calls"
)

func cancelTool() *tool {
	return &tool{
		name:        "workflow_cancel",
		title:       "Cancel workflow execution",
		description: "Ends a run and its subworkflows for good, activities included. A rollback comes first; cancelling again ends it.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
		arguments:   calls.CancelArguments(),
		answer: []property{
			required("execution_id", str("The run.")),
			required("status", str("cancelled, or what its rollback waits for.")),
			calls.FinalProperty, calls.ReasonProperty, calls.SeqProperty,
		},
		invalid: problem.CancelValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := a.Cancel()
			if err := a.Problem(); err != nil {
				return nil, err
			}
			run, err := s.Cancel(ctx, req)
			return s.ran(ctx, a, run, err, "", nil)
		},
	}
}
