package graph_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestAForkWithACorrectedState continues with the corrected state, once: what the nodes behind it change stays changed. Other processes,
// forks, exports and verify see the same.
func TestAForkWithACorrectedState(t *testing.T) {
	t.Parallel()
	store := enginetest.Closing(t, enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})))
	o := graph.Options{DefaultMode: machine.HostMediated}
	r := newRunner(t, store, o)
	double := `{"id":"double","type":"set_state","config":{"assignments":{"n":{"jq":".n * 2"}}}}`
	d := workflow(t, "w", []string{startNode(), tool("a"), double, tool("b"), endNode()}, "s a", "a double", "double b", "b e")
	large := strings.Repeat("large ", 20_000)
	start(t, r, "r", d, object{"text": large})
	submit(t, r, "r", "a", object{"n": 4, "wrong": true, "deep": object{"kept": 1, "old": 2}})
	before := records(t, store, "r")

	run := enginetest.Must(r.Fork(t.Context(), graph.ForkRequest{
		ExecutionID: "r", BeforeNode: "double", NewExecutionID: "f",
		Correction: object{"n": 20, "wrong": nil, "deep": object{"old": 3}},
	}))
	want := object{"text": large, "n": 40, "deep": object{"kept": 1, "old": 3}}
	if !sameJSON(run.State, want) || run.Pending[0].NodeID != "b" {
		t.Fatalf("the fork waits at %+v with %.200v", run.Pending, run.State)
	}
	if after := records(t, store, "r"); len(after) != len(before) {
		t.Errorf("the other run has %d records instead of %d", len(after), len(before))
	}
	corrections := 0
	for _, rec := range records(t, store, "f") {
		if rec.Payload.Correction {
			corrections++
		}
	}
	if corrections != 1 {
		t.Errorf("%d records of a correction", corrections)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRunner(t, store, o)
	if run = status(t, r, "f"); !sameJSON(run.State, want) {
		t.Errorf("another process sees %.200v", run.State)
	}
	run = enginetest.Must(r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "f", BeforeNode: "b", NewExecutionID: "g", Correction: object{"n": 41}}))
	want["n"] = 41
	if !sameJSON(run.State, want) {
		t.Errorf("a fork of the fork sees %.200v", run.State)
	}
	submit(t, r, "g", "b", object{"done": true})
	if _, err := r.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
		t.Error(err)
	}

	var file bytes.Buffer
	if err := r.Export(t.Context(), "g", graph.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	elsewhere := historymem.New()
	other := newRunner(t, elsewhere, o)
	if _, err := other.Import(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	want["done"] = true
	if run = status(t, other, "g"); run.Status != machine.Completed || !sameJSON(run.FinalState, want) {
		t.Errorf("imported: %s, %.200v", run.Status, run.FinalState)
	}
}

// TestACorrectionBeforeAMap reaches its items: the map is begun anew, with the items that had succeeded.
func TestACorrectionBeforeAMap(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", workflowWith(t, "w", `"x-workflows-engine":{"uses":["map"]}`, []string{
		startNode(), tool("a"), tool("each", `"map":{"items":".list","as":"x","concurrency":1}`), endNode(),
	}, "s a", "a each", "each e"), nil)
	submit(t, r, "r", "a", object{"list": []any{1, 2}})
	for _, req := range []graph.SubmitRequest{{IdempotencyKey: "r:each#2.1", OK: true}, {IdempotencyKey: "r:each#3.1", Error: "gone"}} {
		req.ExecutionID, req.NodeID = "r", "each"
		if _, err := r.SubmitActivity(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "each", NewExecutionID: "f", Correction: object{"list": []any{7, 8, 9}}})
	if err != nil || len(run.Pending) != 1 || run.Pending[0].IdempotencyKey != "f:each#2.1" || !sameJSON(run.Pending[0].State["x"], 7.0) {
		t.Errorf("%+v, %v", run, err)
	}
	wantTrue(t, store, "f")
}

