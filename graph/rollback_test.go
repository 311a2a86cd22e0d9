package graph_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// saga books two things and pays. Its bookings are undone at some ends.
func saga(t testing.TB, rollback string) *definition.Document {
	t.Helper()
	return workflowWith(t, "saga", `"x-workflows-engine":{"uses":["compensate"],"rollback":[`+rollback+`]}`, []string{
		startNode(), tool("flight", `"compensate":{"node":"no_flight","as":"undo"}`),
		tool("hotel", `"compensate":{"node":"no_hotel","as":"undo"}`),
		tool("pay"), tool("no_flight"), tool("no_hotel"), endNode(),
	}, "s flight", "flight hotel", "hotel pay", "pay e")
}

// slow pays in an hour, and takes a minute for each compensation.
func slow() *script {
	minute := after(time.Minute, object{})
	return &script{answers: answers{"pay": after(time.Hour, nil), "no_hotel": minute, "no_flight": minute}}
}

// unawaited starts a run and does not wait.
func unawaited(d *definition.Document) graph.StartRequest {
	return graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}
}

// wantTrue checks what the history of a run says by a replay, and that it can be continued from its stored position.
func wantTrue(t *testing.T, store history.Store, id string) {
	t.Helper()
	findings, err := transfer.Inspect(t.Context(), store, id, nil)
	if err != nil || len(findings) > 0 {
		t.Errorf("%s: %v, %v", id, findings, err)
	}
}

// TestTheHostPerformsARollback cancels a run whose compensations are the host's, and repeats the cancel.
func TestTheHostPerformsARollback(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", saga(t, `"cancel"`), nil)
	submit(t, r, "r", "flight", object{"seat": "1a"})
	submit(t, r, "r", "hotel", object{"room": 7})
	run := cancel(t, r, "r", "ill")
	wantStatus(t, run, machine.AwaitingActivity)
	want := []machine.RollbackProgress{{Reason: machine.RollbackCancel, Total: 2, Undoing: "hotel#1"}}
	if !slices.Equal(run.Rollbacks, want) || len(run.Pending) != 1 || run.Pending[0].NodeID != "no_hotel" {
		t.Fatalf("run %+v", run)
	}
	if found := run.Pending[0].State["undo"]; !sameJSON(found, object{"node": "hotel", "output": object{"room": 7}}) {
		t.Errorf("the compensation finds %v", found)
	}
	wantTrue(t, store, "r")
	_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "pay", OK: true})
	e := wantCode(t, err, problem.SubmitNodeMismatch)
	if says := `the run is being rolled back and does not need node "pay": the run awaits node "no_hotel", not "pay"`; e.Message != says {
		t.Errorf("refused: %s", e.Message)
	}
	run = submit(t, r, "r", "no_hotel", object{})
	if run.Rollbacks[0].Undone != 1 || run.Rollbacks[0].Undoing != "flight#1" {
		t.Errorf("rollbacks %+v", run.Rollbacks)
	}
	run = submit(t, r, "r", "no_flight", object{})
	wantStatus(t, run, machine.Cancelled)
	if run.Reason != "ill" || len(run.Rollbacks) > 0 || run.Compensated != 2 {
		t.Errorf("run %+v", run)
	}
	if stored := status(t, newRunner(t, store, graph.Options{}), "r"); stored.Compensated != 2 {
		t.Errorf("as it is stored: %+v", stored)
	}
	wantTrue(t, store, "r")
	unchanged(t, store, func() { cancel(t, r, "r", "again") })
}

// TestACancelEndsARollback cancels a run twice: what is left is named.
func TestACancelEndsARollback(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", saga(t, `"cancel"`), nil)
	submit(t, r, "r", "flight", object{})
	submit(t, r, "r", "hotel", object{})
	cancel(t, r, "r", "ill")
	submit(t, r, "r", "no_hotel", object{})
	run := cancel(t, r, "r", "well")
	if wantStatus(t, run, machine.Cancelled); run.Reason != "well (not compensated: flight)" || run.Compensated != 0 {
		t.Errorf("reason %q", run.Reason)
	}
	wantTrue(t, store, "r")
}

