package graph_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// as is a context of a call that somebody makes, nobody for "".
func as(t *testing.T, name string) context.Context {
	if name == "" {
		return t.Context()
	}
	return graph.WithActor(t.Context(), history.Actor{Via: "test", Name: name, Version: "1"})
}

// signatures lists the records of a run that name an actor, as "Name by actor".
func signatures(t *testing.T, store history.Store, id string) []string {
	t.Helper()
	var out []string
	for _, r := range records(t, store, id) {
		if a := r.Payload.Actor; a != nil {
			out = append(out, fmt.Sprintf("%s by %s", r.Name, a.Name))
		}
	}
	return out
}

func wantSigned(t *testing.T, store history.Store, id string, want ...string) {
	t.Helper()
	if got := signatures(t, store, id); !slices.Equal(got, want) {
		t.Errorf("%s: signed %q, want %q", id, got, want)
	}
}

// actions are a run with every kind of control action but cancel and fork, each made by who is named; the person who makes the run
// go on past its timer only looks.
func actions(t *testing.T, r *graph.Runner, by ...string) {
	t.Helper()
	child := workflow(t, "child", []string{startNode(), signalWait("cw", "inner"), endNode()}, "s cw", "cw e")
	register(t, r, "child", child)
	d := workflow(t, "w", []string{startNode(), tool("a"), tool("b"), interrupt("ask"), timerWait("w", "1h"), signalWait("g", "go"), subworkflow("v", "child"), endNode()},
		"s a", "a b", "b ask", "ask w", "w g", "g v", "v e")
	must := func(_ *view.Run, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.Start(as(t, by[0]), graph.StartRequest{ExecutionID: "r", Definition: d}))
	must(r.SubmitActivity(as(t, by[1]), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"a": 1.0}}))
	must(r.SubmitActivity(as(t, by[2]), graph.SubmitRequest{ExecutionID: "r", NodeID: "b", OK: true}))
	must(r.Resume(as(t, by[3]), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}))
	time.Sleep(time.Hour + time.Minute)
	must(r.Status(as(t, by[4]), graph.StatusRequest{ExecutionID: "r"}))
	must(r.Signal(as(t, by[5]), graph.SignalRequest{ExecutionID: "r", Name: "go"}))
	must(r.Signal(as(t, by[6]), graph.SignalRequest{ExecutionID: "r", Name: "inner"}))
	wantStatus(t, settled(t, r, "r"), machine.Completed)
}

// TestEveryActionRecordsItsActor: who started, answered or signalled a run stands in the first record of the action, in the run that
// took it, and nowhere else. A call that repeats another one changes nothing.
func TestEveryActionRecordsItsActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		actions(t, r, "ann", "bob", "cy", "dee", "eve", "fay", "gus")
		wantSigned(t, store, "r", "ExecutionStarted by ann", "ActivityCompleted by bob", "ActivityCompleted by cy", "ResumeInterrupt by dee", "DeliverSignal by fay")
		wantSigned(t, store, "r:sub:v", "DeliverSignal by gus")
		if a := records(t, store, "r")[0].Payload.Actor; *a != (history.Actor{Via: "test", Name: "ann", Version: "1"}) {
			t.Errorf("recorded %+v", a)
		}
		findings, err := graph.Inspect(t.Context(), store, "r")
		if err != nil || len(findings) > 0 {
			t.Errorf("%v, %v", findings, err)
		}
		unchanged(t, store, func() {
			run, err := r.SubmitActivity(as(t, "zoe"), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true, Result: object{"a": 1.0}})
			if err != nil || !run.Repeated {
				t.Errorf("taken twice: %+v, %v", run, err)
			}
			if _, err := r.Start(as(t, "zoe"), graph.StartRequest{ExecutionID: "r", AllowExisting: true}); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestATimerThatACallFiresHasNoActor: a call fires what was due before it, on behalf of the engine.
func TestATimerThatACallFiresHasNoActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		d := workflow(t, "w", []string{startNode(), timerWait("w", "1h"), signalWait("g", "go"), endNode()}, "s w", "w g", "g e")
		start(t, r, "r", d, nil)
		closeRunner(t, r)
		time.Sleep(2 * time.Hour)
		if _, err := newRunner(t, store, graph.Options{}).Signal(as(t, "ann"), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		wantSigned(t, store, "r", "DeliverSignal by ann")
	})
}

