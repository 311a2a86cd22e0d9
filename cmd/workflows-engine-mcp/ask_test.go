package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// approves is a workflow that asks a person.
const approves = `{"document":{"schema":"s","name":"approves","version":"1"},"state_schema":{"type":"object"},` +
	`"nodes":[{"id":"a","type":"start"},{"id":"q","type":"interrupt","config":{"prompt":"Refund?","resume_schema":` +
	`{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}}},{"id":"z","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"q"},{"source":"q","target":"z"}]}`

// askedHost connects a host of a revision whose person answers by reply, or which only shows what it gets if reply is nil.
func askedHost(t *testing.T, revision, db string, reply func(context.Context) *mcp.ElicitResult) (session *mcp.ClientSession, kill func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := command(t, "--store-path", db, "--elicit", "required")
	stderr := new(tail)
	cmd.Stderr = stderr
	options := &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}, MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: reply == nil},
	}
	if reply != nil {
		options.ElicitationHandler = func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return reply(ctx), nil }
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desk", Version: "3"}, options).
		Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, stderr)
	}
	t.Cleanup(func() { session.Close() }) // reports the kill
	return session, func() {
		cmd.Process.Kill()
		cmd.Process.Wait()
	}
}

var (
	yes    = &mcp.ElicitResult{Action: "accept", Content: object{"approve": true}}
	refund = &mcp.CallToolParams{Name: "workflow_start", Arguments: object{"execution_id": "r", "definition": json.RawMessage(approves), "wait_ms": 20000}}
)

// answers are the records of the answer to the one question of the run, by their authors.
func answers(t *testing.T, db string) (list []string) {
	t.Helper()
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records, err := store.Read(t.Context(), "r", 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Name == history.ResumeInterrupt || r.Name == history.InterruptResumed {
			list = append(list, fmt.Sprintf("%s %v", r.Name, r.Payload.Actor))
		}
	}
	return list
}

var answeredOnce = []string{"ResumeInterrupt desk 3 (elicitation)", "InterruptResumed <nil>"}

// TestKilledWhileAPersonIsAsked kills the server in the middle of a question. The next one has the person asked again, and one answer is
// recorded.
func TestKilledWhileAPersonIsAsked(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			db := database(t)
			asked, killed := make(chan struct{}), make(chan struct{})
			session, kill := askedHost(t, revision, db, func(context.Context) *mcp.ElicitResult {
				close(asked)
				<-killed
				return yes
			})
			called := make(chan error)
			go func() {
				_, err := session.CallTool(t.Context(), refund)
				called <- err
			}()
			<-asked
			kill()
			close(killed)
			if err := <-called; err == nil {
				t.Error("the call was answered")
			}
			if got := answers(t, db); len(got) != 0 {
				t.Fatalf("recorded %q", got)
			}
			times := 0
			session, kill = askedHost(t, revision, db, func(context.Context) *mcp.ElicitResult { times++; return yes })
			defer kill()
			for _, call := range []*mcp.CallToolParams{
				{Name: "workflow_resume", Arguments: object{"execution_id": "r"}}, {Name: "workflow_status", Arguments: object{"execution_id": "r", "wait_ms": 1000}},
			} {
				res, err := session.CallTool(t.Context(), call)
				if err != nil || at(answerOf(t, res), "result")["approve"] != true {
					t.Errorf("%s: %+v, %v", call.Name, res, err)
				}
			}
			if got := answers(t, db); times != 1 || !slices.Equal(got, answeredOnce) {
				t.Errorf("asked %d times, recorded %q", times, got)
			}
		})
	}
}

func at(m object, name string) object {
	inner, _ := m[name].(object)
	return inner
}

// TestATicketOutlivesItsServer: a host whose server has died while the person was asked brings the answer to the next one.
func TestATicketOutlivesItsServer(t *testing.T) {
	t.Parallel()
	db := database(t)
	session, kill := askedHost(t, "2026-07-28", db, nil)
	asked, err := session.CallTool(t.Context(), refund)
	if err != nil || !asked.NeedsInput() {
		t.Fatalf("%+v, %v", asked, err)
	}
	kill()
	for range 2 { // the answer of the first is lost, too
		session, kill := askedHost(t, "2026-07-28", db, nil)
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{
			Name: refund.Name, Arguments: refund.Arguments, RequestState: asked.RequestState, InputResponses: mcp.InputResponseMap{"answer": yes},
		})
		if err != nil || answerOf(t, res)["status"] != "completed" {
			t.Errorf("%+v, %v", res, err)
		}
		kill()
	}
	if got := answers(t, db); !slices.Equal(got, answeredOnce) {
		t.Errorf("recorded %q", got)
	}
}

// TestAnAnswerAsTheLastMessage: a host that brings an answer and ends its server at once has not lost it, whether a call waits for it or not.
func TestAnAnswerAsTheLastMessage(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
			t.Parallel()
			db, wait := database(t), 20_000
			if late {
				wait = 1000
			}
			p := spawn(t, "--store-path", db)
			p.write(helloAsking, toolCall(1, "workflow_start", fmt.Sprintf(`{"execution_id":"r","wait_ms":%d,"definition":%s}`, wait, approves)))
			p.read()
			question := p.read()
			if question["method"] != "elicitation/create" {
				t.Fatalf("%v", question)
			}
			if late {
				if got := structured(p.read()); got["status"] != "interrupted" {
					t.Fatalf("answered %v", got)
				}
			}
			id, _ := json.Marshal(question["id"])
			p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"action":"accept","content":{"approve":true}}}`)
			p.stdin.Close()
			if !late {
				if got := structured(p.read()); got["status"] != "completed" {
					t.Errorf("answered %v", got)
				}
			}
			if status := p.end(); status != 0 {
				t.Errorf("status %d", status)
			}
			if got := answers(t, db); !slices.Equal(got, answeredOnce) {
				t.Errorf("recorded %q", got)
			}
		})
	}
}

const helloAsking = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{}}},"clientInfo":{"name":"desk","version":"3"}}}`

// TestAnOpenQuestionHoldsNothingUp: a server ends as soon as its host does, or it is told to, whatever the person is being asked; the
// question is no part of the protocol's end.
func TestAnOpenQuestionHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for _, signal := range []bool{false, true} {
		t.Run(fmt.Sprint("signal ", signal), func(t *testing.T) {
			t.Parallel()
			p := spawn(t, "--store", "memory")
			p.write(helloAsking, toolCall(1, "workflow_start", `{"execution_id":"r","wait_ms":300000,"definition":`+approves+`}`))
			p.read()
			if q := p.read(); q["method"] != "elicitation/create" {
				t.Fatalf("%v", q)
			}
			begun := time.Now()
			if signal {
				p.cmd.Process.Signal(syscall.SIGTERM)
			} else {
				p.stdin.Close()
			}
			for m := p.read(); m["id"] != 1.0; m = p.read() {
			}
			p.end()
			if took := time.Since(begun); took > patience/3 {
				t.Errorf("ended after %v", took)
			}
		})
	}
}
