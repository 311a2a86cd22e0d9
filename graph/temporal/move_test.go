package temporal

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// movable is an engine that exports and imports runs.
type movable interface {
	graph.Engine
	graph.Exporter
}

// newRunner returns a Runner with the executors of an engine.
func newRunner(t *testing.T, o Options) *graph.Runner {
	t.Helper()
	return enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{
		Activities: o.Activities, Delegates: o.Delegates, Attempts: o.Attempts, Workflows: o.Workflows, DefaultMode: o.DefaultMode,
	})))
}

// move moves a run to another engine. Export and import are made twice, as after a failure.
func move(t *testing.T, from, to movable, id string) {
	t.Helper()
	var file, again bytes.Buffer
	for _, out := range []*bytes.Buffer{&file, &again} {
		if err := from.Export(t.Context(), id, graph.ExportOptions{Move: true}, out); err != nil {
			t.Fatalf("export: %v", err)
		}
	}
	if file.String() != again.String() {
		t.Error("a repeated export has another file")
	}
	for n, in := range []*bytes.Buffer{&file, &again} {
		res, err := to.Import(t.Context(), in)
		if err != nil {
			t.Fatalf("import: %v", err)
		}
		if res.Existed != (n > 0) {
			t.Errorf("import %d: %+v", n+1, res)
		}
	}
	run, err := from.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil || run.Status != machine.Cancelled {
		t.Errorf("the run is %s where it came from (%v)", run.Status, err)
	}
}

// TestExamplesMove: a run that moves between a database and Temporal before each answer has the result of one that stays.
func TestExamplesMove(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(examples, "*", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	moves := 0
	for _, file := range files {
		folder := filepath.Dir(file)
		for _, want := range expectations(t, file) {
			answers, _ := want["answers"].([]any)
			if len(answers) == 0 {
				continue
			}
			moves++
			for _, first := range []string{"database", "Temporal"} {
				t.Run(filepath.Base(folder)+"/"+want["name"].(string)+"/from "+first, func(t *testing.T) {
					t.Parallel()
					moveExample(t, folder, want, first == "Temporal")
				})
			}
		}
	}
	if moves < 5 {
		t.Errorf("%d runs move", moves)
	}
}

func moveExample(t *testing.T, folder string, want map[string]any, inTemporal bool) {
	o := demoOptions(t, folder)
	o.Archive, o.SideStore = OpenFileArchive(t.TempDir()), fileStore(t)
	next := func() movable {
		if inTemporal = !inTemporal; inTemporal {
			return newRunner(t, o)
		}
		e, _ := newTestEngine(t, o)
		return e
	}
	e := next()
	input, _ := want["input"].(map[string]any)
	run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: "example", Definition: exampleDocument(t, folder), Input: input})
	for _, a := range want["answers"].([]any) {
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Terminal() {
			break
		}
		to := next()
		move(t, e, to, "example")
		e = to
		run, err = give(t, e, run, a.(map[string]any))
	}
	if err != nil {
		t.Fatal(err)
	}
	if run.Status != machine.Completed {
		t.Fatalf("status %s %s %s, pending %+v", run.Status, run.ErrorCode, run.Error, run.Pending)
	}
	if !ordersFreely(t, folder) && !jsonvalue.Equal(run.Result, want["result"]) {
		t.Errorf("result\n got %s\nwant %s", jsonvalue.Canonical(run.Result), jsonvalue.Canonical(want["result"]))
	}
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: "example"})
	if err != nil || len(records) == 0 || records[0].Seq != 1 || records[len(records)-1].Seq != int64(len(records)) {
		t.Errorf("the history has %d records (%v)", len(records), err)
	}
}

// nested is a tree of runs, and a resolver for it: a run and its subworkflow perform a step first and last, and wait for one that asks.
func nested(t *testing.T) (*definition.Document, graph.Resolver) {
	t.Helper()
	document := func(name, ref string) *definition.Document {
		return enginetest.Define(t, enginetest.Linear(name, `{"id":"begin","type":"start"}`, `{"id":"before","type":"step","config":{"handler":"charge"}}`,
			`{"id":"sub","type":"subworkflow","config":{"workflow_ref":"`+ref+`","input_mapping":{}}}`, `{"id":"after","type":"step","config":{"handler":"charge"}}`, `{"id":"end","type":"end"}`))
	}
	below := map[string]*definition.Document{"middle": document("middle", "approval"), "approval": approval(t)}
	return document("top", "middle"), resolve(func(ref string) *definition.Document { return below[ref] })
}

