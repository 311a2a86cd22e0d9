package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// answerName names the question in an answer that asks, and the person's answer in the call that comes after it.
const answerName = "answer"

// personsAnswer is the content of a call that the host repeats after it has asked the person.
type personsAnswer struct {
	elicit.Ticket
	// result is nil without an answer, or if the answer came too late.
	result *mcp.ElicitResult
}

// ticketOf reads the person's answer of a repeated call. A ticket of another server is a protocol error.
func (k *asking) ticketOf(ctx context.Context, req *mcp.CallToolRequest) error {
	if req.Params.RequestState == "" || !k.byTicket() {
		return nil
	}
	key, err := k.s.ticketKey(ctx)
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: k.s.opts.Redaction.String(inOneLine(err))}
	}
	t, err := elicit.Open(key, req.Params.RequestState, time.Now())
	if errors.Is(err, elicit.ErrTicket) || t.Call != elicit.CallOf(req.Params.Name, req.Params.Arguments) {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState does not belong to this call; nothing was changed: read the run with workflow_status"}
	}
	k.answer = &personsAnswer{Ticket: t}
	k.tried, k.tries, k.asked = t.InterruptID, t.Tries, t.Asked+1
	if err == nil {
		k.answer.result, _ = req.Params.InputResponses[answerName].(*mcp.ElicitResult)
	}
	return nil
}

// ticketKey is the key that tickets are signed with.
func (s *server) ticketKey(ctx context.Context) ([]byte, error) {
	s.keyMu.Lock()
	defer s.keyMu.Unlock()
	if s.key == nil {
		key, err := s.opts.Key(ctx, "elicit")
		if err != nil {
			return nil, err
		}
		s.key = key
	}
	return s.key, nil
}

// askByTicket answers a call with a question to the person.
func (s *server) askByTicket(ctx context.Context, a *arguments, run *view.Run, p *view.Pending) (*view.Run, *answer, error) {
	k := a.asking
	key, err := s.ticketKey(ctx)
	if err != nil {
		return nil, nil, err
	}
	t := elicit.Ticket{
		ExecutionID: run.ExecutionID, InterruptID: p.ID, Call: elicit.CallOf(a.tool, a.raw), Asked: k.asked, Expires: time.Now().Add(elicit.Lifetime),
	}
	complaint := ""
	if k.tried == p.ID {
		t.Tries, complaint = k.tries, k.complaint
	}
	return run, &answer{question: &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{answerName: &mcp.ElicitParams{
			Mode: "form", Message: s.opts.Redaction.String(elicit.Message(questionText(p), aboutRun(run), complaint)), RequestedSchema: k.form(p).Schema,
		}},
		RequestState: elicit.Seal(key, t),
	}}, nil
}

// drive makes a call of the engine. If the call is repeated with the person's answer, it records the answer instead.
func (s *server) drive(ctx context.Context, a *arguments, call func() (*view.Run, error)) (*view.Run, error) {
	defer func() {
		if a.enough != nil {
			a.enough()
		}
	}()
	k := a.asking
	if k.answer == nil {
		return call()
	}
	t := k.answer
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: t.ExecutionID})
	if err != nil {
		return nil, err
	}
	if t.result == nil {
		k.again, k.only = true, t.InterruptID
		return run, nil
	}
	p := pendingInterrupt(run, t.InterruptID)
	if p == nil {
		k.second = s.secondAnswer(ctx, t)
		return run, nil
	}
	if !k.can(p) {
		return run, nil
	}
	end := elicit.End{State: elicit.Closed}
	switch t.result.Action {
	case "accept":
		var payload map[string]any
		if payload, err = k.form(p).Payload(t.result.Content); err != nil {
			end = elicit.End{State: elicit.Unfit, Err: err}
			break
		}
		after, err := s.Resume(graph.WithActor(ctx, k.actor), graph.ResumeRequest{
			ExecutionID: t.ExecutionID, InterruptID: t.InterruptID, Payload: payload, Caller: graph.Caller{Wait: a.waiting(a.Wait())},
		})
		if end = recorded(err, payload); end.State == elicit.Answered {
			after.Repeated, run = false, after
		} else if end.State == elicit.Failed {
			return nil, err
		}
	case "decline":
		end.State = elicit.Declined
	}
	if end.State == elicit.Unfit {
		k.complaint = end.Err.Error()
		if k.tries++; k.tries < maxTries {
			k.again, k.only = true, t.InterruptID
			return run, nil
		}
	}
	kept := end
	if end.State == elicit.Answered {
		kept.Payload = t.result.Content // in the form's spelling: the answer may be repeated
	} else if end.State == elicit.Overtaken && end.Err != nil {
		k.second = answeredBefore(firstAnswer(end.Err))
	}
	s.desk.Settle(k.key(p), kept)
	if end.State == elicit.Overtaken {
		return s.Status(ctx, graph.StatusRequest{ExecutionID: t.ExecutionID})
	}
	return run, nil
}

// secondAnswer returns the text about a person's late answer, "" if it equals the recorded one.
func (s *server) secondAnswer(ctx context.Context, t *personsAnswer) string {
	before, known := s.desk.Answer(elicit.Key{Interrupt: t.InterruptID})
	switch {
	case t.result.Action == "cancel", known && t.result.Action == "accept" && jsonvalue.Equal(before, t.result.Content):
		return ""
	case known:
		return answeredBefore(before)
	case t.result.Action != "accept":
		return notOpen
	}
	// Another process has recorded the answer, or the question timed out.
	run, err := s.Resume(ctx, graph.ResumeRequest{
		ExecutionID: t.ExecutionID, InterruptID: t.InterruptID, Payload: t.result.Content, Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}},
	})
	e, ok := problem.As(err)
	switch {
	case err == nil && run.Repeated:
		return ""
	case ok && e.Reason == problem.AnsweredDifferently:
		return answeredBefore(firstAnswer(err))
	default:
		return notOpen
	}
}

// questionResult is a result that asks. It has no content; the SDK writes null for that, which strict clients reject.
type questionResult struct{ *mcp.CallToolResult }

// MarshalJSON implements json.Marshaler.
func (r questionResult) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(r.CallToolResult)
	return bytes.Replace(text, []byte(`"content":null,`), nil, 1), err
}
