package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func taskFor(agent string) activities.Request {
	return activities.Request{NodeType: "agent_delegate",
		NodeID: "d", AgentID: agent, Protocol: "a2a", Input: map[string]any{"task": "T"}, CorrelationID: "x:delegate:d", IdempotencyKey: "x:d#1.1",
	}
}

// TestHTTPTasksOneRequestAtATime takes the steps that the engine takes.
func TestHTTPTasksOneRequestAtATime(t *testing.T) {
	t.Parallel()
	answers := []string{
		`{"id":"t 1","status":"submitted"}`, `{"id":"other","status":"working"}`, `{"id":"t 1","status":"completed","output":{"a":1}}`,
		`{"id":"t 1","status":"input-required"}`, `{"id":"t 1","status":"failed","error":"no"}`, `{"id":"t 1","status":"working"}`,
	}
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers[len(paths)])
		paths = append(paths, r.Method+" "+r.URL.EscapedPath())
	}))
	defer server.Close()
	a, err := delegate.NewA2AHTTP(delegate.A2AConfig{BaseURL: server.URL, NoAuth: true, PollInterval: time.Second, MaxPollInterval: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, req := t.Context(), taskFor("coder")
	task, err := a.Send(ctx, req)
	if err != nil || task.ID != "t 1" || task.State != activities.TaskWorking || task.PollAfter != time.Millisecond {
		t.Fatalf("sent: %+v, %v", task, err)
	}
	ref := activities.TaskRef{ID: task.ID, Polls: 2}
	if task, err = a.Poll(ctx, req, ref); err != nil || task.ID != "t 1" || task.PollAfter != 2250*time.Millisecond {
		t.Errorf("polled: %+v, %v", task, err)
	}
	if task, err = a.Poll(ctx, req, ref); err != nil || task.State != activities.TaskCompleted {
		t.Errorf("completed: %+v, %v", task, err)
	}
	late := ref
	late.Waited = time.Hour
	for _, want := range []struct {
		ref  activities.TaskRef
		code problem.Code
		text string
	}{
		{ref, problem.A2AProviderError, "host_mediated"}, {ref, problem.A2ATaskFailed, "no"}, {late, problem.A2AProviderError, "did not end within 2m0s"},
	} {
		_, err := a.Poll(ctx, req, want.ref)
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || failure.Code != string(want.code) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%v, want %s %q", err, want.code, want.text)
		}
	}
	if _, err := a.Answer(ctx, req, ref, map[string]any{}); err == nil {
		t.Error("an answer was taken")
	}
	if err := a.Cancel(ctx, req, ref); err == nil {
		t.Error("the form can cancel?")
	}
	if got := strings.Join(paths[:2], ", "); got != "POST /tasks, GET /tasks/t%201" {
		t.Error(got)
	}
}

