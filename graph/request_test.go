package graph_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// describing is an executor that says what it sends.
type describing struct {
	*script
	says func(activities.Request) map[string]any
}

func (d describing) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Describe: d.says}
}

// requests gives the requests that a run has recorded, in order.
func requests(t testing.TB, store history.Store, id string) []map[string]any {
	t.Helper()
	var list []map[string]any
	for _, r := range records(t, store, id) {
		if r.Name == history.ActivityRequested {
			list = append(list, r.Payload.Request)
		}
	}
	return list
}

// TestWhatIsSentIsRecordedBefore: when the executor is called, what it has said that it sends is in the store, without secrets, and both
// are computed at the same time of the run.
func TestWhatIsSentIsRecordedBefore(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	var asked time.Time
	exec := describing{&script{}, nil}
	exec.says = func(req activities.Request) map[string]any {
		asked = req.RequestedAt
		return object{"prompt": "the key is sk-1234 for " + req.NodeID, "headers": object{"authorization": "Bearer x"}, "n": req.Attempt, "state": req.State()}
	}
	exec.answers = answers{"a": func(_ context.Context, req activities.Request) (any, error) {
		rs := records(t, store, "r")
		last := rs[len(rs)-1]
		want := object{"prompt": "the key is *** for a", "headers": object{"authorization": history.Redacted}, "n": 1.0, "state": object{"in": "x"}}
		if last.Name != history.ActivityRequested || !sameJSON(last.Payload.Request, want) {
			t.Errorf("%s with %v, want %v", last.Name, last.Payload.Request, want)
		}
		if asked.IsZero() || !asked.Equal(req.RequestedAt) || !asked.Equal(last.CreatedAt) {
			t.Errorf("described at %v, performed at %v, recorded at %v", asked, req.RequestedAt, last.CreatedAt)
		}
		return nil, nil
	}}
	hide := history.DefaultRedaction().WithMask(func(s string) string { return strings.ReplaceAll(s, "sk-1234", "***") })
	r := newRunner(t, store, graph.Options{Activities: exec, Redaction: &hide})
	wantStatus(t, start(t, r, "r", linear(t, "lin", "a"), object{"in": "x"}), machine.Completed)
	if exec.count() != 1 {
		t.Fatalf("%d calls", exec.count())
	}
}

// TestRequestsThatAreNotRecorded: nothing is recorded where it is switched off, where an executor does not say, or fails to, and in a run
// that has used half of its bytes. The run goes on all the same.
func TestRequestsThatAreNotRecorded(t *testing.T) {
	t.Parallel()
	says := func(v map[string]any) func(activities.Request) map[string]any {
		return func(activities.Request) map[string]any { return v }
	}
	for name, tt := range map[string]struct {
		says    func(activities.Request) map[string]any
		options graph.Options
		input   map[string]any
		want    map[string]any
	}{
		"said":         {says: says(object{"a": 1}), want: object{"a": 1}},
		"switched off": {says: says(object{"a": 1}), options: graph.Options{OmitRequests: true}},
		"nothing":      {says: says(nil)},
		"empty":        {says: says(object{})},
		"a panic":      {says: func(activities.Request) map[string]any { panic("no") }},
		"no JSON":      {says: says(object{"a": make(chan int)})},
		"too large": {
			says: says(object{"a": strings.Repeat("x", 5000)}), options: graph.Options{MaxDocumentBytes: 4000}, want: object{"left_out_bytes": 5008},
		},
		"half of the bytes used": {
			says: says(object{"a": 1}), options: graph.Options{MaxBytes: 100_000}, input: object{"in": strings.Repeat("x", 18_000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			tt.options.Activities = describing{&script{}, tt.says}
			r := newRunner(t, store, tt.options)
			wantStatus(t, start(t, r, "r", linear(t, "lin", "first", "second", "third", "last"), tt.input), machine.Completed)
			got := requests(t, store, "r")
			if name == "half of the bytes used" && got[0] == nil {
				t.Error("nothing is recorded while there is room")
			}
			last := got[len(got)-1]
			if (last == nil) != (tt.want == nil) || last != nil && !sameJSON(last, tt.want) {
				t.Errorf("recorded %v, want %v", last, tt.want)
			}
		})
	}
}

// TestItemsSayWhichTheyAre: the requests of a map name their item, in both modes; what an executor says comes beside it. A large item is
// not repeated.
func TestItemsSayWhichTheyAre(t *testing.T) {
	t.Parallel()
	d := workflowWith(t, "mapping", `"x-workflows-engine":{"uses":["map"]}`,
		[]string{startNode(), tool("each", `"map":{"items":".list","as":"n","concurrency":1,"collect":"out"}`), endNode()}, "s each", "each e")
	input := object{"list": []any{"a", strings.Repeat("b", 300)}}
	store := historymem.New()
	exec := describing{&script{}, func(req activities.Request) map[string]any { return object{"sends": len(req.State()["n"].(string))} }}
	wantStatus(t, start(t, newRunner(t, store, graph.Options{Activities: exec}), "r", d, input), machine.Completed)
	if got := requests(t, store, "r"); len(got) != 2 || !sameJSON(got[0], object{"item": 0, "sends": 1}) || !sameJSON(got[1], object{"item": 1, "sends": 300}) {
		t.Errorf("in process %v", got)
	}
	r, hosted := host(t, graph.Options{})
	start(t, r, "r", d, input)
	if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "each", IdempotencyKey: "r:each#2.1", OK: true}); err != nil {
		t.Fatal(err)
	}
	if got := requests(t, hosted, "r"); len(got) != 2 || !sameJSON(got[0], object{"item": 0, "value": "a"}) || !sameJSON(got[1], object{"item": 1}) {
		t.Errorf("by the host %v", got)
	}
	r, silent := host(t, graph.Options{OmitRequests: true})
	start(t, r, "r", d, input)
	if got := requests(t, silent, "r"); len(got) != 1 || got[0] != nil {
		t.Errorf("switched off %v", got)
	}
}