// TestCorrectionsThatDoNotFit are refused, and nothing is written.
func TestCorrectionsThatDoNotFit(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	d := workflowWith(t, "w", `"state_schema":{"type":"object","properties":{"n":{"type":"integer"}}}`,
		[]string{startNode(), tool("a"), fork("p", "all", "x", "y"), tool("x"), tool("y"), tool("z"), endNode()}, "s a", "a p", "p z", "x z", "y z", "z e")
	start(t, r, "r", d, nil)
	submit(t, r, "r", "a", nil)
	for node, result := range map[string]object{"x": nil, "y": {"n": 1}} {
		req := graph.SubmitRequest{ExecutionID: "r", NodeID: node, OK: true, Result: result, IdempotencyKey: "r:" + node + "#1.1"}
		if _, err := r.SubmitActivity(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		req  graph.ForkRequest
		want string
	}{
		{graph.ForkRequest{Seq: 5, Correction: object{"n": 1}}, "must have a node"},
		{graph.ForkRequest{BeforeNode: "s", Correction: object{"n": 1}}, "the input of the run"},
		{graph.ForkRequest{BeforeNode: "y", Correction: object{"n": 1}}, "in a parallel branch"},
		{graph.ForkRequest{BeforeNode: "z", Correction: object{"n": "one"}}, "would break state_schema"},
		{graph.ForkRequest{BeforeNode: "nowhere", Correction: object{"n": 1}}, "has not visited node"},
	} {
		unchanged(t, store, func() {
			tt.req.ExecutionID, tt.req.NewExecutionID = "r", "f"
			_, err := r.Fork(t.Context(), tt.req)
			if e := wantCode(t, err, problem.ValidationError); !strings.Contains(e.Message, tt.want) {
				t.Errorf("%+v: %v", tt.req, err)
			}
		})
	}
	for node, waits := range map[string]int{"p": 2, "z": 1} { // before the block, and behind it
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: node, NewExecutionID: "f-" + node, Correction: object{"n": 7}})
		if err != nil || len(run.Pending) != waits || run.State["n"] != 7.0 {
			t.Errorf("before %s: %+v, %v", node, run, err)
		}
	}
}

// TestACorrectionKeepsToTheLimits of bytes, those of the run and those of a document, also over forks of forks.
func TestACorrectionKeepsToTheLimits(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{MaxBytes: 4 << 20, MaxDocumentBytes: 64 << 10})
	start(t, r, "f0", linear(t, "w", "a"), object{"n": 1})
	text := strings.Repeat("x", 40<<10)
	refused := 0
	for i := range 3 {
		from, to := fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i+1)
		req := graph.ForkRequest{ExecutionID: from, BeforeNode: "a", NewExecutionID: to, Correction: object{fmt.Sprintf("key%d", i): text}}
		if _, err := r.Fork(t.Context(), req); err != nil {
			e := wantCode(t, err, problem.ValidationError)
			if !strings.Contains(e.Message, "the corrected state has") {
				t.Error(err)
			}
			refused++
			break
		}
	}
	if refused != 1 {
		t.Error("the state grew without end")
	}
	small := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated, MaxBytes: 20 << 10})
	unchanged(t, store, func() {
		_, err := small.Fork(t.Context(), graph.ForkRequest{ExecutionID: "f0", BeforeNode: "a", NewExecutionID: "big", Correction: object{"text": text}})
		wantCode(t, err, problem.ByteLimitExceeded)
	})
}

// TestACorrectionBehindABlockThatFailed: once the failure of a block is caught there is one state again, which a fork may correct.
func TestACorrectionBehindABlockThatFailed(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{Branches: machine.Concurrent})
	nodes := []string{
		startNode(), strings.TrimSuffix(fork("p", "all", "q", "rb"), "}") + `,"catch":[{"codes":["*"],"target":"z"}]}`, fork("q", "any", "ra", "rc"),
		tool("ra"), tool("rb"), tool("rc"), tool("y"), tool("z"), endNode(),
	}
	d := workflowWith(t, "fan", `"x-workflows-engine":{"uses":["catch"]}`, nodes, "s p", "p y", "q y", "ra y", "rb y", "rc y", "y z", "z e")
	for _, p := range start(t, r, "r", d, nil).Pending {
		if p.NodeID == "rb" {
			submitSpan(t, r, p, "NO_NET")
		}
	}
	run := enginetest.Must(r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "z", NewExecutionID: "f", Correction: object{"n": 1}}))
	if run.Pending[0].NodeID != "z" || !sameJSON(run.State, object{"n": 1}) {
		t.Errorf("the fork waits at %+v with %v", run.Pending, run.State)
	}
	_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "ra", NewExecutionID: "g", Correction: object{"n": 1}})
	if !errors.Is(err, problem.ValidationError) {
		t.Errorf("a correction within the block: %v", err)
	}
}
