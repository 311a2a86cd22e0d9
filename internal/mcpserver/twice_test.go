package mcpserver_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestAnAnswerSentTwiceLeavesTheNextQuestionOpen: a host repeats a call whose answer was lost, with the id that next has or without one.
func TestAnAnswerSentTwiceLeavesTheNextQuestionOpen(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	ok := object{"ok": object{"type": "boolean"}}
	definition := walk(formNode("clerk", "Clerk?", ok, "ok"), formNode("boss", "Boss?", ok, "ok"),
		object{"id": "wait", "type": "wait", "config": object{"kind": "signal", "signal": "go"}},
		object{"id": "last", "type": "wait", "config": object{"kind": "signal", "signal": "go"}})
	h.ok("workflow_start", object{"execution_id": "r", "definition": definition})
	args := object{"execution_id": "r", "resume_payload": object{"ok": true}}
	want(t, h.ok("workflow_resume", args), object{"status": "interrupted", "node_id": "boss"})
	for range 2 {
		want(t, h.ok("workflow_resume", args), object{"status": "interrupted", "node_id": "boss", "repeated": true})
	}
	next := h.ok("workflow_status", object{"execution_id": "r"})["next"].(object)["arguments"].(object)
	next["resume_payload"] = object{"ok": true}
	want(t, h.ok("workflow_resume", next), object{"status": "awaiting_signal", "node_id": "wait"})
	want(t, h.ok("workflow_resume", next), object{"status": "awaiting_signal", "node_id": "wait", "repeated": true})

	next = h.ok("workflow_status", object{"execution_id": "r"})["next"].(object)["arguments"].(object)
	next["payload"] = object{}
	want(t, h.ok("workflow_signal", next), object{"status": "awaiting_signal", "node_id": "last"})
	want(t, h.ok("workflow_signal", next), object{"status": "awaiting_signal", "node_id": "last", "repeated": true})
}

// heldAnswers is a store that is told when an answer may be stored.
type heldAnswers struct {
	history.Store
	begun, release chan struct{}
}

func (s *heldAnswers) Append(ctx context.Context, b history.Batch) error {
	if slices.ContainsFunc(b.Records, func(r history.Record) bool { return r.Name == history.InterruptResumed }) {
		s.begun <- struct{}{}
		<-s.release
	}
	return s.Store.Append(ctx, b)
}

// threeGates asks the same of three people, one after the other.
func threeGates() any {
	ok := object{"ok": object{"type": "boolean"}}
	return walk(formNode("clerk", "Clerk?", ok, "ok"), formNode("boss", "Boss?", ok, "ok"), formNode("head", "Head?", ok, "ok"))
}

// TestAHostSendsTwoAnswersAtOnce: both were made for the question that was open when they were sent, so the second is refused, and told the
// first.
func TestAHostSendsTwoAnswersAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &heldAnswers{historymem.New(), make(chan struct{}, 3), make(chan struct{})}
		l := newLine(t, enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{}))))
		l.call("workflow_start", object{"execution_id": "r", "definition": threeGates()})
		l.answer()
		first := l.call("workflow_resume", object{"execution_id": "r", "resume_payload": object{"ok": true}})
		second := l.call("workflow_resume", object{"execution_id": "r", "resume_payload": object{"ok": false}})
		synctest.Wait()
		close(store.release)
		answers := l.answers(2)
		want(t, answers[first], object{"status": "interrupted", "node_id": "boss"})
		wantSecond(t, answers[second])
		l.call("workflow_resume", object{"execution_id": "r", "resume_payload": object{"ok": false}})
		_, next := l.answer()
		want(t, next, object{"status": "interrupted", "node_id": "head"})
	})
}

// wantSecond checks the refusal of the second of two answers.
func wantSecond(t *testing.T, content object) {
	t.Helper()
	failure, _ := content["error"].(object)
	details, _ := failure["details"].(object)
	recorded, _ := details["recorded"].(object)
	payload, _ := recorded["payload"].(object)
	if failure["code"] != "INVALID_RESUME_PAYLOAD" || payload["ok"] != true {
		t.Errorf("%v", content)
	}
}

// TestTwoAnswersAtOnceOverHTTP: the same of one session, and of two.
func TestTwoAnswersAtOnceOverHTTP(t *testing.T) {
	t.Parallel()
	for name, sessions := range map[string][]string{"one session": {"a"}, "two sessions": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &heldAnswers{historymem.New(), make(chan struct{}, 3), make(chan struct{})}
			engine := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			handler, turns := mcpserver.HTTPServer(ctx, mcpserver.New(engine, mcpserver.Options{}), mcpserver.HTTPOptions{})
			served := httptest.NewServer(handler)
			defer served.Close()
			var peers []*peer
			for _, name := range sessions {
				peers = append(peers, newPeer(t, served.URL+"/mcp", name))
			}
			peers[0].send(rpcCall(1, "workflow_start", object{"execution_id": "r", "definition": threeGates()}))
			var answers [2]chan httpAnswer
			for i := range answers {
				answers[i] = make(chan httpAnswer, 1)
				body := rpcCall(2+i, "workflow_resume", object{"execution_id": "r", "resume_payload": object{"ok": i == 0}})
				go func() {
					got, err := peers[i%len(peers)].try(t.Context(), http.MethodPost, strings.NewReader(body))
					if err != nil {
						t.Error(err)
					}
					answers[i] <- got
				}()
				if i == 0 {
					<-store.begun
				}
				for turns() < i+1 {
					time.Sleep(time.Millisecond) // until the request has come in
				}
			}
			close(store.release)
			want(t, (<-answers[0]).content(), object{"status": "interrupted", "node_id": "boss"})
			wantSecond(t, (<-answers[1]).content())
			last := peers[0]
			status := last.send(rpcCall(4, "workflow_status", object{"execution_id": "r"})).content()
			want(t, status, object{"current_node_id": "boss"})
		})
	}
}

// TestAHostRepeatsAnAnswerAfterAnother: another host has answered the next question between a call and its repetition.
func TestAHostRepeatsAnAnswerAfterAnother(t *testing.T) {
	t.Parallel()
	engine := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{})))
	handler, _ := mcpserver.HTTPServer(t.Context(), mcpserver.New(engine, mcpserver.Options{}), mcpserver.HTTPOptions{})
	served := httptest.NewServer(handler)
	defer served.Close()
	clerk, boss := newPeer(t, served.URL+"/mcp", "clerk"), newPeer(t, served.URL+"/mcp", "boss")
	clerk.send(rpcCall(1, "workflow_start", object{"execution_id": "r", "definition": threeGates()}))
	yes := object{"execution_id": "r", "resume_payload": object{"ok": true}}
	want(t, clerk.send(rpcCall(2, "workflow_resume", yes)).content(), object{"status": "interrupted", "node_id": "boss"})
	no := object{"execution_id": "r", "resume_payload": object{"ok": false}}
	want(t, boss.send(rpcCall(2, "workflow_resume", no)).content(), object{"status": "interrupted", "node_id": "head"})
	for i := range 2 {
		want(t, clerk.send(rpcCall(3+i, "workflow_resume", yes)).content(), object{"status": "interrupted", "node_id": "head", "repeated": true})
		want(t, boss.send(rpcCall(3+i, "workflow_resume", no)).content(), object{"status": "interrupted", "node_id": "head", "repeated": true})
	}
}