// TestARollbackGoesOnElsewhere cancels a run in another process than the one that drives it, and ends processes within the rollback.
func TestARollbackGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		s := slow()
		driver := newRunner(t, store, graph.Options{Activities: s, Work: graph.WorkAll})
		other := newRunner(t, store, graph.Options{})
		if _, err := driver.Start(t.Context(), unawaited(saga(t, `"cancel"`))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantStatus(t, cancel(t, other, "r", ""), machine.Running)
		time.Sleep(10 * time.Second)
		closeRunner(t, driver)
		next := newRunner(t, store, graph.Options{Activities: s, Work: graph.WorkAll})
		wantStatus(t, settled(t, next, "r"), machine.Cancelled)
		rs := records(t, store, "r")
		if n := count(rs, history.RollbackStarted); n != 1 {
			t.Errorf("%d rollbacks", n)
		}
		for _, node := range []string{"no_hotel", "no_flight"} {
			if n := countOf(rs, history.ActivityCompleted, node); n != 1 {
				t.Errorf("%s completed %d times", node, n)
			}
		}
		wantTrue(t, store, "r")
	})
}

func countOf(rs []history.Record, name history.Name, node string) int {
	n := 0
	for i := range rs {
		if rs[i].Name == name && rs[i].Payload.NodeID == node {
			n++
		}
	}
	return n
}

// TestASubworkflowRollsBackByItself cancels a parent. Its subworkflow undoes what it has done, also after the parent has ended and its
// process with it; that the parent has ended does not end the rollback.
func TestASubworkflowRollsBackByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		s := slow()
		parent := workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
		process := func() *graph.Runner {
			r := newRunner(t, store, graph.Options{Activities: s, Work: graph.WorkAll})
			register(t, r, "urn:child", saga(t, `"cancel"`))
			return r
		}
		r := process()
		if _, err := r.Start(t.Context(), unawaited(parent)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		wantStatus(t, cancel(t, r, "r", "ill"), machine.Cancelled)
		time.Sleep(10 * time.Second)
		if child := status(t, r, "r:sub:v"); len(child.Rollbacks) != 1 || child.Rollbacks[0].Undoing != "hotel#1" {
			t.Fatalf("child %+v", child)
		}
		closeRunner(t, r)
		wantStatus(t, settled(t, process(), "r:sub:v"), machine.Cancelled)
		rs := records(t, store, "r:sub:v")
		if n := count(rs, history.CancelExecution); n != 1 || countOf(rs, history.ActivityCompleted, "no_flight") != 1 {
			t.Errorf("%d cancels in %v", n, names(rs, ""))
		}
		wantTrue(t, store, "r:sub:v")
	})
}

// TestAForkDoesNotBuildUponWhatIsUndone refuses to begin a run after nodes that a rollback has undone, unless the record is named.
func TestAForkDoesNotBuildUponWhatIsUndone(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", saga(t, `"failure"`), nil)
	submit(t, r, "r", "flight", object{})
	submit(t, r, "r", "hotel", object{})
	declined := graph.SubmitRequest{ExecutionID: "r", NodeID: "pay", Error: "no money", Code: "DECLINED"}
	if _, err := r.SubmitActivity(t.Context(), declined); err != nil {
		t.Fatal(err)
	}
	submit(t, r, "r", "no_hotel", object{})
	submit(t, r, "r", "no_flight", object{})
	for _, run := range []*view.Run{status(t, r, "r"), status(t, newRunner(t, store, graph.Options{}), "r")} {
		if wantStatus(t, run, machine.Failed); run.ErrorNodeID != "pay" || run.ErrorCode != "DECLINED" || run.Compensated != 2 {
			t.Errorf("failed at %q by %s", run.ErrorNodeID, run.ErrorCode)
		}
	}
	for _, node := range []string{"pay", "hotel"} {
		_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: node})
		if e := wantCode(t, err, problem.ValidationError); e.At.NodeID != "flight" || !strings.Contains(e.Hint, `before node "flight"`) {
			t.Errorf("refused at %q: %s", e.At.NodeID, e.Hint)
		}
	}
	for _, req := range []graph.ForkRequest{{BeforeNode: "flight"}, {Seq: 6}} {
		req.ExecutionID = "r"
		run, err := r.Fork(t.Context(), req)
		if err != nil || run.Pending[0].NodeID != "flight" {
			t.Errorf("%+v: %+v, %v", req, run, err)
		}
	}
	if run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Seq: 22}); err != nil || run.Pending[0].NodeID != "pay" {
		t.Errorf("%+v, %v", run, err)
	}
}

