package a2atest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2asrv"
	"github.com/a2aproject/a2a-go/a2asrv/eventqueue"
)

// key is the agent's key; it may appear nowhere but in the header of requests to the agent.
const key = "sentinel-key-0123456789"

// agent is an agent behind the official SDK. What it does with a message, its input's member "do" says:
//
//	complete   data and text artifacts, at once
//	stream     a text artifact in pieces
//	message    a message instead of a task
//	wait       works until the test releases it
//	ask        asks, and completes with the answer
//	auth       asks for access, and completes when the test releases it
//	fail, reject, cancel
//	break      an error of the executor
type agent struct {
	t       *testing.T
	url     string
	server  *httptest.Server
	release chan struct{}

	mu        sync.Mutex
	messages  []*a2a.Message
	cancelled []a2a.TaskID
	// sabotage, if set, may answer a request in the agent's place; it reports whether it did.
	sabotage func(w http.ResponseWriter, r *http.Request, method string) bool
	handler  http.Handler
	calls    map[string]int // by method
	card     func(url string) *a2a.AgentCard
	cardPath string
}

func newAgent(t *testing.T) *agent {
	a := &agent{t: t, release: make(chan struct{}), calls: map[string]int{}, cardPath: a2asrv.WellKnownAgentCardPath}
	a.card = func(url string) *a2a.AgentCard {
		return &a2a.AgentCard{Name: "coder", URL: url + "/rpc", PreferredTransport: a2a.TransportProtocolJSONRPC, ProtocolVersion: "0.3.0"}
	}
	a.forget()
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.url = a.server.URL
	t.Cleanup(func() { a.server.CloseClientConnections(); a.server.Close() })
	return a
}

// forget makes the agent lose its tasks, as one does that keeps them in memory and is started again.
func (a *agent) forget() {
	h := a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(a))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handler = h
}

func (a *agent) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+key {
		http.Error(w, "who are you, "+r.Header.Get("Authorization")+"?", http.StatusUnauthorized)
		return
	}
	method := ""
	if r.URL.Path == "/rpc" {
		body := bufio.NewReader(r.Body)
		start, _ := body.Peek(4096)
		for _, m := range []string{"message/send", "tasks/get", "tasks/cancel"} {
			if strings.Contains(string(start), `"method":"`+m+`"`) {
				method = m
			}
		}
		r.Body = io.NopCloser(body)
	}
	a.mu.Lock()
	sabotage, handler := a.sabotage, a.handler
	a.calls[method]++
	a.mu.Unlock()
	if sabotage != nil && sabotage(w, r, method) {
		return
	}
	switch r.URL.Path {
	case a.cardPath:
		a2asrv.NewStaticAgentCardHandler(a.card(a.url)).ServeHTTP(w, r)
	case "/rpc":
		handler.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (a *agent) spoil(s func(w http.ResponseWriter, r *http.Request, method string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sabotage = s
}

func (a *agent) count(method string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[method]
}

func (a *agent) got() []*a2a.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]*a2a.Message(nil), a.messages...)
}

func (a *agent) ended() []a2a.TaskID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]a2a.TaskID(nil), a.cancelled...)
}

// Execute does what the message says.
func (a *agent) Execute(ctx context.Context, rc *a2asrv.RequestContext, q eventqueue.Queue) error {
	a.mu.Lock()
	a.messages = append(a.messages, rc.Message)
	a.mu.Unlock()
	data := dataOf(rc.Message)
	say := func(s a2a.TaskState, text string, final bool) error {
		var m *a2a.Message
		if text != "" {
			m = a2a.NewMessageForTask(a2a.MessageRoleAgent, rc, a2a.TextPart{Text: text})
		}
		e := a2a.NewStatusUpdateEvent(rc, s, m)
		e.Final = final
		return q.Write(ctx, e)
	}
	complete := func(parts ...a2a.Part) error {
		return errors.Join(q.Write(ctx, a2a.NewArtifactEvent(rc, parts...)), say(a2a.TaskStateCompleted, "", true))
	}
	if rc.StoredTask != nil {
		return errors.Join(say(a2a.TaskStateWorking, "", false), complete(a2a.DataPart{Data: map[string]any{"answer": data, "said": textOf(rc.Message)}}))
	}
	switch data["do"] {
	case "complete":
		first := a2a.NewArtifactEvent(rc, a2a.DataPart{Data: map[string]any{"patch": "p", "n": 1.0}}, a2a.TextPart{Text: "one"})
		return errors.Join(say(a2a.TaskStateWorking, "", false), q.Write(ctx, first),
			complete(a2a.DataPart{Data: map[string]any{"n": 2.0}}, a2a.TextPart{Text: "two"},
				a2a.FilePart{File: a2a.FileURI{URI: "https://files.example/f", FileMeta: a2a.FileMeta{Name: "f"}}}))
	case "stream":
		first := a2a.NewArtifactEvent(rc, a2a.TextPart{Text: "hel"})
		return errors.Join(q.Write(ctx, first),
			q.Write(ctx, a2a.NewArtifactUpdateEvent(rc, first.Artifact.ID, a2a.TextPart{Text: "lo"})), say(a2a.TaskStateCompleted, "", true))
	case "message":
		return q.Write(ctx, a2a.NewMessageForTask(a2a.MessageRoleAgent, rc, a2a.TextPart{Text: "hi"}, a2a.DataPart{Data: map[string]any{"x": 1.0}}))
	case "wait":
		if err := say(a2a.TaskStateWorking, "", false); err != nil {
			return err
		}
		select {
		case <-a.release:
			return complete(a2a.DataPart{Data: map[string]any{"waited": true}})
		case <-ctx.Done():
			return ctx.Err()
		}
	case "ask":
		return say(a2a.TaskStateInputRequired, "Which file, "+fmt.Sprint(data["name"])+"?", true)
	case "auth":
		if err := say(a2a.TaskStateAuthRequired, "Log in at https://login.example.", false); err != nil {
			return err
		}
		<-a.release
		return complete(a2a.DataPart{Data: map[string]any{"in": true}})
	case "fail":
		return say(a2a.TaskStateFailed, "the tests do not pass", true)
	case "reject":
		return say(a2a.TaskStateRejected, "not my job", true)
	case "cancel":
		return say(a2a.TaskStateCanceled, "", true)
	}
	return errors.New("broken")
}

// Cancel ends a task.
func (a *agent) Cancel(ctx context.Context, rc *a2asrv.RequestContext, q eventqueue.Queue) error {
	a.mu.Lock()
	a.cancelled = append(a.cancelled, rc.TaskID)
	a.mu.Unlock()
	e := a2a.NewStatusUpdateEvent(rc, a2a.TaskStateCanceled, nil)
	e.Final = true
	return q.Write(ctx, e)
}

func dataOf(m *a2a.Message) map[string]any {
	out := map[string]any{}
	for _, p := range m.Parts {
		if d, ok := p.(a2a.DataPart); ok {
			maps.Copy(out, d.Data)
		}
	}
	return out
}

func textOf(m *a2a.Message) string {
	for _, p := range m.Parts {
		if d, ok := p.(a2a.TextPart); ok {
			return d.Text
		}
	}
	return ""
}
