package llmcall_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/leaktest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// class is a kind of failure of a provider, with its effect on a run.
type class struct {
	name string
	// answers are the answers to the node under test, in order; the last one is repeated.
	answers []http.HandlerFunc
	config  llmcall.Config
	// node holds additional fields of the node, members additional fields of its config.
	node, members string
	// attempts are the outcomes of the node's attempts: "ok", or a code, with + if it was tried again.
	attempts string
	// says is a part of the last failure's message.
	says     string
	requests int
	// messages is the number of messages in each request; "" means any.
	messages string
	// slow classes run only on the main path.
	slow bool
	// fakeTime is for deadlines, which a request must reach: the class runs in a bubble, with a network in memory.
	fakeTime bool
	// outcomes checks the records of the outcomes.
	outcomes func(*testing.T, []history.Record)
}

const (
	tries = "retry: {max_attempts: 2, initial_interval: 1ms, backoff_coefficient: 1}"
	// patience is the timeout of calls that must succeed, on a busy machine and under the short limits of some classes.
	patience = "retry: {max_attempts: 10, initial_interval: 1ms, backoff_coefficient: 1}"
	wantsANr = "output_schema: {type: object, required: [n], properties: {n: {type: number}}}"
)

// classes lists every class of failure. Each runs through a Runner with a file, on the main path and in a branch.
func classes() []class {
	good := says(`{"n":7}`)
	return []class{
		{
			name: "refused key", node: tries, attempts: "LLM_PROVIDER_ERROR", says: "the key is refused", requests: 1,
			answers: []http.HandlerFunc{raw(401, `{"error":{"message":"Incorrect API key provided: `+sentinel+`"}}`)},
		},
		{
			name: "key without the right", node: tries, attempts: "LLM_PROVIDER_ERROR", says: "status 403", requests: 1,
			answers: []http.HandlerFunc{raw(403, "no access for "+sentinel)},
		},
		{
			name: "429 with Retry-After", node: tries, attempts: "LLM_PROVIDER_ERROR+ ok", requests: 2,
			answers: []http.HandlerFunc{raw(429, "slow down", "Retry-After-Ms", "300"), good},
			outcomes: func(t *testing.T, records []history.Record) {
				// The node's own back-off is a millisecond.
				if wait := records[0].Payload.RetryAt.Sub(records[0].CreatedAt); wait != 300*time.Millisecond {
					t.Errorf("tried again after %v", wait)
				}
				if took := records[1].CreatedAt.Sub(records[0].CreatedAt); took < 300*time.Millisecond {
					t.Errorf("the next attempt had ended after %v already", took)
				}
			},
		},
		{
			name: "429 with Retry-After without attempts left", attempts: "LLM_PROVIDER_ERROR", says: "the rate limit is reached", requests: 1,
			answers: []http.HandlerFunc{raw(429, "slow down", "Retry-After", "3600")},
		},
		{
			name: "500", node: tries, attempts: "LLM_PROVIDER_ERROR+ ok", requests: 2,
			answers: []http.HandlerFunc{raw(500, `{"error":{"message":"boom for `+sentinel+`"}}`), good},
		},
		{
			name: "500 again", node: tries, attempts: "LLM_PROVIDER_ERROR+ LLM_PROVIDER_ERROR", says: "status 500", requests: 2,
			answers: []http.HandlerFunc{raw(500, "boom")},
		},
		{
			name: "code that the node does not retry", node: "retry: {max_attempts: 3, initial_interval: 1ms, non_retryable_errors: [LLM_PROVIDER_ERROR]}",
			attempts: "LLM_PROVIDER_ERROR", says: "status 500", requests: 1,
			answers: []http.HandlerFunc{raw(500, "boom")},
		},
		{
			name: "the node's timeout", fakeTime: true, node: tries + "\n    timeout: 100ms", attempts: "TIMEOUT+ TIMEOUT", requests: 2,
			answers: []http.HandlerFunc{hangs},
		},
		{
			name: "never an answer", fakeTime: true, config: llmcall.Config{RequestTimeout: 700 * time.Millisecond}, attempts: "TIMEOUT", says: "700ms", requests: 1,
			answers: []http.HandlerFunc{hangs},
		},
		{
			name: "a stream that stands still", fakeTime: true, config: llmcall.Config{RequestTimeout: 700 * time.Millisecond, Stream: true}, attempts: "TIMEOUT", says: "700ms", requests: 1,
			answers: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
				streams(`data: {"choices":[{"delta":{"content":"x"}}]}`)(w, r)
				hangs(w, r)
			}},
		},
		{
			name: "half a body", node: tries, attempts: "LLM_PROVIDER_ERROR+ ok", requests: 2,
			answers: []http.HandlerFunc{raw(200, `{"choices":[{"mess`, "Content-Length", "500"), good},
		},
		{
			name: "half a stream", config: llmcall.Config{Stream: true}, attempts: "LLM_PROVIDER_ERROR", says: "the stream ended before the answer did", requests: 1,
			answers: []http.HandlerFunc{streams(`data: {"choices":[{"delta":{"content":"x"}}]}`)},
		},
		{
			name: "server dies mid-call", node: tries, attempts: "LLM_PROVIDER_ERROR+ ok", requests: 2,
			// On a connection that was used before, net/http sends a request with an idempotency key again by itself.
			config:  llmcall.Config{Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
			answers: []http.HandlerFunc{dies, good},
		},
		{
			name: "invalid JSON", node: tries, attempts: "LLM_PROVIDER_ERROR+ LLM_PROVIDER_ERROR", says: "the answer is not a chat completion", requests: 2,
			answers: []http.HandlerFunc{raw(200, "<html>"+sentinel+"</html>")},
		},
		{
			name: "invalid JSON, then an answer", node: tries, attempts: "LLM_PROVIDER_ERROR+ ok", requests: 2,
			answers: []http.HandlerFunc{raw(200, "<html>"), good},
		},
		{
			name: "schema violation, repaired", members: wantsANr, attempts: "OUTPUT_SCHEMA_VIOLATION+ ok", requests: 2,
			answers: []http.HandlerFunc{says("seven"), good}, messages: "1 3",
			outcomes: func(t *testing.T, records []history.Record) {
				first, second := records[0].Payload, records[1].Payload
				if first.Repair["answer"] != "seven" || first.Usage["total_tokens"] != 7.0 || first.Usage["repaired"] != nil {
					t.Errorf("first attempt %v, usage %v", first.Repair, first.Usage)
				}
				if second.Usage["repaired"] != true || second.Usage["total_tokens"] != 7.0 {
					t.Errorf("second attempt: usage %v", second.Usage)
				}
			},
		},
		{
			name: "schema violation, repaired in the last attempt", node: "retry: {max_attempts: 1}", members: wantsANr,
			attempts: "OUTPUT_SCHEMA_VIOLATION+ ok", requests: 2, answers: []http.HandlerFunc{says("seven"), good}, messages: "1 3",
		},
		{
			name: "schema violation", node: "retry: {max_attempts: 3, initial_interval: 1ms}", members: wantsANr, messages: "1 3 1",
			attempts: "OUTPUT_SCHEMA_VIOLATION+ OUTPUT_SCHEMA_VIOLATION+ ok", requests: 3,
			answers: []http.HandlerFunc{says("seven"), says(`{"n":"` + sentinel + `"}`), good},
		},
		{
			name: "schema violation for good", node: tries, members: wantsANr, attempts: "OUTPUT_SCHEMA_VIOLATION+ OUTPUT_SCHEMA_VIOLATION", says: "/n", requests: 2,
			answers: []http.HandlerFunc{says(`{"n":"seven"}`)}, messages: "1 3",
		},
		{
			name: "schema violation that the policy names", node: "retry: {max_attempts: 3, non_retryable_errors: [OUTPUT_SCHEMA_VIOLATION]}", members: wantsANr,
			attempts: "OUTPUT_SCHEMA_VIOLATION", says: "/n", requests: 1, answers: []http.HandlerFunc{says(`{"n":"seven"}`)},
		},
		{
			name: "schema violation without repair", node: tries, members: wantsANr, config: llmcall.Config{NoRepair: true}, messages: "1 1",
			attempts: "OUTPUT_SCHEMA_VIOLATION+ ok", requests: 2, answers: []http.HandlerFunc{says(`{"n":"seven"}`), good},
		},
		{
			name: "schema violation, and a provider that is busy then", members: wantsANr, messages: "1 3",
			attempts: "OUTPUT_SCHEMA_VIOLATION+ LLM_PROVIDER_ERROR", says: "busy", requests: 2, answers: []http.HandlerFunc{says("seven"), raw(503, "busy")},
		},
		{
			name: "output of 20 MB", attempts: "LLM_PROVIDER_ERROR", says: "longer than the limit of 10485760 bytes", requests: 1,
			answers: []http.HandlerFunc{floods},
		},
		{
			name: "output of 20 MB that is announced", attempts: "LLM_PROVIDER_ERROR", says: "longer than the limit of 10485760 bytes", requests: 1,
			answers: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", fmt.Sprint(20<<20))
				floods(w, r)
			}},
		},
		{
			name: "output that the run does not take", slow: true, config: llmcall.Config{}, attempts: "ACTIVITY_OUTPUT_TOO_LARGE", says: "limit of 2097152 bytes", requests: 1,
			answers: []http.HandlerFunc{says(strings.Repeat("x", 3<<20))},
		},
	}
}

