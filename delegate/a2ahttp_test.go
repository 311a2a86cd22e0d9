package delegate_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// answer is one scripted answer of an agent.
type answer struct {
	status int // 0 means 200
	body   string
	header http.Header
}

// agent plays an agent: it takes its answers one after another, the last one again and again, and keeps what arrived.
type agent struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []answer
	requests []arrived
}

type arrived struct {
	method, uri string
	header      http.Header
	body        string
}

func newAgent(t *testing.T, answers ...answer) *agent {
	t.Helper()
	a := &agent{answers: answers}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.requests = append(a.requests, arrived{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
	next := a.answers[0]
	if len(a.answers) > 1 {
		a.answers = a.answers[1:]
	}
	a.mu.Unlock()
	maps.Copy(w.Header(), next.header)
	if next.status != 0 {
		w.WriteHeader(next.status)
	}
	io.WriteString(w, next.body)
}

func (a *agent) seen() []arrived {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]arrived(nil), a.requests...)
}

// noWait is a Wait that lets no time pass and counts how often it was asked to.
func noWait(waits *int) func(context.Context, time.Duration) error {
	return func(ctx context.Context, _ time.Duration) error {
		*waits++
		return ctx.Err()
	}
}

func key(k string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return k, nil }
}

func newExecutor(t *testing.T, c delegate.A2AConfig) *delegate.A2AHTTP {
	t.Helper()
	if c.APIKey == nil {
		c.APIKey = key("sk-test")
	}
	e, err := delegate.NewA2AHTTP(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func request() activities.Request {
	return activities.Request{
		ExecutionID: "ex:1", NodeID: "n 1", AgentID: " coder ", Protocol: "a2a",
		Input:         map[string]any{"task": "t"},
		CorrelationID: "ex:1:delegate:n 1", IdempotencyKey: "ex:1:n 1#1.1", Visit: 1, Attempt: 1,
	}
}

func wantFailure(t *testing.T, err error, code string) *activities.Failure {
	t.Helper()
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure with code %s", err, code)
	}
	if failure.Code != code {
		t.Fatalf("code %s (%v), want %s", failure.Code, failure, code)
	}
	return failure
}

func TestA2AHTTPWire(t *testing.T) {
	t.Parallel()
	a := newAgent(t,
		answer{status: 202, body: `{"id":" t/1 ü ","status":"submitted"}`},
		answer{body: `{"id":"another","status":" working "}`},
		answer{body: `{"id":"t/1 ü","status":"completed","output":{"patch":"P"}}`})
	var waits int
	var beats []map[string]any
	req := request()
	req.Heartbeat = func(details map[string]any) { beats = append(beats, details) }

	got, err := newExecutor(t, delegate.A2AConfig{BaseURL: " " + a.URL + "/ ", Wait: noWait(&waits)}).Execute(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if out, _ := got.Output.(map[string]any); out["patch"] != "P" || got.ExternalTaskID != "t/1 ü" {
		t.Errorf("result %+v", got)
	}
	if waits != 1 {
		t.Errorf("waited %d times, want once: the first poll comes at once", waits)
	}
	seen := a.seen()
	if len(seen) != 3 {
		t.Fatalf("%d requests, want a submit and two polls", len(seen))
	}
	submit := seen[0]
	if submit.method != "POST" || submit.uri != "/tasks" {
		t.Errorf("submitted with %s %s", submit.method, submit.uri)
	}
	if want := `{"agent_id":"coder","correlation_id":"ex:1:delegate:n 1","input":{"task":"t"}}`; submit.body != want {
		t.Errorf("body %s, want %s", submit.body, want)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-test", "Content-Type": "application/json", "Idempotency-Key": "ex:1:n 1#1.1",
	} {
		if got := submit.header.Get(name); got != want {
			t.Errorf("submit has %s %q, want %q", name, got, want)
		}
	}
	for _, poll := range seen[1:] {
		if poll.method != "GET" || poll.uri != "/tasks/t%2F1%20%C3%BC" || poll.header.Get("Authorization") != "Bearer sk-test" {
			t.Errorf("polled with %s %s %v", poll.method, poll.uri, poll.header)
		}
	}
	if len(beats) == 0 || beats[0]["externalTaskId"] != "t/1 ü" {
		t.Errorf("heartbeats %v do not name the task", beats)
	}
}

func TestA2AHTTPAnswers(t *testing.T) {
	t.Parallel()
	submitted := answer{body: `{"id":"t1","status":"submitted"}`}
	busy := answer{status: 503, body: "busy"}
	for _, c := range []struct {
		name     string
		answers  []answer
		output   string // JSON; "" for a failure
		code     string
		contains string
		requests int
	}{
		{"done at once", []answer{{body: `{"id":"t1","status":"completed","output":{"a":1}}`}}, `{"a":1}`, "", "", 1},
		{"failed at once", []answer{{body: `{"id":"t1","status":"failed","error":"no such repo"}`}}, "", "A2A_TASK_FAILED", "no such repo", 1},
		{"failed without a reason", []answer{{body: `{"id":"t1","status":"failed","error":7}`}}, "", "A2A_TASK_FAILED", "without a reason", 1},
		{"input wanted at once, then done", []answer{{body: `{"id":"t1","status":"input-required"}`}, {body: `{"id":"t1","status":"completed"}`}}, `{"delegate_status":"completed"}`, "", "", 2},
		{"input wanted in a poll", []answer{submitted, {body: `{"id":"t1","status":"input-required"}`}}, "", "A2A_PROVIDER_ERROR", "host_mediated", 2},
		{"no output", []answer{submitted, {body: `{"id":"t1","status":"completed"}`}}, `{"delegate_status":"completed"}`, "", "", 2},
		{"an output that is no object", []answer{submitted, {body: `{"id":"t1","status":"completed","output":[1]}`}}, `{"delegate_status":"completed"}`, "", "", 2},
		{"failed later", []answer{submitted, {body: `{"id":"t1","status":"failed","error":"boom"}`}}, "", "A2A_TASK_FAILED", "boom", 2},
		{"unknown status", []answer{submitted, {body: `{"id":"t1","status":"canceled"}`}}, "", "A2A_PROVIDER_ERROR", "canceled", 2},
		{"status in capitals", []answer{{body: `{"id":"t1","status":"Completed"}`}}, "", "A2A_PROVIDER_ERROR", "Completed", 1},
		{"status object of the real protocol", []answer{{body: `{"id":"t1","status":{"state":"working"}}`}}, "", "A2A_PROVIDER_ERROR", "status", 1},
		{"no id", []answer{{body: `{"status":"completed"}`}}, "", "A2A_PROVIDER_ERROR", "task id", 1},
		{"blank id", []answer{{body: `{"id":"  ","status":"completed"}`}}, "", "A2A_PROVIDER_ERROR", "task id", 1},
		{"not an object", []answer{{body: `[]`}}, "", "A2A_PROVIDER_ERROR", "object", 1},
		{"not JSON", []answer{{body: `<html>`}}, "", "A2A_PROVIDER_ERROR", "JSON", 1},
		{"empty body", []answer{{body: ``}}, "", "A2A_PROVIDER_ERROR", "JSON", 1},
		{"submit refused", []answer{{status: 400, body: "bad agent"}}, "", "A2A_PROVIDER_ERROR", "bad agent", 1},
		{"submit busy", []answer{busy}, "", "A2A_PROVIDER_ERROR", "503", 1},
		{"redirect", []answer{{status: 302, header: http.Header{"Location": {"/elsewhere"}}}}, "", "A2A_PROVIDER_ERROR", "302", 1},
		{"a poll that fails once", []answer{submitted, busy, {body: `{"id":"t1","status":"completed"}`}}, `{"delegate_status":"completed"}`, "", "", 3},
		{"polls that keep failing", []answer{submitted, busy}, "", "A2A_PROVIDER_ERROR", "503", 4},
		{"a poll that is refused", []answer{submitted, {status: 404, body: "gone"}}, "", "A2A_PROVIDER_ERROR", "gone", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, c.answers...)
			var waits int
			config := delegate.A2AConfig{BaseURL: a.URL, Wait: noWait(&waits)}
			if c.name != "redirect" { // which is the default client's; its connections end with the server of any other test
				config.Client = a.Client()
			}
			got, err := newExecutor(t, config).Execute(t.Context(), request())
			if n := len(a.seen()); n != c.requests {
				t.Errorf("%d requests, want %d", n, c.requests)
			}
			if c.output == "" {
				if failure := wantFailure(t, err, c.code); !strings.Contains(failure.Error(), c.contains) {
					t.Errorf("message %q does not contain %q", failure, c.contains)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, _ := json.Marshal(got.Output); string(out) != c.output || got.ExternalTaskID != "t1" {
				t.Errorf("output %s of task %q, want %s of t1", out, got.ExternalTaskID, c.output)
			}
		})
	}
}

func TestA2AHTTPRetryAdvice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		after  string
		want   activities.Retryable
		wait   time.Duration
	}{
		{400, "", activities.RetryPointless, 0},
		{401, "7", activities.RetryPointless, 0},
		{408, "", activities.RetrySensible, 0},
		{429, "7", activities.RetrySensible, 7 * time.Second},
		{500, "soon", activities.RetrySensible, 0},
		{503, "99999999999", activities.RetrySensible, 0},
		{503, "100000", activities.RetrySensible, time.Hour},
		{503, "Fri, 01 Jan 2100 00:00:00 GMT", activities.RetrySensible, time.Hour},
		{429, "Fri, 01 Jan 2010 00:00:00 GMT", activities.RetrySensible, 0},
	} {
		a := newAgent(t, answer{status: c.status, header: http.Header{"Retry-After": {c.after}}})
		// Servers of other tests that end close the idle connections of the shared transport.
		own := &http.Client{Transport: &http.Transport{}}
		_, err := newExecutor(t, delegate.A2AConfig{BaseURL: a.URL, Client: own}).Execute(t.Context(), request())
		own.CloseIdleConnections()
		failure := wantFailure(t, err, "A2A_PROVIDER_ERROR")
		if c.after == "99999999999" {
			c.wait = time.Hour
		}
		if failure.Retryable != c.want || failure.RetryAfter != c.wait {
			t.Errorf("%d with Retry-After %q: retryable %d after %v, want %d after %v: %v", c.status, c.after, failure.Retryable, failure.RetryAfter, c.want, c.wait, err)
		}
	}
}