// TestCancelRecordsItsActor: in the run that was named, also without its definition; the subworkflows that end with it are cancelled by
// the engine.
func TestCancelRecordsItsActor(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{})
	register(t, r, "child", workflow(t, "child", []string{startNode(), signalWait("cw", "inner"), endNode()}, "s cw", "cw e"))
	start(t, r, "r", workflow(t, "w", []string{startNode(), subworkflow("v", "child"), endNode()}, "s v", "v e"), nil)
	if _, err := r.Cancel(as(t, "ann"), graph.CancelRequest{ExecutionID: "r"}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, settled(t, r, "r:sub:v"), machine.Cancelled)
	wantSigned(t, store, "r", "CancelExecution by ann")
	wantSigned(t, store, "r:sub:v")

	lost := historymem.New()
	if err := lost.Append(t.Context(), history.Batch{
		ExecutionID: "x", Records: records(t, store, "r")[:3], Execution: history.Project("x", records(t, store, "r")[:3]),
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := newRunner(t, lost, graph.Options{}).Cancel(as(t, "bob"), graph.CancelRequest{ExecutionID: "x"}); err != nil {
		t.Fatal(err)
	}
	wantSigned(t, lost, "x", "CancelExecution by bob")
}

// TestAForkRecordsItsActor: the fork's first record names who forked, not who started the other run; the answers that were copied
// keep their authors.
func TestAForkRecordsItsActor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, store := host(t, graph.Options{})
		actions(t, r, "ann", "bob", "cy", "dee", "eve", "fay", "gus")
		at := int64(0)
		for _, rec := range records(t, store, "r") {
			if rec.Name == history.InterruptResumed {
				at = rec.Seq
			}
		}
		for _, c := range []struct{ by, first string }{{"hal", "ExecutionStarted by hal"}, {"", ""}} {
			run, err := r.Fork(as(t, c.by), graph.ForkRequest{ExecutionID: "r", Seq: at})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"ActivityCompleted by bob", "ActivityCompleted by cy", "ResumeInterrupt by dee"}
			if c.first != "" {
				want = slices.Insert(want, 0, c.first)
			}
			wantSigned(t, store, run.ExecutionID, want...)
		}
	})
}

// TestExecutorsHaveNoActor: what an executor begins with its context is its own doing, not that of the call that has led to it.
func TestExecutorsHaveNoActor(t *testing.T) {
	t.Parallel()
	seen := make(chan *history.Actor, 1)
	r := newRunner(t, historymem.New(), graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		seen <- run.ActorOf(ctx)
		return activities.Result{}, nil
	})})
	_, err := r.Start(as(t, "ann"), graph.StartRequest{Definition: workflow(t, "w", []string{startNode(), tool("a"), endNode()}, "s a", "a e")})
	if a := <-seen; err != nil || a != nil {
		t.Errorf("%v, %v", a, err)
	}
}

var actorMember = regexp.MustCompile(`,"actor":\{[^{}]*\}`)

// TestAHistoryWithoutActorsIsAsItWas: actors are the only difference that they make, and without them nothing is recorded.
func TestAHistoryWithoutActorsIsAsItWas(t *testing.T) {
	t.Parallel()
	texts := func(by ...string) (out []string) {
		synctest.Test(t, func(t *testing.T) {
			r, store := host(t, graph.Options{})
			actions(t, r, by...)
			for _, id := range []string{"r", "r:sub:v"} {
				for _, rec := range records(t, store, id) {
					out = append(out, fmt.Sprintf("%d %s %s %s", rec.Seq, rec.Name, rec.CreatedAt, rec.Text(id)))
				}
			}
		})
		return out
	}
	with, without := texts("ann", "bob", "cy", "dee", "eve", "fay", "gus"), texts("", "", "", "", "", "", "")
	found := 0
	for i, text := range with {
		plain := actorMember.ReplaceAllString(text, "")
		if plain != text {
			found++
		}
		if i >= len(without) || plain != without[i] {
			t.Fatalf("%s: without actors %s", text, without[min(i, len(without)-1)])
		}
	}
	if found != 6 || len(with) != len(without) || strings.Contains(strings.Join(without, ""), `"actor"`) {
		t.Errorf("%d records with actors, %d and %d records", found, len(with), len(without))
	}
}

// TestActorsOutliveCrashAndReplay: a process ends in the middle of a run, another one builds the run from its history and finishes it.
func TestActorsOutliveCrashAndReplay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	open := func() (*historysql.Store, *graph.Runner) {
		store, err := historysql.Open(t.Context(), path, historysql.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store, newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	}
	store, r := open()
	d := workflow(t, "w", []string{startNode(), tool("a"), interrupt("ask"), endNode()}, "s a", "a ask", "ask e")
	if _, err := r.Start(as(t, "ann"), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SubmitActivity(as(t, "bob"), graph.SubmitRequest{
		ExecutionID: "r", NodeID: "a", OK: true, Result: object{"large": strings.Repeat("x", 200_000)}, // stored short
	}); err != nil {
		t.Fatal(err)
	}
	// The first process is not closed: as far as the other one can see, it has died.
	next, r := open()
	if findings, err := graph.Inspect(t.Context(), next, "r"); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", findings, err)
	}
	if _, err := r.Resume(as(t, "cy"), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}}); err != nil {
		t.Fatal(err)
	}
	wantSigned(t, store, "r", "ExecutionStarted by ann", "ActivityCompleted by bob", "ResumeInterrupt by cy")
}