type resolve func(ref string) *definition.Document

func (f resolve) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if d := f(ref); d != nil {
		return d, nil
	}
	return nil, problem.New(problem.WorkflowNotFound, "no workflow %q", ref)
}

// TestATreeMoves: each run of a tree waits where it waited, and no attempt is made twice. Webhooks are not told of an end.
func TestATreeMoves(t *testing.T) {
	t.Parallel()
	for _, fromTemporal := range []bool{true, false} {
		var mu sync.Mutex
		var keys []string
		d, workflows := nested(t)
		o := Options{Workflows: workflows, Archive: OpenFileArchive(t.TempDir()), Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			keys = append(keys, req.IdempotencyKey)
			return map[string]any{"charged": true}, nil
		})}
		e, b := newTestEngine(t, o)
		r := newRunner(t, o)
		from, to := movable(e), movable(r)
		if !fromTemporal {
			from, to = r, e
		}
		asked := start(t, from, graph.StartRequest{ExecutionID: "r", Definition: d, Title: "One", Labels: map[string]string{"team": "a"}, Wait: graph.WaitAtMost(time.Minute)})
		if asked.Status != machine.Interrupted || strings.Count(asked.Pending[0].ExecutionID, history.ChildMark) != 2 {
			t.Fatalf("%+v", asked)
		}
		move(t, from, to, "r")
		if fromTemporal && len(b.runs["r"].letters) > 0 {
			t.Errorf("webhooks are told of %s", b.runs["r"].letters[0].Event)
		}
		there, err := to.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Minute}})
		if err != nil || there.Status != machine.Interrupted || there.Title != "One" || there.Labels["team"] != "a" || there.CreatedAt != asked.CreatedAt ||
			len(there.Pending) != 1 || there.Pending[0].ID != asked.Pending[0].ID || there.Seq != asked.Seq {
			t.Errorf("%+v\nwas %+v (%v)", there, asked, err)
		}
		done, err := to.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: asked.Pending[0].ID, Payload: map[string]any{"approve": true}, Caller: graph.Caller{Wait: graph.WaitAtMost(time.Minute)}})
		if err != nil || done.Status != machine.Completed {
			t.Fatalf("%+v %v", done, err)
		}
		slices.Sort(keys)
		if n := len(slices.Compact(slices.Clone(keys))); n != 5 || len(keys) != 5 {
			t.Errorf("attempts %q", keys)
		}
		page, err := from.List(t.Context(), history.ListQuery{Phases: history.OpenPhases()})
		if err != nil || len(page.Executions) > 0 {
			t.Errorf("%d runs are open where they came from (%v)", len(page.Executions), err)
		}
	}
}

// TestAnAgentMovesWithItsJournal: an agent that has asked goes on after its entries.
func TestAnAgentMovesWithItsJournal(t *testing.T) {
	t.Parallel()
	for _, fromTemporal := range []bool{true, false} {
		o := Options{Activities: &lister{}, SideStore: fileStore(t), Archive: OpenFileArchive(t.TempDir())}
		e, _ := newTestEngine(t, o)
		r := newRunner(t, o)
		from, to := movable(e), movable(r)
		if !fromTemporal {
			from, to = r, e
		}
		if run := start(t, from, graph.StartRequest{ExecutionID: "r", Definition: journaled(t), Wait: graph.WaitAtMost(time.Minute)}); run.Status != machine.Interrupted {
			t.Fatalf("%+v", run)
		}
		move(t, from, to, "r")
		run, err := to.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"text": "yes"}, Caller: graph.Caller{Wait: graph.WaitAtMost(time.Minute)}})
		if err != nil || run.Status != machine.Completed || run.FinalState["entries"] != 6.0 {
			t.Errorf("from Temporal %t: %+v %v", fromTemporal, run, err)
		}
	}
}

// TestTimersMove: a back-off that is due while the run is nowhere ends once it has arrived.
func TestTimersMove(t *testing.T) {
	t.Parallel()
	busy := steps(func(_ context.Context, req activities.Request) (any, error) {
		if req.Attempt < 2 {
			return nil, &activities.Failure{Code: "BUSY", Message: "later"}
		}
		return map[string]any{"attempt": req.Attempt}, nil
	})
	o := Options{Activities: busy}
	d := enginetest.Define(t, enginetest.Linear("late", `{"id":"begin","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"charge"},"retry":{"max_attempts":2,"initial_interval":"1h"}}`, `{"id":"end","type":"end"}`))
	r := newRunner(t, o)
	if run := start(t, r, graph.StartRequest{ExecutionID: "r", Definition: d}); run.Status != machine.AwaitingTimer {
		t.Fatalf("%+v", run)
	}
	o.Archive = OpenFileArchive(t.TempDir())
	e, b := newTestEngine(t, o)
	move(t, r, e, "r")
	if run := later(t, e, b, "r", 2*time.Hour, machine.Completed); run.FinalState["attempt"] != 2.0 {
		t.Errorf("%+v", run)
	}
}

