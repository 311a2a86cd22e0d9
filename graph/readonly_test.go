package graph_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestReadOnly: a Runner that only reads answers for runs with due timers, without a driver and with an unnoticed end of a
// subworkflow, and writes nothing; what would write is refused.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		fault := historytest.NewFaultStore(store)
		first := newRunner(t, fault, graph.Options{Activities: activities.ExecutorFunc(hangs), LeaseTTL: time.Minute})
		register(t, first, "urn:child", linear(t, "one", "a"))
		for id, d := range map[string]struct {
			nodes []string
			edges []string
		}{
			"nap":    {[]string{startNode(), timerWait("n", "1h"), endNode()}, []string{"s n", "n e"}},
			"parent": {[]string{startNode(), subworkflow("v", "urn:child"), endNode()}, []string{"s v", "v e"}},
			"signal": {[]string{startNode(), signalWait("w", "go"), endNode()}, []string{"s w", "w e"}},
		} {
			_, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: workflow(t, id, d.nodes, d.edges...), Wait: graph.Wait{Limit: graph.NoWait}})
			if err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		fault.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
		time.Sleep(2 * time.Hour)

		reads := historytest.NewFaultStore(store)
		r := newRunner(t, reads, graph.Options{Activities: &script{}, ReadOnly: true})
		for id, want := range map[string]machine.Status{
			"nap": machine.AwaitingTimer, "parent": machine.Running, "parent:sub:v": machine.Running, "signal": machine.AwaitingSignal,
		} {
			wantStatus(t, status(t, r, id), want)
		}
		found, err := r.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
		if err != nil || len(found.ExecutionIDs) != 1 || len(found.Due) != 1 || found.Root("parent:sub:v") != "parent" || found.Root("nap") != "nap" {
			t.Errorf("dry run: %+v, %v", found, err)
		}
		if found, err := r.Survey(t.Context(), "nap", "parent:sub:v"); err != nil || len(found.ExecutionIDs) != 1 || len(found.Due) != 1 {
			t.Errorf("survey: %+v, %v", found, err)
		}
		var out bytes.Buffer
		if err := r.Export(t.Context(), "parent", graph.ExportOptions{Now: time.Now()}, &out); err != nil {
			t.Error(err)
		}
		if _, err := r.Verify(t.Context(), "", false, func(f history.Finding) { t.Errorf("found %+v", f) }); err != nil {
			t.Error(err)
		}
		plain := newRunner(t, store, graph.Options{ReadOnly: true})
		if page, err := plain.Prune(t.Context(), history.PruneQuery{DryRun: true}); err != nil || len(page.Trees) > 0 {
			t.Errorf("prune: %+v, %v", page, err)
		}
		for call, do := range map[string]func() error{
			"Start":  func() error { _, err := r.Start(t.Context(), graph.StartRequest{}); return err },
			"Resume": func() error { _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "signal"}); return err },
			"Signal": func() error {
				_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "signal", Name: "go"})
				return err
			},
			"Submit": func() error {
				_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "signal", NodeID: "w", OK: true})
				return err
			},
			"Cancel":  func() error { _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "signal"}); return err },
			"Drive":   func() error { _, err := r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "parent"}); return err },
			"Recover": func() error { _, err := r.Recover(t.Context(), graph.RecoverRequest{}); return err },
			"Fork": func() error {
				_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "signal", Seq: 1})
				return err
			},
			"Import": func() error { _, err := r.Import(t.Context(), &out); return err },
			"Prune":  func() error { _, err := r.Prune(t.Context(), history.PruneQuery{}); return err },
			"Repair": func() error { _, err := r.Verify(t.Context(), "", true, nil); return err },
			"Shrink": func() error { return r.Shrink(t.Context()) },
		} {
			if err := do(); problemCode(err) != problem.StoreReadOnly {
				t.Errorf("%s: %v", call, err)
			}
		}
		for _, call := range reads.Calls() {
			switch call {
			case "Append", "PutDefinition", "Renew", "Release", "Claim", "Disown":
				t.Errorf("it calls %s", call)
			}
		}
	})
	_, err := graph.New(historymem.New(), graph.Options{ReadOnly: true, Work: graph.WorkAll})
	wantCode(t, err, problem.UsageError)
}

func problemCode(err error) problem.Code {
	p, _ := problem.As(err)
	if p == nil {
		return ""
	}
	return p.Code
}

// TestUnnoticedEndStaysUnnoticed: a Runner that only reads does not tell a run of the end of its subworkflow, which the death of
// a process has kept from it.
func TestUnnoticedEndStaysUnnoticed(t *testing.T) {
	t.Parallel()
	met := false
	for at := 1; !met && at < 20; at++ {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			fault := historytest.NewFaultStore(store)
			first := newRunner(t, fault, graph.Options{Activities: &script{}})
			register(t, first, "urn:child", linear(t, "one", "a"))
			fault.Set(historytest.Fault{At: at, Dead: true})
			parent := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
			_, _ = first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: parent, Wait: graph.Wait{Limit: graph.NoWait}}) // it may have died by then
			time.Sleep(time.Minute)
			child, err := store.Execution(t.Context(), "r:sub:v")
			if met = err == nil && child.Phase.Terminal() && fault.Struck(); !met {
				return
			}
			r := newRunner(t, store, graph.Options{ReadOnly: true})
			unchanged(t, store, func() { wantStatus(t, status(t, r, "r"), machine.Running) })
		})
	}
	if !met {
		t.Error("no death comes between the two ends")
	}
}

// only is an Engine and nothing more.
type only struct{ graph.Engine }

// TestNeed: a Runner is all that an engine can be; what only an Engine is lacks the rest.
func TestNeed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	needs(t, r, true)
	needs(t, only{r}, false)
	_, _, err := r.Size(t.Context())
	wantCode(t, err, problem.Unsupported)
	wantCode(t, r.Shrink(t.Context()), problem.Unsupported)
}

func needs(t *testing.T, e graph.Engine, has bool) {
	t.Helper()
	need[graph.Recoverer](t, e, has)
	need[graph.Forker](t, e, has)
	need[graph.Exporter](t, e, has)
	need[graph.Verifier](t, e, has)
	need[graph.Pruner](t, e, has)
}

func need[T any](t *testing.T, e graph.Engine, has bool) {
	t.Helper()
	_, err := graph.Need[T](e, "this")
	if has && err != nil || !has && problemCode(err) != problem.Unsupported {
		t.Errorf("%T: %v", *new(T), err)
	}
}
