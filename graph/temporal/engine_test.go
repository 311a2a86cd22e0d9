package temporal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// steps performs steps with a function.
type steps func(ctx context.Context, req activities.Request) (any, error)

func (f steps) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	out, err := f(ctx, req)
	return activities.Result{Output: out}, err
}

func approval(t testing.TB) *definition.Document {
	return enginetest.Define(t, `{"document":{"schema":"urn:test","name":"approval","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"work","type":"step","config":{"handler":"charge"}},{"id":"ask","type":"interrupt","config":{"prompt":"Publish?","resume_schema":{"type":"object","required":["approve"]}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"work"},{"source":"work","target":"ask"},{"source":"ask","target":"end"}]}`)
}

func charged(context.Context, activities.Request) (any, error) {
	return map[string]any{"charged": true}, nil
}

func requireCode(t *testing.T, err error, code problem.Code) *problem.Error {
	t.Helper()
	p, ok := problem.As(err)
	if !ok || p.Code != code {
		t.Fatalf("error %v, want %s", err, code)
	}
	return p
}

func start(t *testing.T, e graph.Engine, req graph.StartRequest) *view.Run {
	t.Helper()
	run, err := e.Start(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// TestARejectedAnswerChangesNothing: the error has the code, the message, the place and the hint of the machine, and the run goes on.
func TestARejectedAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged)})
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Title: "One", Labels: map[string]string{"team": "a"}})
	if run.Status != machine.Interrupted || run.Title != "One" || run.Labels["team"] != "a" || run.State["charged"] != true {
		t.Fatalf("%+v", run)
	}
	if q := run.Pending[0].Question(); !strings.Contains(q, "Publish?") || !strings.Contains(q, "charged") {
		t.Errorf("question %q", q)
	}
	_, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"no": 1.0}})
	p := requireCode(t, err, problem.InvalidResumePayload)
	if p.Hint == "" || p.At.NodeID != "ask" || p.At.ExecutionID != "r" || !strings.Contains(p.Message, "approve") {
		t.Errorf("%+v", p)
	}
	after, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
	if err != nil || after.Seq != run.Seq || after.Status != machine.Interrupted {
		t.Fatalf("%+v %v", after, err)
	}
	done, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: map[string]any{"approve": true}})
	if err != nil || done.Status != machine.Completed || done.FinalState["approve"] != true {
		t.Fatalf("%+v %v", done, err)
	}
	again, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: map[string]any{"approve": true}})
	if err != nil || !again.Repeated {
		t.Fatalf("a repeated answer: %+v %v", again, err)
	}
	_, err = e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: run.Pending[0].ID, Payload: map[string]any{"approve": false}})
	if p := requireCode(t, err, problem.InvalidResumePayload); p.Reason != problem.AnsweredDifferently {
		t.Errorf("%+v", p)
	}
	if _, err := e.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err == nil {
		t.Error("a completed run is cancelled")
	}
	_, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "other"})
	requireCode(t, err, problem.ExecutionNotFound)
}

func TestAnIDIsUsedOnce(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged)})
	req := graph.StartRequest{ExecutionID: "r", Definition: approval(t)}
	start(t, e, req)
	_, err := e.Start(t.Context(), req)
	if p := requireCode(t, err, problem.DuplicateExecutionID); p.Hint == "" {
		t.Error("no hint")
	}
	req.AllowExisting = true
	if run := start(t, e, req); run.Status != machine.Interrupted {
		t.Errorf("%+v", run)
	}
	req.Input = map[string]any{"other": 1.0}
	_, err = e.Start(t.Context(), req)
	requireCode(t, err, problem.SubmitValidationError)
}

