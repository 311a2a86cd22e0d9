package llmcall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// syncBuffer is a log that several goroutines may write.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func newRunner(t testing.TB, p *provider, log *syncBuffer) (*graph.Runner, history.Store) {
	t.Helper()
	store := historymem.New()
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	executor := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	r := enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: executor}, Logger: logger, WaitLimit: time.Minute}))
	return enginetest.Closing(t, r), store
}

const oneCall = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: one, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - id: ask
    type: llm_call
    metadata: {prompt_templates: true}
    retry: {max_attempts: 4, initial_interval: 1ms, backoff_coefficient: 1}
    config:
      model: m
      user_prompt: "Score ${ .topic }"
      output_schema: {type: object, required: [n], properties: {n: {type: number}}}
  - {id: end, type: end, config: {output_mapping: .n}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: ask}
  - {source: ask, target: end}
`

// TestRun reaches an answer after failures of several kinds, with a provider that repeats the key in every field,
// and checks that no record, answer or log line has the key.
func TestRun(t *testing.T) {
	t.Parallel()
	p := newProvider(t,
		raw(500, `{"error":{"message":"boom for `+sentinel+`"}}`, "X-Key", sentinel),
		raw(429, "slow down, "+sentinel, "Retry-After-Ms", "1"),
		says("no JSON but "+sentinel), says(`{"n":7,"key":"`+sentinel+`"}`)) // an attempt, and its repair
	var log syncBuffer
	r, store := newRunner(t, p, &log)
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "one", Definition: enginetest.Define(t, oneCall), Input: object{"topic": "Go"}})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Completed || run.Result != 7.0 {
		t.Fatalf("%s %v: %s", run.Status, run.Result, run.Error)
	}
	if first := p.Seen()[0].Body["messages"].([]any)[0].(object); first["content"] != "Score Go" {
		t.Errorf("prompt %v", first)
	}
	records, err := store.Read(t.Context(), "one", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	var usage object
	for _, rec := range records {
		switch rec.Name {
		case history.ActivityFailed:
			codes = append(codes, rec.Payload.Code)
		case history.ActivityCompleted:
			usage = rec.Payload.Usage
		}
	}
	if want := fmt.Sprint([]string{"LLM_PROVIDER_ERROR", "LLM_PROVIDER_ERROR", "OUTPUT_SCHEMA_VIOLATION"}); fmt.Sprint(codes) != want {
		t.Errorf("attempts failed with %v, want %v", codes, want)
	}
	if usage["model"] != "m-2026" || usage["total_tokens"] != 7.0 || usage["repaired"] != true || usage["duration_ms"] == nil {
		t.Errorf("usage %v", usage)
	}
	encoded, err := json.Marshal(object{"records": records, "run": run})
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"history": string(encoded) + fmt.Sprintf("%+v", records), "log": log.String()} {
		if strings.Contains(text, "sentinel") {
			t.Errorf("the key is in the %s", where)
		}
	}
	if !strings.Contains(string(encoded), "[secret]") {
		t.Error("nothing was scrubbed: the test proves nothing")
	}
}

// TestRefusedKeyIsNotRetried: the failure's advice overrides the node's four attempts.
func TestRefusedKeyIsNotRetried(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(401, `{"error":{"message":"Incorrect API key provided: `+sentinel+`"}}`))
	r, _ := newRunner(t, p, &syncBuffer{})
	run, err := r.Start(t.Context(), graph.StartRequest{Definition: enginetest.Define(t, oneCall), Input: object{"topic": "Go"}})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Failed || !strings.Contains(run.Error, string(problem.LLMProviderError)) && !strings.Contains(run.Error, "the key is refused") {
		t.Errorf("%s %s: %s", run.Status, run.ErrorCode, run.Error)
	}
	if n := len(p.Seen()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// research returns a workflow with branches that each ask a model.
func research(t testing.TB, branches int) *definition.Document {
	var nodes, edges, list strings.Builder
	for i := range branches {
		fmt.Fprintf(&nodes, "  - {id: ask%d, type: llm_call, config: {model: m, user_prompt: Question %d}}\n", i, i)
		fmt.Fprintf(&edges, "  - {source: ask%d, target: join}\n", i)
		fmt.Fprintf(&list, "{name: b%d, entry: ask%d},", i, i)
	}
	return enginetest.Define(t, `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: research, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: fork, type: parallel, config: {join: all, branches: [`+list.String()+`]}}
`+nodes.String()+`  - {id: join, type: set_state, config: {assignments: {done: {literal: true}}}}
  - {id: end, type: end, config: {output_mapping: .done}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: fork}
  - {source: fork, target: join}
`+edges.String()+`  - {source: join, target: end}
`)
}

// TestBranchesAskAtOnce: the provider answers only when all eight questions have arrived.
func TestBranchesAskAtOnce(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	all.Add(8)
	answer := says("fine")
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { all.Done(); all.Wait(); answer(w, r) })
	r, _ := newRunner(t, p, &syncBuffer{})
	run, err := r.Start(t.Context(), graph.StartRequest{Definition: research(t, 8)})
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Completed {
		t.Errorf("%s: %s", run.Status, run.Error)
	}
}

// BenchmarkParallelResearch runs eight branches of model calls that take 200 ms each, with the history on disk.
func BenchmarkParallelResearch(b *testing.B) {
	const branches, delay = 8, 200 * time.Millisecond
	answer := says("fine")
	p := newProvider(b, func(w http.ResponseWriter, r *http.Request) { time.Sleep(delay); answer(w, r) })
	store := enginetest.Closing(b, enginetest.Must(historysql.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), historysql.Options{})))
	executor := newExecutor(b, llmcall.Config{BaseURL: p.URL})
	r := enginetest.Closing(b, enginetest.Must(graph.New(store, graph.Options{Activities: activities.Composite{LLMCall: executor}})))
	d := research(b, branches)
	for b.Loop() {
		run, err := r.Start(b.Context(), graph.StartRequest{Definition: d})
		if err != nil || run.Status != machine.Completed {
			b.Fatalf("%v %v", run, err)
		}
	}
	took := b.Elapsed() / time.Duration(b.N)
	b.ReportMetric(float64(took.Microseconds())/1000, "ms/run")
	b.ReportMetric(float64((took-delay).Microseconds())/1000, "overhead-ms/run")
}
