package mcpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// byHand is a host of the revision with tickets that shows what it gets, and sends what a test wants.
func (o *office) byHand() *mcp.ClientSession {
	o.t.Helper()
	here, there := mcp.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() { served <- mcpserver.Serve(context.Background(), mcpserver.New(o.runner, o.options), there) }()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "3"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	}).Connect(context.Background(), here, &mcp.ClientSessionOptions{ProtocolVersion: askingTicket})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		session.Close()
		if err := <-served; err != nil {
			o.t.Errorf("Serve: %v", err)
		}
	})
	return session
}

// answered is a call that is made once more, with an answer of the person.
func answered(call *mcp.CallToolParams, state string, result *mcp.ElicitResult) *mcp.CallToolParams {
	again := mcp.CallToolParams{Name: call.Name, Arguments: call.Arguments}
	again.RequestState = state
	if result != nil {
		again.InputResponses = mcp.InputResponseMap{"answer": result}
	}
	return &again
}

func statusOf(t *testing.T, res *mcp.CallToolResult) any {
	t.Helper()
	content, _ := res.StructuredContent.(object)
	return content["status"]
}

// TestTickets: the answer of the person counts with the ticket of the very call, at every server of the database, and once.
func TestTickets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required})
		one, two := o.byHand(), o.byHand()
		start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"definition": walk(approval)}} // without an id: a second start would be another run
		asked := enginetest.Must(one.CallTool(t.Context(), start))
		if !asked.NeedsInput() || len(asked.InputRequests) != 1 || len(asked.Content) > 0 || asked.StructuredContent != nil {
			t.Fatalf("answered %+v", asked)
		}
		q := asked.InputRequests["answer"].(*mcp.ElicitParams)
		if q.Mode != "form" || !strings.HasPrefix(q.Message, "Refund 10 €?\n\n") {
			t.Errorf("asks %+v", q)
		}
		// The host has the question again if it brings no answer.
		for _, responses := range []mcp.InputResponseMap{nil, {"other": accepts(object{"approve": true})}} {
			again := answered(start, asked.RequestState, nil)
			again.InputResponses = responses
			if res := enginetest.Must(one.CallTool(t.Context(), again)); !res.NeedsInput() {
				t.Errorf("with %v answered %+v", responses, res)
			}
		}
		for i, session := range []*mcp.ClientSession{two, one, two} { // the others repeat it
			res, err := session.CallTool(t.Context(), answered(start, asked.RequestState, accepts(object{"approve": i == 0})))
			if err != nil || statusOf(t, res) != "completed" || at(t, res.StructuredContent, "result", "approve") != true {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		}
		page := enginetest.Must(o.runner.List(t.Context(), history.ListQuery{}))
		if len(page.Executions) != 1 {
			t.Fatalf("%d runs", len(page.Executions))
		}
		h := &host{store: o.store}
		if by := resumed(t, h, page.Executions[0].ID); !slices.Equal(by, []string{"desk 3 (elicitation)"}) {
			t.Errorf("recorded %q", by)
		}
	})
}

// TestForgedTickets: nothing happens with a ticket that was made up, changed, made with another key, or given for another call.
func TestForgedTickets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required})
		session := o.byHand()
		start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}
		asked := enginetest.Must(session.CallTool(t.Context(), start))
		other := enginetest.Must(session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r2", "definition": walk(approval)}}))
		body, signature, _ := strings.Cut(asked.RequestState, ".")
		otherBody, _, _ := strings.Cut(other.RequestState, ".")
		made := elicit.Seal([]byte("a key that a model has made up"), elicit.Ticket{
			ExecutionID: "r", InterruptID: "r:ask#1", Call: elicit.CallOf("workflow_resume", []byte(`{"execution_id":"r"}`)), Expires: time.Now().Add(time.Hour),
		})
		resume := &mcp.CallToolParams{Name: "workflow_resume", Arguments: object{"execution_id": "r"}}
		for i, c := range []struct {
			call  *mcp.CallToolParams
			state string
		}{
			{start, "x"}, {start, body}, {start, body + "."}, {start, otherBody + "." + signature}, {start, strings.ToLower(asked.RequestState)}, {start, other.RequestState},
			{resume, asked.RequestState}, {resume, made}, {start, made},
			{&mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(work, approval)}}, asked.RequestState},
			{&mcp.CallToolParams{Name: "workflow_list"}, asked.RequestState},
		} {
			res, err := session.CallTool(t.Context(), answered(c.call, c.state, accepts(object{"approve": true})))
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams || !contains(e.Message, "requestState") {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		}
		time.Sleep(elicit.PatienceOfAsked) // the form that is out counts as lost
		// Without a ticket an answer is none: the call is what it would be without.
		res := enginetest.Must(session.CallTool(t.Context(), answered(resume, "", accepts(object{"approve": true}))))
		if !res.NeedsInput() {
			t.Errorf("without a ticket: %+v", res)
		}
		for _, id := range []string{"r", "r2"} {
			if by := resumed(t, &host{store: o.store}, id); len(by) != 0 {
				t.Errorf("%s: recorded %q", id, by)
			}
		}
		// The server of another database, or one with a key of its own, does not know the ticket.
		o.options.Key = nil
		if _, err := o.byHand().CallTool(t.Context(), answered(start, asked.RequestState, accepts(object{"approve": true}))); err == nil {
			t.Error("another key was taken")
		}
	})
}

