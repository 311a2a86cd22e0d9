package mcpserver

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/outline"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func statusTool() *tool {
	return &tool{
		name:  "workflow_status",
		title: "Read workflow status",
		description: "Reads a run: phase, state, its waits and the next call, or how it ended. " +
			"Repeats everything needed to continue.",
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			calls.ExecutionIDArgument, calls.StatusWaitArgument,
			optional("since_seq", describe("integer", "seq of an answer you have: unchanged values are left out; wait_ms waits for any change since.", "minimum", 1.0)),
			optional("node_id", aText("Only what waits at this node, in full.")),
			optional("read", calls.ListOf(members{{"type", "string"}}, "Return these values instead: JSON pointers into the state, or a reference's $ref and pointer joined.")),
			optional("select", aText("Return the result of this jq program on the state, such as .text[0:4000].")),
			answerBytesArgument,
		},
		answer:  calls.StatusAnswer(),
		invalid: problem.ValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := graph.StatusRequest{ExecutionID: a.Require("execution_id").NonEmpty(), Since: a.since}
			if wait := a.waiting(a.Wait()); wait.Limit > 0 {
				wait.End = a.hangup.looking
				req.Wait = &wait
			}
			node, reading := a.Get("node_id").NonEmpty(), a.reading()
			if err := a.Problem(); err != nil {
				return nil, err
			}
			asks := req.Wait != nil && reading == nil && node == ""
			run, err := s.drive(ctx, a, func() (*view.Run, error) {
				if asks && a.asking.able { // the question comes before any wait for a change
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

// maxReads is how many values one call can ask for.
const maxReads = 50

// reading selects values of a run: pointers into the state or addresses of references, and a jq program over the state.
type reading struct {
	addresses []string
	program   *expr.Program
}

// reading returns nil if a call asks for no values.
func (a *arguments) reading() *reading {
	list, text := a.Get("read"), a.Get("select")
	if !list.Present() && !text.Present() {
		return nil
	}
	r := &reading{addresses: list.Texts()}
	if len(r.addresses) > maxReads {
		list.Fail("maxItems", "expected at most %d addresses, found %d", maxReads, len(r.addresses))
	}
	if src := text.NonEmpty(); src != "" {
		program, err := expr.Compile(src)
		if err != nil {
			f := text.Fail("format", "%v", err)
			if e, ok := problem.As(err); ok {
				f.Hint = e.Hint
			}
		}
		r.program = program
	}
	return r
}

// selectFailed returns the error for a jq program that fails: the run is unchanged.
func selectFailed(err error) error {
	e, ok := problem.As(err)
	if !ok {
		return err
	}
	refused := *e
	refused.Code = problem.ValidationError
	refused.Hint = "Correct select; the run is not affected."
	return &refused
}

// answer shows the selected values of a run in a number of bytes.
func (r *reading) answer(ctx context.Context, s *server, run *view.Run, bytes int) (*answer, error) {
	content := members{{"execution_id", run.ExecutionID}, {"phase", string(runjson.Phase(run.Status))}, {"seq", float64(run.Seq)}}
	values := make([]members, len(r.addresses))
	var slots []*slot
	for i, text := range r.addresses {
		a, isAddress := parseAddress(text)
		if !isAddress {
			a = address{executionID: run.ExecutionID, document: stateSuffix, pointer: text}
		}
		values[i] = members{{"at", problem.Excerpt(text, maxShownID)}}
		v, in, err := s.value(ctx, run, a)
		if err != nil {
			values[i].Put("error", err.Error())
			continue
		}
		values[i].Put("value", v)
		slots = append(slots, slotOf(&values[i], 1, in, a.pointer))
	}
	if len(values) > 0 {
		content.Put("values", values)
	}
	if r.program != nil {
		v, err := r.program.EvalAt(stateOf(run), expr.Env{Now: time.Now(), Stop: func() bool { return ctx.Err() != nil }})
		if err != nil {
			return nil, selectFailed(err)
		}
		content.Put("selected", v)
		slots = append(slots, slotOf(&content, len(content)-1, outline.Document{URI: "selected", Hide: s.opts.Redaction.String}, ""))
	}
	if bytes == FullAnswers {
		bytes = math.MaxInt
	}
	headline := fmt.Sprintf("Read %s of execution %s.", count(len(slots), "value"), shownID(run.ExecutionID))
	if _, whole := fill(slots, bytes-len(content.Append(nil))); !whole {
		headline += fmt.Sprintf(" Not all fits in %d bytes: read a part, select with jq, or raise answer_bytes.", bytes)
	}
	return &answer{
		headline: headline,
		// The values are in the text too, for hosts that show only the text.
		lines:   []string{strings.TrimSuffix(strings.TrimPrefix(string(content[3:].Append(nil)), "{"), "}")},
		content: content,
	}, nil
}