// TestAForkDuringARollback: what a rollback is about to undo counts as undone from its beginning on, for every reason of rollbacks.
func TestAForkDuringARollback(t *testing.T) {
	t.Parallel()
	caught := workflowWith(t, "w", `"x-workflows-engine":{"uses":["compensate","catch"]}`, []string{
		startNode(), tool("flight", `"compensate":{"node":"no_flight"}`), tool("pay", `"catch":[{"codes":["*"],"target":"e","rollback":true}]`), tool("no_flight"), endNode(),
	}, "s flight", "flight pay", "pay e")
	for name, d := range map[string]*definition.Document{"failure": saga(t, `"failure"`), "cancel": saga(t, `"cancel"`), "catch": caught} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := host(t, graph.Options{})
			start(t, r, "r", d, nil)
			submit(t, r, "r", "flight", object{})
			if name != "catch" {
				submit(t, r, "r", "hotel", object{})
			}
			if name == "cancel" {
				cancel(t, r, "r", "ill")
			} else if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "pay", Error: "no money"}); err != nil {
				t.Fatal(err)
			}
			check := func(says string) {
				t.Helper()
				for _, own := range []*definition.Document{nil, d} {
					_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "pay", Definition: own})
					if e := wantCode(t, err, problem.ValidationError); e.At.NodeID != "flight" || !strings.Contains(e.Message, says) {
						t.Errorf("refused at %q: %s", e.At.NodeID, e.Message)
					}
				}
			}
			check("is about to undo")
			run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "flight", NewExecutionID: "f"})
			if err != nil || run.Pending[0].NodeID != "flight" || len(run.Rollbacks) > 0 {
				t.Errorf("%+v, %v", run, err)
			}
			wantTrue(t, store, "f")
			if name != "catch" {
				submit(t, r, "r", "no_hotel", object{})
				check("is about to undo")
			}
			submit(t, r, "r", "no_flight", object{})
			check("has undone")
		})
	}
}

// TestAForkBeforeVisitsThatAreUndone begins before the first of the visits of a loop that a rollback has undone, also with a corrected state.
func TestAForkBeforeVisitsThatAreUndone(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", workflowWith(t, "w", `"x-workflows-engine":{"uses":["compensate","loop"],"rollback":["failure"]}`, []string{
		startNode(), loopNode("rounds", ".i < 2", "i", "book", "pay"), tool("book", `"compensate":{"node":"undo"}`), tool("pay"), tool("undo"), endNode(),
	}, "s rounds", "book rounds", "pay e"), nil)
	submit(t, r, "r", "book", object{"at": "first"})
	submit(t, r, "r", "book", object{"at": "second"})
	if _, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "pay", Error: "no money"}); err != nil {
		t.Fatal(err)
	}
	submit(t, r, "r", "undo", object{})
	wantStatus(t, submit(t, r, "r", "undo", object{}), machine.Failed)
	_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "pay", Correction: object{"n": 1}})
	if e := wantCode(t, err, problem.ValidationError); e.At.NodeID != "book" || !strings.Contains(e.Hint, `before node "book"`) {
		t.Errorf("refused at %q: %s", e.At.NodeID, e.Hint)
	}
	for id, correction := range map[string]object{"f": nil, "c": {"n": 1}} {
		run, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: "book", Correction: correction, NewExecutionID: id})
		if err != nil {
			t.Fatal(err)
		}
		if run.Pending[0].NodeID != "book" || run.State["at"] != nil || (run.State["n"] != nil) != (correction != nil) {
			t.Errorf("%s: %+v with %v", id, run.Pending, run.State)
		}
		wantTrue(t, store, id)
	}
}