// byPrompt answers requests with the prompt "bad" by answers, and all others with a valid answer.
func byPrompt(t *testing.T, serve func(testing.TB, ...http.HandlerFunc) *provider, answers []http.HandlerFunc) (bad, all *provider) {
	t.Helper()
	bad = serve(t, answers...)
	all = serve(t, func(w http.ResponseWriter, _ *http.Request) {})
	all.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read: %v", err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if strings.Contains(string(body), `"content":"bad"`) {
			bad.Config.Handler.ServeHTTP(w, r)
			return
		}
		says(`{"n":1}`)(w, r)
	})
	return bad, all
}

// TestFailureClasses runs every class on the main path and in a branch, under the race detector in one of the two. It is not
// parallel, because it checks for leaked goroutines at its end.
func TestFailureClasses(t *testing.T) {
	t.Run("all", func(t *testing.T) {
		for _, c := range classes() {
			for _, place := range []string{"main path", "branch"} {
				if place == "branch" && c.slow || place == "main path" && !c.slow && soak.UnderRace {
					continue
				}
				t.Run(c.name+"/"+place, func(t *testing.T) {
					t.Parallel()
					if !c.fakeTime {
						c.run(t, newProvider, place == "branch")
						return
					}
					synctest.Test(t, func(t *testing.T) { c.run(t, newProviderInMemory, place == "branch") })
				})
			}
		}
	})
	leaktest.NoGoroutines(t, "workflows-engine/graph.", "activities/llmcall.", "net/http.(*persistConn)", "historysql.")
}