// file exports a run.
func file(t *testing.T, e movable, id string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	if err := e.Export(t.Context(), id, graph.ExportOptions{}, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestWhatCannotMoveStays: the run goes on where it is.
func TestWhatCannotMoveStays(t *testing.T) {
	t.Parallel()
	o := Options{Activities: steps(charged)}
	e, b := newTestEngine(t, o)
	b.suggest = true
	start(t, e, graph.StartRequest{ExecutionID: "cut", Definition: approval(t)})
	b.suggest = false
	start(t, e, graph.StartRequest{ExecutionID: "ended", Definition: approval(t)})
	if _, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "ended", Payload: map[string]any{"approve": true}}); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]problem.Code{"cut": problem.Unsupported, "ended": problem.CancelNotAllowed, "other": problem.ExecutionNotFound} {
		var out bytes.Buffer
		err := e.Export(t.Context(), id, graph.ExportOptions{Move: true}, &out)
		requireCode(t, err, want)
		if out.Len() > 0 {
			t.Errorf("%s: the rejected export wrote %q", id, out.String())
		}
	}
	if run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "cut"}); err != nil || run.Status != machine.Interrupted {
		t.Errorf("%+v %v", run, err)
	}

	r := newRunner(t, Options{Activities: &lister{}})
	asked := journaled(t)
	start(t, r, graph.StartRequest{ExecutionID: "agent", Definition: asked, Wait: graph.WaitAtMost(time.Minute)})
	start(t, r, graph.StartRequest{ExecutionID: "cut", Definition: asked, Wait: graph.WaitAtMost(time.Minute)})
	for _, c := range []struct {
		file *bytes.Buffer
		want problem.Code
	}{
		{file(t, r, "cut"), problem.DuplicateExecutionID}, {file(t, r, "agent"), problem.Unsupported}, {file(t, e, "ended"), problem.Unsupported},
		{bytes.NewBufferString("{}"), problem.ImportInvalid},
	} {
		into, there := newTestEngine(t, Options{Activities: &lister{}, SideStore: fileStore(t)})
		if c.want == problem.DuplicateExecutionID {
			into, there = e, b
			into.o.SideStore, into.o.Archive = fileStore(t), OpenFileArchive(t.TempDir())
		}
		before := len(there.runs)
		_, err := into.Import(t.Context(), c.file)
		if p := requireCode(t, err, c.want); p.Hint == "" && c.want != problem.ImportInvalid {
			t.Errorf("%v has no hint", p)
		}
		if len(there.runs) != before {
			t.Errorf("%s: a run was started", c.want)
		}
	}
}

// TestARunAtWorkDoesNotMove: the outcome of its attempt would be lost.
func TestARunAtWorkDoesNotMove(t *testing.T) {
	t.Parallel()
	var began atomic.Bool
	release := make(chan struct{})
	e, b := newTestEngine(t, Options{Activities: steps(func(context.Context, activities.Request) (any, error) {
		began.Store(true)
		<-release
		return map[string]any{"charged": true}, nil
	})})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Wait: graph.Wait{Limit: graph.NoWait}})
	for !began.Load() {
		if err := b.sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	err := e.Export(t.Context(), "r", graph.ExportOptions{Move: true}, io.Discard)
	if p := requireCode(t, err, problem.CancelNotAllowed); p.Hint == "" {
		t.Error("no hint")
	}
	close(release)
	if run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Minute}}); err != nil || run.Status != machine.Interrupted || run.State["charged"] != true {
		t.Errorf("%+v %v", run, err)
	}
}

