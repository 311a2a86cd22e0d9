package graph_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// moved exports a run from one store and imports it into a new one.
func moved(t *testing.T, from history.Store, id string) (*historymem.Store, *graph.ImportResult) {
	t.Helper()
	var file bytes.Buffer
	if err := graph.Export(t.Context(), from, id, graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	to := historymem.New()
	res, err := graph.Import(t.Context(), to, &file)
	if err != nil {
		t.Fatal(err)
	}
	return to, res
}

// TestARunGoesOnWhereItWasImported moves a run between stores at each of its waits: a host's activity, a timer, a signal,
// an interrupt in a subworkflow, an activity in process.
func TestARunGoesOnWhereItWasImported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
		child := workflow(t, "child", []string{startNode(), signalWait("cw", "inner"), endNode()}, "s cw", "cw e")
		register(t, r, "child", child)
		d := workflow(t, "w", []string{startNode(), tool("a"), timerWait("w", "1h"), signalWait("g", "go"), subworkflow("v", "child"), tool("b"), endNode()},
			"s a", "a w", "w g", "g v", "v b", "b e")
		start(t, r, "r", d, nil)
		var runs int
		next := func(want machine.Status) {
			t.Helper()
			wantStatus(t, status(t, r, "r"), want)
			closeRunner(t, r)
			var res *graph.ImportResult
			store, res = moved(t, store, "r")
			runs = 1 + res.Subworkflows
			r = newRunner(t, store, graph.Options{Work: graph.WorkAll})
			register(t, r, "child", child)
			findings, err := graph.Inspect(t.Context(), store, "r")
			if err != nil || len(findings) > 0 {
				t.Errorf("%v, %v", findings, err)
			}
			wantStatus(t, status(t, r, "r"), want)
		}
		next(machine.AwaitingActivity)
		submit(t, r, "r", "a", object{"a": 1})
		next(machine.AwaitingTimer)
		time.Sleep(time.Hour + time.Minute)
		next(machine.AwaitingSignal)
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"}); err != nil {
			t.Fatal(err)
		}
		next(machine.AwaitingSignal)
		if runs != 2 {
			t.Errorf("%d runs were moved", runs)
		}
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r:sub:v", Name: "inner"}); err != nil {
			t.Fatal(err)
		}
		next(machine.AwaitingActivity)
		submit(t, r, "r", "b", object{"b": 2})
		next(machine.Completed)
		if n := count(records(t, store, "r"), history.ActivityCompleted); n != 2 {
			t.Errorf("%d outcomes", n)
		}
	})
}

// TestAnImportedRunIsMovedOn: its values need not be those that this engine derives, and a file with it says which records they are.
func TestAnImportedRunIsMovedOn(t *testing.T) {
	t.Parallel()
	d := workflow(t, "w", []string{startNode(), tool("a"), tool("b"), endNode()}, "s a", "a b", "b e")
	source := historymem.New()
	r := newRunner(t, source, graph.Options{DefaultMode: machine.HostMediated, Branches: machine.Sequential})
	start(t, r, "r", d, nil)
	submit(t, r, "r", "a", object{"a": 1})
	rs := records(t, source, "r")
	for i := range rs {
		if p := &rs[i].Payload; rs[i].Name == history.StateUpdated && p.NodeID == "a" {
			p.State = object{"a": "one"}
		}
	}
	store := imported(t, engineDatabase{"r": asEngine("r", rs)}, machine.HostMediated, d)
	var file bytes.Buffer
	if err := graph.Export(t.Context(), store, "r", graph.ExportOptions{Now: time.Now()}, &file); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(file.Bytes(), []byte(`"foreign":true`)); n != len(rs) {
		t.Errorf("%d of %d records are marked as another engine's: %s", n, len(rs), &file)
	}
	to, err := historysql.Open(t.Context(), filepath.Join(t.TempDir(), "other.db"), historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	moved, err := graph.Import(t.Context(), to, &file)
	if err != nil {
		t.Fatal(err)
	}
	if n := moved.NotReplayed; len(n) != 1 || n[0].ExecutionID != "r" || n[0].Records != len(rs) {
		t.Errorf("not replayed: %+v", n)
	}
	if findings, err := graph.Inspect(t.Context(), to, "r"); err != nil || len(findings) > 0 {
		t.Errorf("%v, %v", findings, err)
	}
	r = newRunner(t, to, graph.Options{})
	run := submit(t, r, "r", "b", object{"b": 2})
	if wantStatus(t, run, machine.Completed); !sameJSON(run.FinalState, object{"a": "one", "b": 2}) {
		t.Errorf("ended with %v", run.FinalState)
	}
}

// TestRefusedImports leave nothing.
func TestRefusedImports(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{DefaultMode: machine.HostMediated})
	start(t, r, "r", linear(t, "lin", "a", "b"), nil)
	start(t, r, "x", linear(t, "lin", "c"), nil)
	export := func(store history.Store, id string) string {
		var file bytes.Buffer
		if err := graph.Export(t.Context(), store, id, graph.ExportOptions{}, &file); err != nil {
			t.Fatal(err)
		}
		return file.String()
	}
	early := export(store, "r")
	submit(t, r, "r", "a", nil)
	late := export(store, "r")

	other, err := store.Definition(t.Context(), status(t, r, "x").DefinitionHash)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		file string
		into history.Store
		want string
		code problem.Code
	}{
		"it has gone on":         {early, store, "has continued since the export", problem.DuplicateExecutionID},
		"the definition is gone": {export(&spoilt{Store: store, missing: true}, "r"), historymem.New(), "neither in the file nor stored", problem.DefinitionNotFound},
		"another definition":     {export(&swapped{store, other}, "r"), historymem.New(), "the definition leads to ScheduleNode of \"c\"", problem.Nondeterminism},
	} {
		_, err := graph.Import(t.Context(), c.into, strings.NewReader(c.file))
		wantCode(t, err, c.code)
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.into.Execution(t.Context(), "r"); c.into != history.Store(store) && err == nil {
			t.Errorf("%s: the run is there", name)
		}
	}
	res, err := graph.Import(t.Context(), store, strings.NewReader(late))
	if err != nil || !res.Existed {
		t.Errorf("the same again: %+v, %v", res, err)
	}
	earlier := historymem.New()
	if _, err := graph.Import(t.Context(), earlier, strings.NewReader(early)); err != nil {
		t.Fatal(err)
	}
	_, err = graph.Import(t.Context(), earlier, strings.NewReader(late))
	wantCode(t, err, problem.DuplicateExecutionID)
	if err := graph.Export(t.Context(), store, "nobody", graph.ExportOptions{}, &bytes.Buffer{}); err == nil {
		t.Error("a run that does not exist was exported")
	} else {
		wantCode(t, err, problem.ExecutionNotFound)
	}
}

// swapped is a store in which a run says that it was begun with another definition.
type swapped struct {
	history.Store
	other history.StoredDefinition
}

func (s *swapped) Execution(ctx context.Context, id string) (history.Execution, error) {
	e, err := s.Store.Execution(ctx, id)
	e.DefinitionHash = s.other.Hash
	return e, err
}

func (s *swapped) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	rs, err := s.Store.Read(ctx, id, from, limit)
	for i := range rs {
		if hash := rs[i].Payload.DefinitionHash; hash != "" {
			rs[i].Raw = bytes.ReplaceAll(rs[i].Raw, []byte(hash), []byte(s.other.Hash))
		}
	}
	return rs, err
}
