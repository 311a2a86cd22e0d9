// Package a2atest tests delegates of protocol a2a against an agent that is served by the official A2A SDK.
package a2atest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/a2a"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestResults(t *testing.T) {
	t.Parallel()
	for do, want_ := range map[string]string{
		"complete": `{"files":[{"name":"f","uri":"https://files.example/f"}],"n":2,"patch":"p","text":"one\ntwo"}`,
		"stream":   `{"text":"hello"}`,
		"message":  `{"text":"hi","x":1}`,
	} {
		t.Run(do, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			b := newBench(t, a)
			run := b.start("r", linear(t, do))
			want(t, run, machine.Completed)
			if got := encode(run.FinalState); got != want_ {
				t.Errorf("output %s, want %s", got, want_)
			}
			m := a.got()[0]
			if m.ID != "r:d#1.1" || m.Metadata["correlationId"] != "r:delegate:d" || m.Metadata["agentId"] != "coder" {
				t.Errorf("message %+v", m)
			}
			records, err := b.store.Read(t.Context(), "r", 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if r.Name == history.ActivityCompleted && (r.Payload.ExternalTask == "" || r.Payload.Correlation != "r:delegate:d") {
					t.Errorf("recorded %s", r.Raw)
				}
			}
		})
	}
}

func TestAnAgentThatAsks(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	run := b.start("r", linear(t, "ask"))
	want(t, run, machine.Interrupted)
	p := run.Pending[0]
	if p.Prompt != "Which file, Ada?" || p.ExternalTaskID == "" || p.ID != "r:d#1.1/1" {
		t.Errorf("pending %+v", p)
	}
	for _, err := range []error{b.resume("r", "", nil), b.resume("r", p.ID+"1", map[string]any{"text": "x"})} {
		if !errors.Is(err, problem.InvalidResumePayload) {
			t.Errorf("a wrong answer: %v", err)
		}
	}
	if err := b.resume("r", p.ID, map[string]any{"text": "go.mod", "line": 3}); err != nil {
		t.Fatal(err)
	}
	run = b.ended("r")
	want(t, run, machine.Completed)
	if got := encode(run.FinalState); got != `{"answer":{"line":3,"text":"go.mod"},"said":"go.mod"}` {
		t.Errorf("output %s", got)
	}
	if m := a.got(); len(m) != 2 || m[1].TaskID != a2a.TaskID(p.ExternalTaskID) || m[1].ContextID == "" || m[1].ID != "r:d#1.1/1" {
		t.Errorf("%d messages, the last %+v", len(m), m[len(m)-1])
	}
}

func TestAnAgentThatWantsALogin(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	run := b.start("r", linear(t, "auth"))
	want(t, run, machine.Interrupted)
	if p := run.Pending[0].Prompt; !strings.Contains(p, "log in") || !strings.Contains(p, "https://login.example") {
		t.Errorf("prompt %q", p)
	}
	if err := b.resume("r", "", map[string]any{"text": "done"}); err != nil {
		t.Fatal(err)
	}
	// This agent goes on by itself and takes no message meanwhile: the run is not harmed, and asks again.
	run = b.until("r", func(run *view.Run) bool { return run.Status == machine.Interrupted })
	if p := run.Pending[0]; p.ID != "r:d#1.1/2" {
		t.Errorf("pending %+v", p)
	}
	close(a.release)
	want(t, b.ended("r"), machine.Completed)
}

// TestReattachment drops the process while the agent works: no second task is sent.
func TestReattachment(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	task := b.begin("r", linear(t, "wait"))
	b.restart()
	run := b.until("r", func(run *view.Run) bool { return a.count("tasks/get") > 5 })
	want(t, run, machine.Running)
	if run.Pending[0].ExternalTaskID != task {
		t.Errorf("the run waits for %s, not %s", run.Pending[0].ExternalTaskID, task)
	}
	close(a.release)
	want(t, b.ended("r"), machine.Completed)
	if n := len(a.got()); n != 1 {
		t.Errorf("%d messages", n)
	}
}

func TestCancelReachesTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		def  func(t *testing.T) *definition.Document
		stop func(b *bench)
	}{
		"cancel": {
			func(t *testing.T) *definition.Document { return linear(t, "wait") },
			func(b *bench) {
				if _, err := b.Cancel(b.t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
					b.t.Error(err)
				}
			},
		},
		"cancel while it asks": {
			func(t *testing.T) *definition.Document { return linear(t, "ask") },
			func(b *bench) {
				if _, err := b.Cancel(b.t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
					b.t.Error(err)
				}
			},
		},
		"timeout": {func(t *testing.T) *definition.Document { return linear(t, "wait", `"timeout":"300ms"`) }, func(*bench) {}},
		"join any": {
			func(t *testing.T) *definition.Document {
				return define(t, `{"id":"p","type":"parallel","config":{"join":"any","branches":[{"name":"a","entry":"d"},{"name":"b","entry":"w"}]}},`+
					node("d", "wait")+`,{"id":"w","type":"wait","config":{"kind":"signal","signal":"go"}}`,
					`{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"d","target":"e"},{"source":"w","target":"e"}`)
			},
			func(b *bench) {
				if _, err := b.Signal(b.t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
					b.t.Error(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			b := newBench(t, a)
			task := b.begin("r", c.def(t))
			c.stop(b)
			b.ended("r")
			b.until("r", func(*view.Run) bool {
				return a.count("tasks/cancel") > 0 && strings.Contains(b.log.String(), "task at agent cancelled")
			})
			if name == "cancel while it asks" {
				return // the SDK may still be busy with the question, and then refuses
			}
			b.until("r", func(*view.Run) bool { return len(a.ended()) > 0 })
			if got := a.ended(); len(got) != 1 || got[0] != a2a.TaskID(task) {
				t.Errorf("cancelled %v, want %s", got, task)
			}
		})
	}
}

func TestBranchesWorkAtOnce(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	d := define(t, `{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"a","entry":"d"},{"name":"b","entry":"f"}]}},`+
		node("d", "wait")+","+node("f", "ask"),
		`{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"d","target":"e"},{"source":"f","target":"e"}`)
	b.begin("r", d)
	run := b.until("r", func(run *view.Run) bool { return run.Status == machine.Interrupted })
	p := run.Pending[1]
	if p.Kind != machine.WaitInterrupt || p.Span == nil || run.Pending[0].Kind != machine.WaitDelegate {
		t.Fatalf("pending %+v", run.Pending)
	}
	if err := b.resume("r", p.ID, map[string]any{"text": "x"}); err != nil {
		t.Fatal(err)
	}
	close(a.release)
	run = b.ended("r")
	want(t, run, machine.Completed)
	if run.FinalState["waited"] != true || run.FinalState["said"] != "x" {
		t.Errorf("state %v", run.FinalState)
	}
}

// TestFailures has each class of failure with its code, and what is left afterwards.
func TestFailures(t *testing.T) {
	t.Parallel()
	on := func(method string, f func(w http.ResponseWriter, r *http.Request)) func(http.ResponseWriter, *http.Request, string) bool {
		return func(w http.ResponseWriter, r *http.Request, m string) bool {
			if m == method {
				f(w, r)
			}
			return m == method
		}
	}
	write := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"jsonrpc":"2.0",`)
	}
	die := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	hang := func(_ http.ResponseWriter, r *http.Request) {
		// Only a body that was read lets the server notice that the caller has gone.
		buf := make([]byte, 1<<16)
		_, _ = r.Body.Read(buf)
		<-r.Context().Done()
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":"r:d#1.1","result":{"text":"`)
		block := []byte(strings.Repeat("x", 1<<20))
		for range 20 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
		t.Error("20 MB were read")
	}
	for name, c := range map[string]struct {
		do       string
		tune     func(*delegate.A2AConfig)
		sabotage func(http.ResponseWriter, *http.Request, string) bool
		// after, if set, happens once the agent has the task.
		after func(a *agent)
		code  problem.Code
		text  string
	}{
		"failed":   {do: "fail", code: problem.A2ATaskFailed, text: "the tests do not pass"},
		"rejected": {do: "reject", code: problem.A2ATaskFailed, text: "rejected by the agent: not my job"},
		"canceled": {do: "cancel", code: problem.A2ATaskFailed, text: "canceled by the agent"},
		"broken":   {do: "break", code: problem.A2AProviderError, text: "-32603"},
		"refused key": {
			do: "complete", code: problem.A2AProviderError, text: "401",
			tune: func(c *delegate.A2AConfig) {
				c.APIKey = func(context.Context) (string, error) { return "another", nil }
			},
		},
		"no key": {
			do: "complete", code: problem.A2ACredentialsMissing, text: "cannot be read",
			tune: func(c *delegate.A2AConfig) {
				c.APIKey = func(context.Context) (string, error) { return "", errors.New("env:KEY is unset") }
			},
		},
		"500":                   {do: "complete", sabotage: on("message/send", write(500, "oops "+key)), code: problem.A2AProviderError, text: "500"},
		"half a body":           {do: "complete", sabotage: on("message/send", half), code: problem.A2AProviderError, text: "unexpected EOF"},
		"invalid JSON":          {do: "complete", sabotage: on("message/send", write(200, "<html>"+key)), code: problem.A2AProviderError, text: "not JSON"},
		"no JSON-RPC":           {do: "complete", sabotage: on("message/send", write(200, "{}")), code: problem.A2AProviderError, text: "not a JSON-RPC"},
		"another answer":        {do: "complete", sabotage: on("message/send", write(200, `{"jsonrpc":"2.0","id":"x","result":{}}`)), code: problem.A2AProviderError, text: "another request"},
		"neither task":          {do: "complete", sabotage: on("message/send", write(200, `{"jsonrpc":"2.0","id":"r:d#1.1","result":{}}`)), code: problem.A2AProviderError, text: "neither"},
		"unknown state":         {do: "complete", sabotage: on("message/send", write(200, `{"jsonrpc":"2.0","id":"r:d#1.1","result":{"id":"t","status":{"state":"dozing"}}}`)), code: problem.A2AProviderError, text: "dozing"},
		"dies":                  {do: "complete", sabotage: on("message/send", die), code: problem.A2AProviderError, text: "cannot be reached"},
		"20 MB":                 {do: "complete", sabotage: on("message/send", huge), code: problem.A2AProviderError, text: "larger than"},
		"never answers":         {do: "complete", tune: func(c *delegate.A2AConfig) { c.RequestTimeout = 100 * time.Millisecond }, sabotage: on("message/send", hang), code: problem.A2AProviderError, text: "cannot be reached"},
		"redirect":              {do: "complete", sabotage: on("message/send", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", 307) }), code: problem.A2AProviderError, text: "307"},
		"vanishes":              {do: "wait", after: func(a *agent) { a.server.CloseClientConnections(); a.server.Listener.Close() }, code: problem.A2AProviderError, text: "cannot be reached"},
		"dies later":            {do: "wait", after: func(a *agent) { a.spoil(on("tasks/get", die)) }, code: problem.A2AProviderError, text: "cannot be reached"},
		"500 later":             {do: "wait", after: func(a *agent) { a.spoil(on("tasks/get", write(500, "oops"))) }, code: problem.A2AProviderError, text: "500"},
		"refuses the key later": {do: "wait", after: func(a *agent) { a.spoil(on("tasks/get", write(403, "no"))) }, code: problem.A2AProviderError, text: "403"},
		"invalid JSON later":    {do: "wait", after: func(a *agent) { a.spoil(on("tasks/get", write(200, "}"))) }, code: problem.A2AProviderError, text: "not JSON"},
		"20 MB later":           {do: "wait", after: func(a *agent) { a.spoil(on("tasks/get", huge)) }, code: problem.A2AProviderError, text: "larger than"},
		"forgets the task":      {do: "wait", after: func(a *agent) { a.forget() }, code: problem.A2ATaskFailed, text: "no longer knows the task"},
		"takes too long":        {do: "wait", tune: func(c *delegate.A2AConfig) { c.PollTimeout = 50 * time.Millisecond }, code: problem.A2AProviderError, text: "did not end within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			tune := c.tune
			if tune == nil {
				tune = func(*delegate.A2AConfig) {}
			}
			a.spoil(c.sabotage)
			b := newBench(t, a, tune)
			def := linear(t, c.do)
			if c.after != nil {
				b.begin("r", def)
				c.after(a)
			} else {
				b.start("r", def)
			}
			run := b.ended("r")
			want(t, run, machine.Failed)
			if run.ErrorCode != string(c.code) || !strings.Contains(run.Error, c.text) || strings.Contains(run.Error, key) {
				t.Errorf("%s %q, want %s and %q", run.ErrorCode, run.Error, c.code, c.text)
			}
			exec, err := b.store.Execution(t.Context(), "r")
			if err != nil || exec.Phase != history.PhaseFailed || len(exec.Waits) > 0 {
				t.Errorf("%+v, %v", exec, err)
			}
			if timers, err := b.store.DueTimers(t.Context(), time.Now().Add(time.Hour), 0); err != nil || len(timers) > 0 {
				t.Errorf("timers are left: %v, %v", timers, err)
			}
			close(a.release)
		})
	}
}