// TestARunContinuesAsNew: it keeps its waits, and its history is whole with an archive.
func TestARunContinuesAsNew(t *testing.T) {
	t.Parallel()
	for _, kept := range []Archive{OpenFileArchive(t.TempDir()), StoreArchive{enginetest.Closing(t, historymem.New())}, nil} {
		archive := kept != nil
		e, b := newTestEngine(t, Options{Activities: steps(charged), Archive: kept})
		b.suggest = true
		start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
		for n := 0; n < 1000 && b.runs["r"].parts < 2; n++ { // the archive is an activity
			if err := b.sleep(t.Context(), time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
		run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		if run.Status != machine.Interrupted || run.State["charged"] != true || b.runs["r"].parts != 2 {
			t.Fatalf("%s in %d parts: %+v", run.Status, b.runs["r"].parts, run)
		}
		done, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}})
		if err != nil || done.Status != machine.Completed {
			t.Fatalf("%+v %v", done, err)
		}
		records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: "r"})
		if err != nil || len(records) == 0 {
			t.Fatal(err)
		}
		first := records[0].Seq
		if archive != (first == 1) {
			t.Errorf("archive %t: the first record is %d", archive, first)
		}
		for i, r := range records {
			if r.Seq != first+int64(i) {
				t.Fatalf("record %d follows %d", r.Seq, records[max(i-1, 0)].Seq)
			}
		}
		if records[len(records)-1].Seq != done.Seq {
			t.Errorf("the last record is %d of %d", records[len(records)-1].Seq, done.Seq)
		}
		if archive {
			if p := history.Project("r", records); p.Phase != history.PhaseCompleted {
				t.Errorf("the records lead to %s", p.Phase)
			}
		}
	}
}

func TestLanesHaveTaskQueues(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged), Lanes: []string{"step:charge"}, TaskQueue: "own"})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t), Queue: "night"})
	e2, b2 := newTestEngine(t, Options{Activities: steps(charged)})
	start(t, e2, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	if got := b.runs["r"].queues; !slices.Equal(got, []string{"own.night.step:charge"}) || b.runs["r"].o.queue != "own.night" {
		t.Errorf("task queues %q", got)
	}
	if got := b2.runs["r"].queues; !slices.Equal(got, []string{"awp.default.step"}) {
		t.Errorf("task queues %q", got)
	}
	if got := e.performer.lanes([]string{"step:charge"}); !slices.Contains(got, "step") || !slices.Contains(got, "step:charge") {
		t.Errorf("a worker serves %q", got)
	}
}

// queued is a definition with the queue "night", whose node has more members.
func queued(t *testing.T, members string) *definition.Document {
	t.Helper()
	return enginetest.Define(t, `{"document":{"schema":"urn:test","name":"queued","version":"1"},"x-workflows-engine":{"uses":["queue"],"queue":"night"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"work","type":"step",`+members+`"config":{"handler":"charge"}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"work"},{"source":"work","target":"end"}]}`)
}

func TestQueuesOfADefinitionHaveTaskQueues(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	for id, c := range map[string]struct{ members, queue, runs, attempt string }{
		"root":  {"", "", "awp.night", "awp.night.step"},
		"node":  {`"queue":"gpu",`, "", "awp.night", "awp.gpu.step"},
		"start": {`"queue":"gpu",`, "day", "awp.day", "awp.gpu.step"},
	} {
		start(t, e, graph.StartRequest{ExecutionID: id, Definition: queued(t, c.members), Queue: c.queue})
		if got := b.runs[id].queues; !slices.Equal(got, []string{c.attempt}) || b.runs[id].o.queue != c.runs {
			t.Errorf("%s: task queues %q, of the run %q", id, got, b.runs[id].o.queue)
		}
	}
}

// agents is an executor whose attempts keep a journal.
type agents struct{ steps }

func (a agents) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Work: func(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
		return activities.End{}, errors.New("not called")
	}}
}