// TestARollbackCancelsSubworkflows cancels a run that waits for a subworkflow: that one ends while the run is rolled back.
func TestARollbackCancelsSubworkflows(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	register(t, r, "urn:child", linear(t, "child", "c"))
	parent := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["compensate"],"rollback":["cancel"]}`, []string{
		startNode(), tool("flight", `"compensate":{"node":"no_flight"}`), subworkflow("v", "urn:child"), tool("no_flight"), endNode(),
	}, "s flight", "flight v", "v e")
	start(t, r, "r", parent, nil)
	submit(t, r, "r", "flight", object{})
	for status(t, r, "r").Status != machine.AwaitingActivity { // the subworkflow begins by itself
		if _, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &graph.Wait{Limit: time.Second}}); err != nil {
			t.Fatal(err)
		}
	}
	run := cancel(t, r, "r", "ill")
	if len(run.Pending) != 1 || run.Pending[0].NodeID != "no_flight" {
		t.Fatalf("run %+v", run)
	}
	wantStatus(t, settled(t, r, "r:sub:v"), machine.Cancelled)
	wantStatus(t, submit(t, r, "r", "no_flight", object{}), machine.Cancelled)
	wantTrue(t, store, "r")
}

// TestAFailedCompensationIsRetriedByAFork forks a run before the compensation that failed: the rollback goes on, and the run ends as
// it would have.
func TestAFailedCompensationIsRetriedByAFork(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, rollback string
		want           machine.Status
		code           problem.Code
	}{
		{"failure", `"failure"`, machine.Failed, "DECLINED"},
		{"cancel", `"cancel"`, machine.Cancelled, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := historymem.New()
			s := &script{answers: answers{
				"no_flight": func(_ context.Context, req activities.Request) (any, error) {
					if req.ExecutionID == "r" {
						return nil, &activities.Failure{Code: "BUSY", Message: "call again"}
					}
					return object{}, nil
				},
				"pay": func(ctx context.Context, _ activities.Request) (any, error) {
					if tt.name == "failure" {
						return nil, &activities.Failure{Code: "DECLINED", Message: "no money"}
					}
					<-ctx.Done()
					return nil, ctx.Err()
				},
			}}
			r := newRunner(t, store, graph.Options{Activities: s})
			if _, err := r.Start(t.Context(), unawaited(saga(t, tt.rollback))); err != nil {
				t.Fatal(err)
			}
			if tt.name == "cancel" {
				for status(t, r, "r").CurrentNodeID != "pay" {
					soon := graph.Wait{Limit: 10 * time.Millisecond}
					if _, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &soon}); err != nil {
						t.Fatal(err)
					}
				}
				cancel(t, r, "r", "ill")
			}
			run := settled(t, r, "r")
			wantStatus(t, run, machine.Failed)
			named := strings.Contains(run.Error, "not compensated: flight")
			if run.ErrorCode != string(problem.CompensationFailed) || run.ErrorNodeID != "no_flight" || !named {
				t.Fatalf("failed at %q by %s: %s", run.ErrorNodeID, run.ErrorCode, run.Error)
			}
			wantTrue(t, store, "r")
			if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: run.ErrorNodeID, NewExecutionID: "f"}); err != nil {
				t.Fatal(err)
			}
			run = settled(t, r, "f")
			if wantStatus(t, run, tt.want); run.ErrorCode != string(tt.code) {
				t.Errorf("failed by %s: %s", run.ErrorCode, run.Error)
			}
			for _, node := range []string{"no_hotel", "no_flight"} {
				if n := countOf(records(t, store, "f"), history.ActivityCompleted, node); n != 1 {
					t.Errorf("%s completed %d times", node, n)
				}
			}
			wantTrue(t, store, "f")
		})
	}
}

// TestAnOutcomeOfADroppedItem submits what nobody wants any more: an item of a map that failed, after which the run goes on, or is undone.
func TestAnOutcomeOfADroppedItem(t *testing.T) {
	t.Parallel()
	for rollback, says := range map[string]string{
		"true":  "the run is being rolled back and does not need the items of node \"stay\": the run awaits node \"undo\", not \"stay\"",
		"false": "the map at node \"stay\" has ended and does not need its items: the run awaits node \"rest\", not \"stay\"",
	} {
		r, _ := host(t, graph.Options{})
		start(t, r, "r", workflowWith(t, "stays", `"x-workflows-engine":{"uses":["catch","compensate","map"]}`, []string{
			startNode(), tool("stay", `"map":{"items":"[1,2,3]","as":"night"}`, `"compensate":{"node":"undo"}`,
				`"catch":[{"codes":["*"],"target":"rest","rollback":`+rollback+`}]`),
			tool("undo"), tool("rest"), endNode(),
		}, "s stay", "stay rest", "rest e"), nil)
		of := func(item string) graph.SubmitRequest {
			return graph.SubmitRequest{ExecutionID: "r", NodeID: "stay", IdempotencyKey: "r:stay#" + item + ".1", OK: true}
		}
		failed := of("3")
		failed.OK, failed.Error = false, "full"
		for _, req := range []graph.SubmitRequest{of("2"), failed} {
			if _, err := r.SubmitActivity(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		_, err := r.SubmitActivity(t.Context(), of("4"))
		if e := wantCode(t, err, problem.SubmitNodeMismatch); e.Message != says {
			t.Errorf("rollback %s: %s", rollback, e.Message)
		}
	}
}

// TestARollbackThatOutlivesItsParent cancels a run whose subworkflow takes longer to be rolled back than it takes itself: once its process
// is gone, another one finds the subworkflow and drives it.
func TestARollbackThatOutlivesItsParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		slow := func() graph.Options {
			return graph.Options{Activities: &script{answers: answers{"pay": after(time.Hour, nil), "no_hotel": after(time.Hour, object{}), "no_flight": after(time.Minute, object{})}}}
		}
		first := newRunner(t, store, slow())
		register(t, first, "urn:child", workflowWith(t, "child", `"x-workflows-engine":{"uses":["compensate"],"rollback":["cancel"]}`, []string{
			startNode(), tool("hotel", `"compensate":{"node":"no_hotel"}`), tool("pay"), tool("no_hotel"), endNode(),
		}, "s hotel", "hotel pay", "pay e"))
		parent := workflowWith(t, "parent", `"x-workflows-engine":{"uses":["compensate"],"rollback":["cancel"]}`, []string{
			startNode(), tool("flight", `"compensate":{"node":"no_flight"}`), subworkflow("v", "urn:child"), tool("no_flight"), endNode(),
		}, "s flight", "flight v", "v e")
		if _, err := first.Start(t.Context(), unawaited(parent)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel(t, first, "r", "ill")
		time.Sleep(2 * time.Minute)
		wantStatus(t, status(t, first, "r"), machine.Cancelled)
		wantStatus(t, status(t, first, "r:sub:v"), machine.Running)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		second := newRunner(t, store, slow())
		found, err := second.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
		if err != nil || len(found.ExecutionIDs) != 1 || found.Root("r:sub:v") != "r:sub:v" {
			t.Fatalf("found %+v, %v", found, err)
		}
		run, err := second.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r:sub:v", Caller: graph.Caller{Wait: graph.Wait{Limit: 2 * time.Hour}}})
		if err != nil {
			t.Fatal(err)
		}
		if wantStatus(t, run, machine.Cancelled); run.Compensated != 1 {
			t.Errorf("run %+v", run)
		}
		wantTrue(t, store, "r:sub:v")
	})
}