// TestPassingTroubleIsNoFailure has an agent that is away for a while.
func TestPassingTroubleIsNoFailure(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	b.begin("r", linear(t, "wait"))
	n := 0
	a.spoil(func(w http.ResponseWriter, _ *http.Request, method string) bool {
		if n++; method == "tasks/get" && n <= 3 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return true
		}
		return false
	})
	b.until("r", func(*view.Run) bool { return a.count("tasks/get") > 8 })
	close(a.release)
	want(t, b.ended("r"), machine.Completed)
}

// TestAnAgentThatIsAwayForAMoment shows no card at first, and none after the process was started anew: neither makes it an
// agent of another form.
func TestAnAgentThatIsAwayForAMoment(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	var cards, away atomic.Int64
	var gone atomic.Bool // since the last request for the card
	a.spoil(func(w http.ResponseWriter, r *http.Request, _ string) bool {
		if r.Method == http.MethodGet {
			cards.Add(1)
			gone.Store(away.Add(-1) >= 0)
		}
		if gone.Load() {
			http.NotFound(w, r)
		}
		return gone.Load()
	})
	away.Store(4) // two attempts look at two places for a card
	task := b.begin("r", linear(t, "wait", `"retry":{"max_attempts":3,"initial_interval":"5ms"}`))
	if m := a.got(); len(m) != 1 || m[0].ID != "r:d#1.3" {
		t.Errorf("messages %+v", m)
	}
	b.restart(func(*delegate.A2AConfig) { // once the first process asks no more
		away.Store(4)
		cards.Store(0)
	})
	b.until("r", func(*view.Run) bool { return a.count("tasks/get") > 5 })
	if cards.Load() != 5 {
		t.Errorf("%d looks for a card, want 5", cards.Load())
	}
	close(a.release)
	run := b.ended("r")
	want(t, run, machine.Completed)
	if n := len(a.got()); n != 1 || task == "" {
		t.Errorf("%d messages for task %q", n, task)
	}
}

