package mcpserver

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func statusTool() *tool {
	return &tool{
		name:  "workflow_status",
		title: "Read workflow status",
		description: "Where a run stands: phase, state, what it waits for and the next call, or how it ended. " +
			"Repeats everything needed to continue.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			executionIDArgument,
			optional("wait_ms", describe("integer", "Longest wait while the run goes on by itself (default 0).",
				"minimum", 0.0, "maximum", float64(MaxWait.Milliseconds()))),
			optional("since_seq", describe("integer", "seq of an answer you have: what is unchanged is left out; wait_ms waits for any change since.", "minimum", 1.0)),
			optional("node_id", aText("Only what waits at this node, in full.")),
			optional("read", listOf(members{{"type", "string"}}, "Answer these values instead: JSON pointers into the state, or a reference's $ref and pointer joined.")),
			optional("select", aText("Answer what this jq makes of the state, such as .text[0:4000].")),
			answerBytesArgument,
		},
		answer:  statusAnswer(),
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.StatusRequest{ExecutionID: a.Require("execution_id").NonEmpty(), Since: a.since}
			if wait := a.wait(); wait.Limit > 0 {
				wait.End = a.hangup.looking
				req.Wait = &wait
			}
			node, reading := a.Get("node_id").NonEmpty(), a.reading()
			if err := a.problem(); err != nil {
				return nil, err
			}
			asks := req.Wait != nil && reading == nil && node == ""
			run, err := s.drive(ctx, a, func() (*view.Run, error) {
				if asks && a.asking.able { // no wait for a change comes before the question
					if run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID}); err != nil || a.asking.next(run) != nil {
						return run, err
					}
				}
				return s.Status(ctx, req)
			})
			if err == nil && asks {
				var question *answer
				if run, question, err = s.ask(ctx, a, run); question != nil {
					return question, nil
				}
			}
			if err != nil {
				return nil, err
			}
			if reading != nil {
				return reading.answer(ctx, s, run, a.answerBytes())
			}
			t, headline := s.view(ctx, a, run), fmt.Sprintf("Execution %s is %s", shownID(run.ExecutionID), runjson.Phase(run.Status))
			if node != "" && !t.awaits(node) {
				headline += fmt.Sprintf("; it does not wait at node %q", node)
			} else {
				t.node = node
			}
			headline += "."
			for _, w := range run.Warnings {
				if w.Code == problem.RunWillFail || w.Code == problem.AgentPartialAnswer {
					headline += " " + warningText(w)
				}
			}
			content := runjson.Status(run, envname.Options)
			if s.usualBytes() == FullAnswers {
				content = runjson.ProtocolStatus(run, envname.Options)
			}
			return s.answered(headline+a.asking.said(run), content, t, a), nil
		},
	}
}
