package mcpserver

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func cancelTool() *tool {
	return &tool{
		name:        "workflow_cancel",
		title:       "Cancel workflow execution",
		description: "Ends a run and its subworkflows for good, activities included. A rollback comes first; cancelling again ends it.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
		arguments: []property{
			executionIDArgument,
			optional("reason", aText("Reason to record.")),
		},
		answer: []property{
			required("execution_id", str("The run.")),
			required("status", str("cancelled, or what its rollback waits for.")),
			finalProperty, reasonProperty, seqProperty,
		},
		invalid: problem.CancelValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.CancelRequest{
				ExecutionID: a.Require("execution_id").NonEmpty(),
				Reason:      strings.TrimSpace(a.Get("reason").NonEmpty()),
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			run, err := s.Cancel(ctx, req)
			return s.ran(ctx, a, run, err, "", nil)
		},
	}
}