// TestRetries sends a task of its own for each attempt.
func TestRetries(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	b := newBench(t, a)
	run := b.start("r", linear(t, "break", `"retry":{"max_attempts":3,"initial_interval":"5ms"}`))
	want(t, run, machine.Failed)
	m := a.got()
	if len(m) != 3 || m[0].ID != "r:d#1.1" || m[2].ID != "r:d#1.3" || m[0].TaskID != "" {
		t.Errorf("%d messages, %+v", len(m), m[len(m)-1])
	}
}

func TestCards(t *testing.T) {
	t.Parallel()
	t.Run("older place", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t)
		a.cardPath = "/.well-known/agent.json"
		want(t, newBench(t, a).start("r", linear(t, "complete")), machine.Completed)
	})
	t.Run("another interface", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t)
		a.card = func(url string) *a2a.AgentCard {
			return &a2a.AgentCard{
				Name: "coder", URL: url + "/grpc", PreferredTransport: a2a.TransportProtocolGRPC, ProtocolVersion: "0.3.0",
				AdditionalInterfaces: []a2a.AgentInterface{{Transport: a2a.TransportProtocolJSONRPC, URL: "/rpc"}},
			}
		}
		want(t, newBench(t, a).start("r", linear(t, "complete")), machine.Completed)
	})
	t.Run("no JSON-RPC", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t)
		a.card = func(url string) *a2a.AgentCard {
			return &a2a.AgentCard{Name: "coder", URL: url, PreferredTransport: a2a.TransportProtocolGRPC}
		}
		run := newBench(t, a).start("r", linear(t, "complete"))
		want(t, run, machine.Failed)
		if run.ErrorCode != string(problem.A2AProviderError) || !strings.Contains(run.Error, "JSON-RPC address") {
			t.Errorf("%s %s", run.ErrorCode, run.Error)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		t.Parallel()
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("a request to another host with %q", r.Header.Get("Authorization"))
		}))
		defer thief.Close()
		a := newAgent(t)
		a.card = func(string) *a2a.AgentCard { return &a2a.AgentCard{Name: "coder", URL: thief.URL} }
		run := newBench(t, a).start("r", linear(t, "complete"))
		want(t, run, machine.Failed)
		if run.ErrorCode != string(problem.A2AConfigInvalid) || !strings.Contains(run.Error, "no other host") {
			t.Errorf("%s %s", run.ErrorCode, run.Error)
		}
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		a := newAgent(t)
		a.cardPath = "/nowhere"
		remote, err := delegate.NewA2A(a2aConfig(a.url + "/rpc"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := remote.Execute(t.Context(), activities.Request{
			Protocol: "a2a", AgentID: "coder", NodeID: "d", Input: map[string]any{"do": "complete"}, IdempotencyKey: "k", CorrelationID: "c",
		})
		if err != nil || res.ExternalTaskID == "" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}