func TestA2AHTTPChecksInOrder(t *testing.T) {
	t.Parallel()
	a := newAgent(t, answer{body: `{"id":"t1","status":"completed"}`})
	noKey := func(context.Context) (string, error) { return "", errors.New("variable X is not set") }
	for _, c := range []struct {
		name string
		key  func(context.Context) (string, error)
		edit func(*activities.Request)
		code string
	}{
		{"protocol before key", noKey, func(r *activities.Request) { r.Protocol = "mcp" }, "DELEGATE_PROTOCOL_UNSUPPORTED"},
		{"key before agent", noKey, func(r *activities.Request) { r.AgentID = " " }, "A2A_CREDENTIALS_MISSING"},
		{"blank key", key(" \n"), func(*activities.Request) {}, "A2A_CREDENTIALS_MISSING"},
		{"a key with a line end inside", key("a\nb"), func(*activities.Request) {}, "A2A_CREDENTIALS_MISSING"},
		{"agent", key("k"), func(r *activities.Request) { r.AgentID = " " }, "A2A_CONFIG_INVALID"},
	} {
		req := request()
		c.edit(&req)
		_, err := newExecutor(t, delegate.A2AConfig{BaseURL: a.URL, APIKey: c.key}).Execute(t.Context(), req)
		wantFailure(t, err, c.code)
	}
	if n := len(a.seen()); n != 0 {
		t.Errorf("%d requests went out for delegations that were refused", n)
	}
}