// TestTicketsOfOldRevisions count for nothing: there the server has asked the host, and knows the answer.
func TestTicketsOfOldRevisions(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{Elicit: elicit.Required})
		resume := &mcp.CallToolParams{Name: "workflow_resume", Arguments: object{"execution_id": "r"}}
		enginetest.Must(o.byHand().CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}))
		asked := enginetest.Must(o.byHand().CallTool(t.Context(), resume))
		p := says(declines)
		res, err := o.host(revision, p).session.CallTool(t.Context(), answered(resume, asked.RequestState, accepts(object{"approve": true})))
		if err != nil || statusOf(t, res) != "interrupted" || len(p.questions()) != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// TestATicketThatHasExpired: the person is asked again.
func TestATicketThatHasExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		session := o.byHand()
		start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}
		asked := enginetest.Must(session.CallTool(t.Context(), start))
		time.Sleep(24 * time.Hour)
		again := enginetest.Must(session.CallTool(t.Context(), answered(start, asked.RequestState, accepts(object{"approve": true}))))
		if !again.NeedsInput() || again.RequestState == asked.RequestState {
			t.Fatalf("%+v", again)
		}
		res := enginetest.Must(session.CallTool(t.Context(), answered(start, again.RequestState, accepts(object{"approve": true}))))
		if statusOf(t, res) != "completed" {
			t.Errorf("%+v", res)
		}
	})
}

// TestOvertakenTickets: an answer to what is answered already changes nothing, and the call says where the run stands.
func TestOvertakenTickets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		session := o.byHand()
		start := &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}
		asked := enginetest.Must(session.CallTool(t.Context(), start))
		enginetest.Must(o.runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"approve": false}}))
		res := enginetest.Must(session.CallTool(t.Context(), answered(start, asked.RequestState, accepts(object{"approve": true}))))
		if statusOf(t, res) != "completed" || at(t, res.StructuredContent, "result", "approve") != false {
			t.Errorf("%+v", res)
		}
	})
}

// TestTheKeyOfTickets is asked for when it is needed; without one the call says why the person is not asked, and the run is kept.
func TestTheKeyOfTickets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, graph.Options{}, mcpserver.Options{})
		o.options.Key = func(context.Context, string) ([]byte, error) { return nil, fmt.Errorf("the disk is gone") }
		session := o.byHand()
		res := enginetest.Must(session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": walk(approval)}}))
		if !res.IsError || !contains(res.Content[0].(*mcp.TextContent).Text, "the disk is gone") {
			t.Errorf("%+v", res)
		}
		res = enginetest.Must(session.CallTool(t.Context(), &mcp.CallToolParams{Name: "workflow_status", Arguments: object{"execution_id": "r"}}))
		if content, _ := res.StructuredContent.(object); content["phase"] != "interrupted" {
			t.Errorf("%+v", res)
		}
	})
}

// TestAQuestionOnTheWire has what the protocol says, and nothing of an answer.
func TestAQuestionOnTheWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		def, _ := json.Marshal(walk(approval))
		line := strings.Join(w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"name":"workflow_start","arguments":{"definition":%s}}}`, def)), "")
		var m struct{ Result map[string]any }
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m.Result, "_meta")
		if state, _ := m.Result["requestState"].(string); state == "" {
			t.Errorf("%s", line)
		}
		delete(m.Result, "requestState")
		got, _ := json.Marshal(m.Result)
		if want := `{"inputRequests":{"answer":{"method":"elicitation/create","params":{"message":"Refund 10 €?\n\nWorkflow refunds, run run-1","mode":"form",` +
			`"requestedSchema":{"properties":{"approve":{"type":"boolean"}},"required":["approve"],"type":"object"}}}},"resultType":"input_required"}`; string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}