// TestAgentsByID asks for the card once, and serves each agent in the form that is configured for it.
func TestAgentsByID(t *testing.T) {
	t.Parallel()
	var cards atomic.Int64
	serve := func(card bool) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/.well-known/"):
				cards.Add(1)
				if card {
					fmt.Fprint(w, `{"url":"/rpc"}`)
				} else {
					http.NotFound(w, r)
				}
			case r.URL.Path == "/rpc":
				var call struct{ ID, Method string }
				if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.Header.Get("Idempotency-Key") != "x:d#1.1" {
					t.Errorf("call: %v, %v", err, r.Header)
				}
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{"kind":"task","id":"rpc","contextId":"c","status":{"state":"completed"}}}`, call.ID)
			default:
				fmt.Fprint(w, `{"id":"form","status":"completed"}`)
			}
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	rpc, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: serve(true), NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	form, err := delegate.NewA2AHTTP(delegate.A2AConfig{BaseURL: serve(false), NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	agents := &delegate.A2AAgents{Agents: map[string]activities.Executor{"rpc": rpc, "form": form}}
	composite := activities.Composite{A2A: agents}
	tasksOf := func(id string) activities.Tasks { return capabilities(composite, "a2a", id).Tasks }
	for range 2 {
		for _, id := range []string{"rpc", " form "} {
			task, err := tasksOf(id).Send(t.Context(), taskFor(id))
			if err != nil || task.ID != strings.TrimSpace(id) || task.State != activities.TaskCompleted {
				t.Errorf("%s: %+v, %v", id, task, err)
			}
		}
	}
	if n := cards.Load(); n != 1 {
		t.Errorf("%d requests for cards", n)
	}
	_, err = composite.Execute(t.Context(), taskFor("nobody"))
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != string(problem.DelegateAgentNotFound) || tasksOf("nobody") != nil {
		t.Errorf("nobody: %v", err)
	}
	none := activities.Composite{SDK: &delegate.SDK{}}
	_, err = none.Execute(t.Context(), taskFor("x"))
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != string(problem.DelegateProtocolUnsupported) || capabilities(none, "a2a", "x").Tasks != nil {
		t.Errorf("without executor: %v", err)
	}
}

// TestAnotherTransport: an agent of the other form is refused with the setting to change, and an agent that is away for a moment may be
// asked again.
func TestAnotherTransport(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	serve := func(answers ...string) delegate.A2AConfig {
		mux := http.NewServeMux()
		for i := 0; i < len(answers); i += 2 {
			mux.HandleFunc(answers[i], func(w http.ResponseWriter, r *http.Request) {
				var call struct{ ID string }
				_ = json.NewDecoder(r.Body).Decode(&call)
				fmt.Fprint(w, strings.ReplaceAll(answers[i+1], "ID", call.ID))
			})
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if away.Load() {
				http.NotFound(w, r)
				return
			}
			mux.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		return delegate.A2AConfig{BaseURL: server.URL, NoAuth: true}
	}
	rpcOf := func(c delegate.A2AConfig) activities.Tasks {
		a, err := delegate.NewA2A(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	formOf := func(c delegate.A2AConfig) activities.Tasks {
		a, err := delegate.NewA2AHTTP(c)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	const rpcAnswer = `{"jsonrpc":"2.0","id":"ID","result":{"kind":"task","id":"t","status":{"state":"working"}}}`
	for name, tt := range map[string]struct {
		agent     activities.Tasks
		want      string
		retryable activities.Retryable
	}{
		"no JSON-RPC here":        {rpcOf(serve("POST /tasks", `{"id":"t","status":"working"}`)), `set its transport to "http-tasks"`, activities.RetrySensible},
		"every address is a task": {rpcOf(serve("POST /", `{"id":"t","status":"working"}`)), `set its transport to "http-tasks"`, activities.RetryUnknown},
		"no task form here":       {formOf(serve("POST /{$}", rpcAnswer)), `set its transport to "jsonrpc"`, activities.RetrySensible},
	} {
		_, err := tt.agent.Send(t.Context(), taskFor("coder"))
		failure, ok := errors.AsType[*activities.Failure](err)
		if !ok || failure.Code != string(problem.A2AProviderError) || !strings.Contains(err.Error(), tt.want) || failure.Retryable != tt.retryable {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A gateway answers 404 while an agent starts. The card is read when the agent is there.
	agent := rpcOf(serve("/.well-known/agent-card.json", `{"url":"/rpc"}`, "POST /rpc", rpcAnswer))
	away.Store(true)
	_, err := agent.Send(t.Context(), taskFor("coder"))
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Retryable != activities.RetrySensible {
		t.Errorf("while the agent is away: %v", err)
	}
	away.Store(false)
	if task, err := agent.Send(t.Context(), taskFor("coder")); err != nil || task.ID != "t" {
		t.Errorf("%+v, %v", task, err)
	}
}

// FuzzA2AAnswers: whatever an agent answers, it is a task or a failure with a code.
func FuzzA2AAnswers(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":"x:d#1.1","result":{"id":"t","contextId":"c","status":{"state":"working"}}}`,
		`{"jsonrpc":"2.0","id":"x:d#1.1","result":{"id":"t","status":{"state":"completed"},"artifacts":[{"parts":[{"kind":"data","data":{"a":1}},{"kind":"text","text":"x"},{"kind":"file","file":{"uri":"u"}}]}]}}`,
		`{"jsonrpc":"2.0","id":"x:d#1.1","result":{"id":"t","status":{"state":"input-required","message":{"parts":[{"kind":"text","text":"?"}]}}}}`,
		`{"jsonrpc":"2.0","id":"x:d#1.1","result":{"kind":"message","parts":[]}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"m","data":{"error":"e"}}}`,
		`{"jsonrpc":"2.0","error":7}`, `[]`, `{"jsonrpc":"2.0","id":"x:d#1.1","result":{"status":{"state":7,"message":[]},"artifacts":{}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: "http://agent.test", NoAuth: true, Client: &http.Client{Transport: answering(body)}})
		if err != nil {
			t.Fatal(err)
		}
		task, err := a.Send(context.Background(), taskFor("coder"))
		failure, coded := errors.AsType[*activities.Failure](err)
		switch {
		case err != nil && (!coded || failure.Code == ""):
			t.Errorf("%v has no code", err)
		case err == nil && task.ID == "":
			t.Errorf("a task without id: %+v", task)
		}
	})
}

// answering answers every POST with one body, and has no card.
type answering []byte

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Method == http.MethodPost {
		_, _ = w.Write(a)
	} else {
		w.WriteHeader(http.StatusNotFound)
	}
	return w.Result(), nil
}

// TestAnotherTasksAnswer: what an agent says of another task is not this task's outcome.
func TestAnotherTasksAnswer(t *testing.T) {
	t.Parallel()
	ids := make(chan string, 3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct{ ID string }
		if r.Method == http.MethodGet || json.NewDecoder(r.Body).Decode(&call) != nil {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{"kind":"task","id":%q,"status":{"state":"completed"}}}`, call.ID, <-ids)
	}))
	defer server.Close()
	a, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: server.URL, NoAuth: true})
	if err != nil {
		t.Fatal(err)
	}
	ids <- "t1"
	if task, err := a.Poll(t.Context(), taskFor("coder"), activities.TaskRef{ID: "t1"}); err != nil || task.State != activities.TaskCompleted {
		t.Errorf("%+v, %v", task, err)
	}
	ids <- " t1 "
	if _, err := a.Poll(t.Context(), taskFor("coder"), activities.TaskRef{ID: " t1 "}); err != nil {
		t.Errorf("an id with spaces: %v", err)
	}
	ids <- "t2"
	_, err = a.Poll(t.Context(), taskFor("coder"), activities.TaskRef{ID: "t1"})
	if failure, ok := errors.AsType[*activities.Failure](err); !ok || failure.Code != string(problem.A2AProviderError) || !strings.Contains(err.Error(), `"t2"`) {
		t.Errorf("got %v", err)
	}
}

