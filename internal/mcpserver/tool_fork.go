package mcpserver

import (
	"context"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

func forkTool() *tool {
	return &tool{
		name:        "workflow_fork",
		title:       "Try again from a point of a run",
		description: "New run with the history of another (unchanged), up to its failure, node_id or seq.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments:   append(calls.ForkArguments(), answerBytesArgument),
		answer:      calls.RunAnswer(),
		invalid:     problem.ValidationError,
		begins:      true,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := a.Fork(s.ReadDefinition)
			req.Wait = a.waiting(req.Wait)
			if err := a.Problem(); err != nil {
				return nil, err
			}
			if s.opts.Elicit == elicit.Required && a.asking.answer == nil {
				if err := s.rejectKeptAnswer(ctx, req); err != nil {
					return nil, err
				}
			}
			forker, err := graph.Need[graph.Forker](s.Engine, "workflow_fork")
			if err != nil {
				return nil, err
			}
			run, err := s.drive(ctx, a, func() (*view.Run, error) { return forker.Fork(ctx, req) })
			return s.ran(ctx, a, run, err, ", started with the history of "+shownID(req.ExecutionID), nil)
		},
	}
}

// rejectKeptAnswer rejects a fork that would keep a person's answer: it was given to the other run.
func (s *server) rejectKeptAnswer(ctx context.Context, req graph.ForkRequest) error {
	records, err := s.History(ctx, graph.HistoryRequest{ExecutionID: req.ExecutionID})
	if err != nil {
		return err
	}
	kept := records[:min(max(req.Seq, 0), int64(len(records)))]
	if req.Seq == 0 && req.BeforeNode == "" { // a retry: approvals hold for the calls that the agent made
		run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID})
		if err != nil {
			return err
		}
		if req.BeforeNode = run.ErrorNodeID; req.BeforeNode == "" {
			kept = records
		}
	}
	if req.BeforeNode != "" {
		for i, r := range slices.Backward(records) {
			if r.Kind == history.Command && r.Name == history.ScheduleNode && r.Payload.NodeID == req.BeforeNode {
				kept = records[:i]
				break
			}
		}
	}
	node, err := s.answerIn(ctx, kept)
	if err != nil || node == "" {
		return err
	}
	return problem.New(problem.PersonRequired, "the new run would keep a person's answer to run %q at node %q", req.ExecutionID, node).
		WithPlace(problem.Place{ExecutionID: req.ExecutionID, NodeID: node}).
		WithHint("Fork before that node with node_id %q: the person is then asked again. Or ask the operator to use workflows-engine fork.", node)
}

// answerIn returns the first node with a person's answer, or with one in a subworkflow that has ended; "" without one.
func (s *server) answerIn(ctx context.Context, records []history.Record) (node string, err error) {
	for i := range records {
		p := &records[i].Payload
		switch records[i].Name {
		case history.InterruptResumed:
			if _, expired := p.AgentStep["expired"]; !expired { // no person gave that answer
				return p.NodeID, nil
			}
		case history.SubworkflowCompleted:
			child, err := s.History(ctx, graph.HistoryRequest{ExecutionID: p.ChildExecutionID})
			if err != nil {
				return "", err
			}
			if below, err := s.answerIn(ctx, child); err != nil || below != "" {
				return p.NodeID, err
			}
		}
	}
	return "", nil
}
