package mcpserver

import (
	"context"
	"math"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func forkTool() *tool {
	return &tool{
		name:        "workflow_fork",
		title:       "Try again from a point of a run",
		description: "Begins a new run with the past of another, up to the node that failed it, node_id, or record seq. The other run does not change.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments: []property{
			executionIDArgument,
			optional("node_id", aText("Begin before its last visit. Default: the node that failed.")),
			optional("seq", describe("integer", "Begin after this record.", "minimum", 1.0)),
			optional("definition", definitionSchema("A corrected one; what is kept must follow from it.")),
			optional("state", obj("Merge patch of the state. Not with seq.")),
			optional("new_execution_id", aText("Id of the new run.")),
			waitArgument, answerBytesArgument,
		},
		answer:  runAnswer(),
		invalid: problem.ValidationError,
		begins:  true,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.ForkRequest{
				ExecutionID: a.Require("execution_id").NonEmpty(), BeforeNode: a.Get("node_id").NonEmpty(),
				NewExecutionID: a.Get("new_execution_id").NonEmpty(), Definition: a.definition("definition", problem.ValidationError), Wait: a.wait(),
			}
			req.Correction = readObject(a.Get("state"))
			req.Seq, _ = a.Get("seq").Whole(1, math.MaxInt32)
			if req.Seq > 0 && req.BeforeNode != "" {
				a.Get("seq").Fail("oneOf", "expected one of node_id and seq, found both")
			}
			if req.Seq > 0 && req.Correction != nil {
				a.Get("state").Fail("oneOf", "expected one of state and seq, found both")
			}
			if err := a.problem(); err != nil {
				return nil, err
			}
			if req.Seq == 0 && req.BeforeNode == "" {
				run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID})
				if err != nil {
					return nil, err
				}
				if run.Status != machine.Failed || run.ErrorNodeID == "" {
					return nil, problem.New(problem.ValidationError, "run %q has not failed at a node", run.ExecutionID).
						WithPlace(problem.Place{ExecutionID: run.ExecutionID}).WithHint("Say in node_id or seq where the new run begins.")
				}
				req.BeforeNode = run.ErrorNodeID
			}
			forker, err := graph.Need[graph.Forker](s.Engine, "workflow_fork")
			if err != nil {
				return nil, err
			}
			run, err := forker.Fork(ctx, req)
			return s.ran(ctx, a, run, err, ", begun with the past of "+shownID(req.ExecutionID), nil)
		},
	}
}