func TestA2AHTTPConfigRefused(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", " ", "agents.example", "ftp://agents.example", "http://", "https://agents.example/?x=1", "https://agents.example/#a", "http://[::1"} {
		if _, err := delegate.NewA2AHTTP(delegate.A2AConfig{BaseURL: base, APIKey: key("k")}); err == nil {
			t.Errorf("baseUrl %q was accepted", base)
		}
	}
	if _, err := delegate.NewA2AHTTP(delegate.A2AConfig{BaseURL: "https://agents.example"}); err == nil {
		t.Error("a configuration without key was accepted")
	}
}

func TestA2AHTTPKeyIsNotQuoted(t *testing.T) {
	t.Parallel()
	a := newAgent(t, answer{status: 401, body: "unknown key sk-secret-1 in header"})
	_, err := newExecutor(t, delegate.A2AConfig{BaseURL: a.URL, APIKey: key("sk-secret-1")}).Execute(t.Context(), request())
	if failure := wantFailure(t, err, "A2A_PROVIDER_ERROR"); strings.Contains(failure.Error(), "sk-secret-1") {
		t.Errorf("the key is in the text: %v", failure)
	}
}

func TestA2AHTTPAnswerSizeIsBounded(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 500} {
		a := newAgent(t, answer{status: status, body: `{"id":"t1","status":"completed","output":{"x":"` + strings.Repeat("a", 4096) + `"}}`})
		_, err := newExecutor(t, delegate.A2AConfig{BaseURL: a.URL, MaxAnswerBytes: 1024}).Execute(t.Context(), request())
		if failure := wantFailure(t, err, "A2A_PROVIDER_ERROR"); len(failure.Error()) > 700 {
			t.Errorf("a failure's text has %d bytes", len(failure.Error()))
		}
	}
}