// TestRequestsOfOneBatchLeaveRoom: the items of a map are requested at once. What is recorded of them does not use up the run's bytes.
func TestRequestsOfOneBatchLeaveRoom(t *testing.T) {
	t.Parallel()
	d := workflowWith(t, "mapping", `"x-workflows-engine":{"uses":["map"]}`,
		[]string{startNode(), tool("each", `"map":{"items":"[range(100)]","as":"n","concurrency":100}`), endNode()}, "s each", "each e")
	text := strings.Repeat("x", 10_000)
	exec := describing{&script{}, func(activities.Request) map[string]any { return object{"text": text} }}
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: exec, MaxBytes: 500_000})
	wantStatus(t, start(t, r, "r", d, nil), machine.Completed)
	said := 0
	for _, request := range requests(t, store, "r") {
		if request["text"] != nil {
			said++
		}
	}
	if said == 0 || said > 30 {
		t.Errorf("%d requests are recorded", said)
	}
}

// addressed is a delegate executor that says where it sends.
type addressed struct{ activities.ExecutorFunc }

func (x addressed) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Describe: x.describe}
}

func (addressed) describe(req activities.Request) map[string]any {
	return object{"endpoint": "https://" + req.AgentID + ".example"}
}

// TestBranchesAndDelegatesAreToldApart: each request of a batch gets its own description.
func TestBranchesAndDelegatesAreToldApart(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	exec := describing{&script{}, func(req activities.Request) map[string]any { return object{"node": req.NodeID} }}
	agent := addressed{func(context.Context, activities.Request) (activities.Result, error) { return activities.Result{}, nil }}
	d := workflow(t, "w", []string{startNode(), fork("p", "all", "a", "d", "b"), tool("a"), delegateNode("d"), tool("b"), endNode()},
		"s p", "a e", "d e", "b e", "p e")
	wantStatus(t, start(t, newRunner(t, store, graph.Options{Activities: exec, Delegates: agent}), "r", d, nil), machine.Completed)
	got := requests(t, store, "r")
	for i, want := range []object{{"node": "a"}, {"endpoint": "https://coder.example"}, {"node": "b"}} {
		if len(got) != 3 || !sameJSON(got[i], want) {
			t.Fatalf("requests %v", got)
		}
	}
}

// TestRequestsMoveWithTheirRun: a run with large requests is exported, imported, verified by replay, forked, and read with them.
func TestRequestsMoveWithTheirRun(t *testing.T) {
	t.Parallel()
	open := func() history.Store {
		s, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	var mu sync.Mutex
	n := 0
	exec := describing{&script{}, func(activities.Request) map[string]any {
		mu.Lock()
		defer mu.Unlock()
		n++
		return object{"system": strings.Repeat("the same ", 1000), "prompt": strings.Repeat("another ", 1000*n), "$filter": "x"}
	}}
	from, to := open(), open()
	r := newRunner(t, from, graph.Options{Activities: exec})
	wantStatus(t, start(t, r, "r", linear(t, "lin", "a", "b"), nil), machine.Completed)
	want := requests(t, from, "r")
	var file bytes.Buffer
	if err := graph.Export(t.Context(), from, "r", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	if _, err := graph.Import(t.Context(), to, &file); err != nil {
		t.Fatal(err)
	}
	other := newRunner(t, to, graph.Options{Activities: exec})
	if _, err := other.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("verify: %+v", f) }); err != nil {
		t.Fatal(err)
	}
	fork, err := other.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "b", NewExecutionID: "f"})
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, fork, machine.Completed)
	for id, got := range map[string][]map[string]any{"r": requests(t, to, "r"), "f": requests(t, to, "f")} {
		if len(want) != 2 || len(got) != 2 || !sameJSON(got[0], want[0]) || id == "r" && !sameJSON(got[1], want[1]) || got[1]["$filter"] != "x" {
			t.Errorf("requests of %s differ from those before", id)
		}
	}
}