// TestEndedSubworkflowsMove: they have no workflow in Temporal, and leave it with the run.
func TestEndedSubworkflowsMove(t *testing.T) {
	t.Parallel()
	below := map[string]*definition.Document{
		"quick": enginetest.Define(t, enginetest.Linear("quick", `{"id":"begin","type":"start"}`, `{"id":"work","type":"step","config":{"handler":"charge"}}`, `{"id":"end","type":"end"}`)),
		"asks":  approval(t),
	}
	d := enginetest.Define(t, enginetest.Linear("top", `{"id":"begin","type":"start"}`, `{"id":"first","type":"subworkflow","config":{"workflow_ref":"quick","input_mapping":{}}}`,
		`{"id":"second","type":"subworkflow","config":{"workflow_ref":"asks","input_mapping":{}}}`, `{"id":"end","type":"end"}`))
	o := Options{Activities: steps(charged), Archive: OpenFileArchive(t.TempDir()), Workflows: resolve(func(ref string) *definition.Document { return below[ref] }), MaxDepth: 1}
	before, after := newRunner(t, o), newRunner(t, o)
	e, _ := newTestEngine(t, o)
	start(t, before, graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.WaitAtMost(time.Minute)})
	move(t, before, e, "r")
	move(t, e, after, "r")
	done, err := after.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}, Caller: graph.Caller{Wait: graph.WaitAtMost(time.Minute)}})
	if err != nil || done.Status != machine.Completed {
		t.Fatalf("%+v %v", done, err)
	}
	page, err := after.List(t.Context(), history.ListQuery{Limit: 100})
	if err != nil || len(page.Executions) != 3 {
		t.Fatalf("%d runs, %v", len(page.Executions), err)
	}
	for _, x := range page.Executions {
		if _, err := after.Verify(t.Context(), x.ID, false, func(f history.Finding) { t.Errorf("%+v", f) }); err != nil || x.Phase != history.PhaseCompleted {
			t.Errorf("%s is %s, %v", x.ID, x.Phase, err)
		}
	}
}

// TestATreeMovesBelowTheLimitOfDepth: an engine with a lower limit than where the run began continues the subworkflows that there are.
func TestATreeMovesBelowTheLimitOfDepth(t *testing.T) {
	t.Parallel()
	d, workflows := nested(t)
	o := Options{Workflows: workflows, Activities: steps(charged)}
	r := newRunner(t, o)
	asked := start(t, r, graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.WaitAtMost(time.Minute)})
	o.Archive, o.MaxDepth = OpenFileArchive(t.TempDir()), 1
	e, _ := newTestEngine(t, o)
	move(t, r, e, "r")
	run, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: asked.Pending[0].ID, Payload: map[string]any{"approve": true}, Caller: graph.Caller{Wait: graph.WaitAtMost(time.Minute)}})
	if err != nil || run.Status != machine.Completed {
		t.Errorf("%+v %v", run, err)
	}
}

// TestAnArchiveHasOneRunOfAnID: the records of two runs are not mixed.
func TestAnArchiveHasOneRunOfAnID(t *testing.T) {
	t.Parallel()
	o := Options{Activities: steps(charged)}
	other, r := newRunner(t, o), newRunner(t, o)
	start(t, other, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Input: map[string]any{"other": true}})
	start(t, r, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	o.Archive = OpenFileArchive(t.TempDir())
	first, _ := newTestEngine(t, o)
	move(t, other, first, "r")
	e, b := newTestEngine(t, o)
	_, err := e.Import(t.Context(), file(t, r, "r"))
	requireCode(t, err, problem.DuplicateExecutionID)
	if len(b.runs) > 0 {
		t.Error("a run was started")
	}
}

// TestLargeStatesStay: an attempt could not carry the state.
func TestLargeStatesStay(t *testing.T) {
	t.Parallel()
	o := Options{Activities: steps(charged)}
	r := newRunner(t, o)
	start(t, r, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Input: map[string]any{"text": strings.Repeat("x", maxValue+1)}})
	o.Archive = OpenFileArchive(t.TempDir())
	e, b := newTestEngine(t, o)
	_, err := e.Import(t.Context(), file(t, r, "r"))
	requireCode(t, err, problem.Unsupported)
	if len(b.runs) > 0 {
		t.Error("a run was started")
	}
}

// TestAnIDOfAnotherProgramIsTaken: the result of a workflow that is no run has no ending.
func TestAnIDOfAnotherProgramIsTaken(t *testing.T) {
	t.Parallel()
	o := Options{Activities: steps(charged), Archive: OpenFileArchive(t.TempDir())}
	r := newRunner(t, o)
	start(t, r, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	e, b := newTestEngine(t, o)
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	if _, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}}); err != nil {
		t.Fatal(err)
	}
	b.runs["r"].result.Ending = nil
	_, err := e.Import(t.Context(), file(t, r, "r"))
	requireCode(t, err, problem.DuplicateExecutionID)
}