// TestImportRecordsItsActor: who imported a run, and when, stands in its first record; who imported it where it came from before does
// not stand there any more. The other records and the authors in them stay, and an import that repeats another one changes nothing.
func TestImportRecordsItsActor(t *testing.T) {
	t.Parallel()
	_, from := host(t, graph.Options{})
	d := workflow(t, "w", []string{startNode(), tool("a"), tool("b"), endNode()}, "s a", "a b", "b e")
	r := newRunner(t, from, graph.Options{DefaultMode: machine.HostMediated})
	if _, err := r.Start(as(t, "ann"), graph.StartRequest{ExecutionID: "r", Definition: d, Input: object{"x": object{"importedBy": object{"name": "ann"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SubmitActivity(as(t, "bob"), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true}); err != nil {
		t.Fatal(err)
	}
	export := func(store history.Store) []byte {
		t.Helper()
		var file bytes.Buffer
		if err := graph.Export(t.Context(), store, "r", graph.ExportOptions{}, &file); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	texts := func(store history.Store) (out []string) {
		for _, rec := range records(t, store, "r") {
			out = append(out, string(rec.Text("r")))
		}
		return out
	}
	for _, foreign := range []bool{false, true} {
		store := from
		if foreign { // a store that keeps the text of each record as another engine wrote it
			other := historymem.New()
			rs := records(t, from, "r")
			for i := range rs {
				rs[i].Raw = slices.Concat([]byte(`{ "unknown": 1, `), rs[i].Text("r")[1:])
			}
			if err := other.Import(t.Context(), history.Import{Definitions: []history.StoredDefinition{stored(t, from, "r")}, Runs: []history.ImportedRun{
				{ExecutionID: "r", Records: rs, Execution: history.Project("r", rs)},
			}}); err != nil {
				t.Fatal(err)
			}
			store = other
		}
		original := texts(store)
		for hop, by := range []string{"cy", "", "dee"} {
			file := export(store)
			sql, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = sql.Close() })
			if _, err := graph.Import(as(t, by), sql, bytes.NewReader(file)); err != nil {
				t.Fatalf("hop %d: %v", hop, err)
			}
			got := texts(sql)
			want := []string{"cy", "cy", "dee"}[hop]
			if p := records(t, sql, "r")[0].Payload; p.ImportedBy == nil || p.ImportedBy.Name != want || p.ImportedAt.IsZero() {
				t.Errorf("hop %d: imported by %v at %v", hop, p.ImportedBy, p.ImportedAt)
			}
			if n := strings.Count(got[0], `"importedAt"`); n != 1 || !strings.HasPrefix(got[0], original[0][:len(original[0])-1]) || !slices.Equal(got[1:], original[1:]) {
				t.Errorf("hop %d, %d times: %q, was %q", hop, n, got, original)
			}
			wantSigned(t, sql, "r", "ExecutionStarted by ann", "ActivityCompleted by bob")
			for _, again := range [][]byte{file, export(sql)} {
				if res, err := graph.Import(as(t, "zoe"), sql, bytes.NewReader(again)); err != nil || !res.Existed {
					t.Errorf("hop %d: %+v, %v", hop, res, err)
				}
			}
			if after := texts(sql); !slices.Equal(after, got) {
				t.Errorf("hop %d: a repeated import changed %q to %q", hop, got, after)
			}
			if findings, err := graph.Inspect(t.Context(), sql, "r"); err != nil || len(findings) > 0 {
				t.Errorf("hop %d: %v, %v", hop, findings, err)
			}
			store = sql
		}
	}
}

func stored(t *testing.T, store history.Store, id string) history.StoredDefinition {
	t.Helper()
	exec, err := store.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Definition(t.Context(), exec.DefinitionHash)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAnImporterInAnotherFormIsRefused: a file in which it stands where this engine does not write it is not made into a record that
// says it twice.
func TestAnImporterInAnotherFormIsRefused(t *testing.T) {
	t.Parallel()
	_, from := host(t, graph.Options{})
	start(t, newRunner(t, from, graph.Options{DefaultMode: machine.HostMediated}), "r", workflow(t, "w", []string{startNode(), tool("a"), endNode()}, "s a", "a e"), nil)
	rs := records(t, from, "r")
	for i := range rs {
		rs[i].Raw = rs[i].Text("r")
	}
	rs[0].Raw = slices.Concat([]byte(`{"importedBy":{"name":"ann"},`), rs[0].Raw[1:])
	odd := historymem.New()
	if err := odd.Import(t.Context(), history.Import{Definitions: []history.StoredDefinition{stored(t, from, "r")}, Runs: []history.ImportedRun{
		{ExecutionID: "r", Records: rs, Execution: history.Project("r", rs)},
	}}); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := graph.Export(t.Context(), odd, "r", graph.ExportOptions{}, &file); err != nil {
		t.Fatal(err)
	}
	to := historymem.New()
	_, err := graph.Import(as(t, "bob"), to, &file)
	wantCode(t, err, problem.ImportInvalid)
	if rs, _ := to.Read(t.Context(), "r", 1, 0); len(rs) > 0 {
		t.Errorf("%d records", len(rs))
	}
}