func TestUnsupportedIsRejectedFirst(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: agents{charged}})
	_, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	if p := requireCode(t, err, problem.Unsupported); p.At.NodeID != "work" {
		t.Errorf("%+v", p)
	}
	for _, q := range []history.ListQuery{{Oldest: true}, {Unhandled: true}, {UpdatedAfter: time.Now()}} {
		_, err := e.List(t.Context(), q)
		requireCode(t, err, problem.Unsupported)
	}
	_, err = graph.Need[graph.Forker](e, "forking")
	requireCode(t, err, problem.Unsupported)
	if len(b.runs) > 0 {
		t.Error("a run was started")
	}
}

// TestRetriesAreTheMachines: a failure is a result for Temporal, and the policy of the node decides.
func TestRetriesAreTheMachines(t *testing.T) {
	t.Parallel()
	calls := 0
	e, _ := newTestEngine(t, Options{Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		if calls++; calls < 3 {
			return nil, &activities.Failure{Code: "BUSY", Message: "later"}
		}
		return map[string]any{"attempt": req.Attempt}, nil
	})})
	d := enginetest.Define(t, enginetest.Linear("retry", `{"id":"begin","type":"start"}`, `{"id":"try","type":"step","config":{"handler":"x"},"retry":{"max_attempts":3,"initial_interval":"1h"}}`, `{"id":"end","type":"end"}`))
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: d})
	if run.Status != machine.AwaitingTimer {
		t.Fatalf("%+v", run)
	}
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: 5 * time.Hour}})
	for err == nil && !run.Status.Terminal() {
		run, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: 5 * time.Hour}})
	}
	if err != nil || run.Status != machine.Completed || run.FinalState["attempt"] != 3.0 || calls != 3 {
		t.Fatalf("%+v %v, %d calls", run, err, calls)
	}
}

// TestALongWalkIsDivided: stretches are counted, and calls get their turn between them.
func TestALongWalkIsDivided(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged), stretchUnits: 1})
	run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: approval(t)})
	if run.Status != machine.Interrupted {
		t.Fatalf("%+v", run)
	}
	run, err := e.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: map[string]any{"approve": true}})
	if err != nil || run.Status != machine.Completed {
		t.Fatalf("%+v %v", run, err)
	}
}

func TestListsComeFromVisibility(t *testing.T) {
	t.Parallel()
	e, _ := newTestEngine(t, Options{Activities: steps(charged)})
	for _, id := range []string{"a", "b", "c"} {
		start(t, e, graph.StartRequest{ExecutionID: id, Definition: approval(t), Title: "Run " + id})
	}
	page, err := e.List(t.Context(), history.ListQuery{Limit: 2, Phase: history.PhaseInterrupted})
	if err != nil || len(page.Executions) != 2 || page.NextCursor == "" || page.Executions[0].ID != "c" || page.Executions[0].Title != "Run c" || page.Executions[0].DefinitionName != "approval" {
		t.Fatalf("%+v %v", page, err)
	}
	page, err = e.List(t.Context(), history.ListQuery{Limit: 2, Cursor: page.NextCursor})
	if err != nil || len(page.Executions) != 1 || page.NextCursor != "" {
		t.Fatalf("%+v %v", page, err)
	}
	if n, err := e.Count(t.Context(), history.ListQuery{}, 2); n != 2 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	_, err = e.List(t.Context(), history.ListQuery{Cursor: "?"})
	requireCode(t, err, problem.InvalidListCursor)
	x, err := e.Peek(t.Context(), "a")
	if err != nil || x.Phase != history.PhaseInterrupted || x.Seq == 0 {
		t.Errorf("%+v %v", x, err)
	}
	run, err := e.Start(t.Context(), graph.StartRequest{DefinitionRef: "approval"})
	if err != nil || run.DefinitionName != "approval" || run.ExecutionID == "" {
		t.Errorf("%+v %v", run, err)
	}
	_, err = e.Start(t.Context(), graph.StartRequest{DefinitionRef: "approva"})
	if p := requireCode(t, err, problem.WorkflowNotFound); !strings.Contains(p.Hint, "approval") {
		t.Errorf("hint %q", p.Hint)
	}
}