func TestA2AHTTPPollTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := enginetest.Serve(t, &agent{answers: []answer{{body: `{"id":"t1","status":"submitted"}`}, {body: `{"id":"t1","status":"working"}`}}})
		c := delegate.A2AConfig{BaseURL: a.URL, Client: a.Client(), PollInterval: time.Hour, PollTimeout: 50 * time.Millisecond}
		begun := time.Now()
		_, err := newExecutor(t, c).Execute(t.Context(), request())
		if failure := wantFailure(t, err, "A2A_PROVIDER_ERROR"); !strings.Contains(failure.Error(), "working") {
			t.Errorf("message %q does not name the last status", failure)
		}
		if took := time.Since(begun); took != c.PollTimeout {
			t.Errorf("it ended after %s", took)
		}
	})
}

// A poll that never answers must not hold the run longer than the caller's context or the poll timeout.
func TestA2AHTTPHangingPoll(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Millisecond
	for name, test := range map[string]struct {
		tune func(*delegate.A2AConfig)
		// until ends a context once polling tells that the poll has arrived.
		until func(ctx context.Context, polling <-chan struct{}) (context.Context, context.CancelFunc)
		code  string
		is    error
		took  time.Duration
	}{
		"the poll timeout ends it": {tune: func(c *delegate.A2AConfig) { c.PollTimeout = limit }, code: "A2A_PROVIDER_ERROR", took: limit},
		"the deadline ends it": {code: "TIMEOUT", is: context.DeadlineExceeded, took: limit, until: func(ctx context.Context, _ <-chan struct{}) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, limit)
		}},
		"a cancel ends it": {code: "ACTIVITY_CANCELLED", until: func(ctx context.Context, polling <-chan struct{}) (context.Context, context.CancelFunc) {
			ctx, stop := context.WithCancel(ctx)
			go func() {
				<-polling
				stop()
			}()
			return ctx, stop
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				polling := make(chan struct{}, 8)
				server := enginetest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						io.WriteString(w, `{"id":"t1","status":"working"}`)
						return
					}
					polling <- struct{}{}
					<-r.Context().Done()
				}))
				c := delegate.A2AConfig{BaseURL: server.URL, Client: server.Client()}
				if test.tune != nil {
					test.tune(&c)
				}
				ctx := t.Context()
				if test.until != nil {
					var stop context.CancelFunc
					ctx, stop = test.until(ctx, polling)
					defer stop()
				}
				begun := time.Now()
				_, err := newExecutor(t, c).Execute(ctx, request())
				wantFailure(t, err, test.code)
				if test.is != nil && !errors.Is(err, test.is) {
					t.Errorf("%v does not wrap the context's error", err)
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("it ended after %s, want %s", took, test.took)
				}
			})
		})
	}
}

func TestA2AHTTPUnreachable(t *testing.T) {
	t.Parallel()
	a := newAgent(t, answer{})
	a.Close()
	_, err := newExecutor(t, delegate.A2AConfig{BaseURL: a.URL}).Execute(t.Context(), request())
	failure := wantFailure(t, err, "A2A_PROVIDER_ERROR")
	if failure.Err == nil || !strings.Contains(failure.Error(), "connect") {
		t.Errorf("message %q hides the cause", failure)
	}
}