// TestRefusals say what to do, and hold the key in no spelling.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const key = `sentinel/0123456789"<`
	for status, want := range map[int]string{
		http.StatusUnauthorized: "the key is refused", http.StatusFound: "redirects are not followed", http.StatusTeapot: "418 I'm a teapot: [REDACTED]",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			if status == http.StatusTeapot {
				encoded, _ := json.Marshal(key)
				fmt.Fprintf(w, `%s %s`, strings.Trim(string(encoded), `"`), strings.ReplaceAll(key, "/", `\/`))
			}
		}))
		t.Cleanup(server.Close)
		a, err := delegate.NewA2AHTTP(delegate.A2AConfig{BaseURL: server.URL, APIKey: func(context.Context) (string, error) { return key, nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.Send(t.Context(), taskFor("coder"))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sentinel") || strings.HasSuffix(err.Error(), ": ") {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// rpcAgent speaks the A2A protocol at the address that its card names. It answers each call with the next of its states,
// the last one again and again; "" is a server that is busy.
func rpcAgent(t *testing.T, card string, states ...string) string {
	t.Helper()
	var calls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/agent-card.json", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.ReplaceAll(card, "HOST", r.Host))
	})
	mux.HandleFunc("POST /a2a/", func(w http.ResponseWriter, r *http.Request) { // the mux redirects from /a2a
		var call struct{ ID string }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
		}
		state := states[min(int(calls.Add(1)), len(states))-1]
		if state == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%q,"result":{"kind":"task","id":"t","status":{"state":%q}}}`, call.ID, state)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// TestCardAddresses: what a card names is taken as it stands, a slash at its end included.
func TestCardAddresses(t *testing.T) {
	t.Parallel()
	for _, card := range []string{`{"url":"/a2a/"}`, `{"url":"http://HOST/a2a/"}`} {
		a, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: rpcAgent(t, card, "working"), NoAuth: true})
		if err != nil {
			t.Fatal(err)
		}
		if task, err := a.Send(t.Context(), taskFor("coder")); err != nil || task.ID != "t" {
			t.Errorf("%s: %+v, %v", card, task, err)
		}
	}
	// The port of a scheme need not be written out.
	a, err := delegate.NewA2A(delegate.A2AConfig{BaseURL: "http://agent.test", NoAuth: true, Client: &http.Client{Transport: cardThen{
		`{"url":"http://agent.test:80/rpc"}`, `{"jsonrpc":"2.0","id":"x:d#1.1","result":{"id":"t","status":{"state":"working"}}}`,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if task, err := a.Send(t.Context(), taskFor("coder")); err != nil || task.ID != "t" {
		t.Errorf("%+v, %v", task, err)
	}
}

// cardThen answers a GET with a card, and a POST with another text.
type cardThen struct{ card, answer string }

func (c cardThen) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteString(map[string]string{http.MethodGet: c.card, http.MethodPost: c.answer}[r.Method])
	return w.Result(), nil
}

// TestDelegateInOneCall: an embedder may call Delegate, which holds the limits that the engine's own steps hold.
func TestDelegateInOneCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		states []string
		want   string
	}{
		{"busy twice in a row, and again", []string{"submitted", "", "", "working", "", "completed"}, ""},
		{"busy for long", []string{"submitted", "", "", ""}, "503"},
		{"too slow", []string{"submitted", "working"}, "did not end within 5s"},
	} {
		a, err := delegate.NewA2A(delegate.A2AConfig{
			BaseURL: rpcAgent(t, `{"url":"/a2a/"}`, c.states...), NoAuth: true, PollInterval: time.Second, MaxPollInterval: time.Second,
			PollTimeout: 5 * time.Second, Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := a.Execute(ctx, taskFor("coder"))
		stop()
		if c.want == "" && (err != nil || got.ExternalTaskID != "t") || c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}