func (c class) run(t *testing.T, serve func(testing.TB, ...http.HandlerFunc) *provider, inBranch bool) {
	bad, p := byPrompt(t, serve, c.answers)
	c.config.BaseURL = p.URL
	if c.fakeTime {
		c.config.Client = p.Client()
	}
	store := enginetest.Closing(t, enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})))
	executor := newExecutor(t, c.config)
	r := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: executor}, WaitLimit: time.Minute})))
	outcomes := strings.Fields(c.attempts)
	want := machine.Completed
	if outcomes[len(outcomes)-1] != "ok" {
		want = machine.Failed
	}
	d := enginetest.Define(t, c.definition(inBranch))
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "one", Definition: d})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != want {
		t.Fatalf("%s %s: %s, want %s", run.Status, run.ErrorCode, run.Error, want)
	}
	records, err := store.Read(t.Context(), "one", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var ended []history.Record
	for _, rec := range records {
		if rec.Payload.NodeID != "ask" {
			continue
		}
		switch {
		case rec.Name == history.ActivityCompleted:
			got, ended = append(got, "ok"), append(ended, rec)
		case rec.Name == history.ActivityFailed && rec.Payload.WillRetry:
			got, ended = append(got, rec.Payload.Code+"+"), append(ended, rec)
		case rec.Name == history.ActivityFailed:
			got, ended = append(got, rec.Payload.Code), append(ended, rec)
		}
	}
	if strings.Join(got, " ") != c.attempts {
		t.Fatalf("attempts %v, want %s: %s", got, c.attempts, ended[len(ended)-1].Payload.Error)
	}
	if text := ended[len(ended)-1].Payload.Error; !strings.Contains(text, c.says) {
		t.Errorf("%q does not say %q", text, c.says)
	}
	if n := len(bad.Seen()); n != c.requests {
		t.Errorf("%d requests, want %d", n, c.requests)
	}
	var messages []string
	for _, seen := range bad.Seen() {
		list, _ := seen.Body["messages"].([]any)
		messages = append(messages, fmt.Sprint(len(list)))
	}
	if got := strings.Join(messages, " "); c.messages != "" && got != c.messages {
		t.Errorf("requests of %s messages, want %s", got, c.messages)
	}
	if c.outcomes != nil {
		c.outcomes(t, ended)
	}
	// The stored summary of the run matches its records and the call's answer.
	projected := history.Project("one", records)
	stored, err := store.Execution(t.Context(), "one")
	if err != nil || stored.Phase != projected.Phase || string(stored.Phase) != string(run.Status) {
		t.Errorf("stored as %s, projected as %s, said to be %s: %v", stored.Phase, projected.Phase, run.Status, err)
	}
	if want == machine.Failed && (run.ErrorNodeID != "ask" || !strings.Contains(run.Error, c.says)) {
		t.Errorf("the run failed at %q: %s", run.ErrorNodeID, run.Error)
	}
	if status, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "one"}); err != nil || status.Status != run.Status || status.Error != run.Error {
		t.Errorf("status %+v, %v", status, err)
	}
	// The next call of the same executor works.
	next := class{node: patience}.definition(inBranch)
	run, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "two", Definition: enginetest.Define(t, strings.ReplaceAll(next, "prompt: bad", "prompt: good"))})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("the next run: %+v, %v", run, err)
	}
}

// definition returns the node under test, followed by or in parallel to another node, which the provider answers.
func (c class) definition(inBranch bool) string {
	node := "  - id: ask\n    type: llm_call\n    config:\n      model: m\n      user_prompt: bad\n"
	if c.members != "" {
		node += "      " + c.members + "\n"
	}
	if c.node != "" {
		node += "    " + c.node + "\n"
	}
	head := `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: failing, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: also, type: llm_call, config: {model: m, user_prompt: fine}, ` + patience + `}
` + node
	if !inBranch {
		return head + `  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: ask}
  - {source: ask, target: also}
  - {source: also, target: end}
`
	}
	return head + `  - {id: fork, type: parallel, config: {join: all, branches: [{name: a, entry: ask}, {name: b, entry: also}]}}
  - {id: after, type: set_state, config: {assignments: {done: {literal: true}}}}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: fork}
  - {source: ask, target: after}
  - {source: also, target: after}
  - {source: fork, target: after}
  - {source: after, target: end}
`
}
