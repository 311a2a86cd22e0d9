package graph_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// hangs performs nothing to its end.
func hangs(ctx context.Context, _ activities.Request) (activities.Result, error) {
	<-ctx.Done()
	return activities.Result{}, context.Cause(ctx)
}

// busy returns a process that performs run r without an end.
func busy(t *testing.T, store history.Store, parent bool) *graph.Runner {
	t.Helper()
	r := newRunner(t, store, graph.Options{Activities: activities.ExecutorFunc(hangs), LeaseTTL: time.Minute, Owner: "other"})
	d := linear(t, "one", "a")
	if parent {
		register(t, r, "urn:child", d)
		d = workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
	}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// drive calls Drive for run r and reports how long it took, and which owners it named.
func drive(t *testing.T, r *graph.Runner, req graph.DriveRequest) (run *view.Run, took time.Duration, owners []graph.OwnedRun) {
	t.Helper()
	if req.ExecutionID == "" {
		req.ExecutionID = "r"
	}
	req.OwnedElsewhere = func(o graph.OwnedRun) { owners = append(owners, o) }
	began := time.Now()
	run, err := r.Drive(t.Context(), req)
	if err != nil {
		t.Fatalf("Drive: %v", err)
	}
	return run, time.Since(began), owners
}

func limited(d time.Duration) graph.Caller {
	return graph.Caller{Wait: graph.WaitAtMost(d)}
}

// TestDriveWaitsForTheOwner: a run that a live process performs is taken over within a second after that has closed, or has
// died and its lease has ended; also where it is a subworkflow that is performed, and the one that is driven.
func TestDriveWaitsForTheOwner(t *testing.T) {
	t.Parallel()
	for _, parent := range []bool{false, true} {
		for _, id := range []string{"r", "r:sub:v"} {
			for _, dies := range []bool{false, true} {
				if id != "r" && !parent {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					store := historymem.New()
					fault := historytest.NewFaultStore(store)
					other := busy(t, fault, parent)
					end := 40 * time.Second
					go func() {
						time.Sleep(40 * time.Second)
						if dies {
							fault.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
						} else {
							other.Close()
						}
					}()
					if dies {
						end = 2 * time.Minute // the lease was renewed until then
					}
					r := newRunner(t, store, graph.Options{Activities: &script{}})
					run, took, owners := drive(t, r, graph.DriveRequest{ExecutionID: id, Caller: limited(time.Hour)})
					wantStatus(t, run, machine.Completed)
					if took < 40*time.Second || took > end+time.Second || !dies && took > 41*time.Second {
						t.Errorf("parent %v, id %s, dies %v: took %v", parent, id, dies, took)
					}
					if len(owners) != 1 || owners[0].Owner.Process == "" || owners[0].Owner.Left <= 0 {
						t.Errorf("owners %v", owners)
					}
				})
			}
		}
	}
}

// TestDriveHasALimit: the call returns when the limit passes, whoever drives the run, and with none at once.
func TestDriveHasALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		busy(t, store, false)
		r := newRunner(t, store, graph.Options{Activities: &script{}, WaitLimit: 7 * time.Second})
		for _, tt := range []struct {
			caller graph.Caller
			want   time.Duration
		}{{limited(0), 0}, {limited(5 * time.Second), 5 * time.Second}, {graph.Caller{}, 7 * time.Second}} {
			run, took, _ := drive(t, r, graph.DriveRequest{Caller: tt.caller})
			wantStatus(t, run, machine.Running)
			if took != tt.want {
				t.Errorf("took %v, want %v", took, tt.want)
			}
		}
	})
}

// TestDriveTakesOverAtOnce: with a limit of 0 the call takes the run over, which then goes on in the background.
func TestDriveTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		busy(t, store, true).Close()
		r := newRunner(t, store, graph.Options{Activities: &script{}})
		_, took, owners := drive(t, r, graph.DriveRequest{Caller: limited(0)})
		if took != 0 || len(owners) > 0 {
			t.Errorf("took %v, owners %v", took, owners)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
	})
}

// TestDriveLeavesToNobody: a run that waits for what neither this process nor any live one performs is left at once, without
// a write; while another process performs a part of it, it is waited for.
func TestDriveLeavesToNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		other := busy(t, store, false)
		r := newRunner(t, store, graph.Options{})
		_, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Minute)})
		if took != time.Minute {
			t.Errorf("took %v beside a live owner", took)
		}
		go func() { time.Sleep(time.Minute); other.Close() }()
		run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
		if run.Lacks == nil || took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("took %v, lacks %v", took, run.Lacks)
		}
		unchanged(t, store, func() {
			if _, took, _ = drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)}); took != 0 {
				t.Errorf("took %v", took)
			}
		})
	})
}

// TestDriveAsksForUnknownWorkflowsAgain: a subworkflow that was left because nothing knew its workflow is begun by a later call
// that finds it.
func TestDriveAsksForUnknownWorkflowsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		parent := workflow(t, "parent", []string{startNode(), signalWait("w", "go"), subworkflow("v", "urn:child"), endNode()}, "s w", "w v", "v e")
		start(t, newRunner(t, store, graph.Options{}), "r", parent, nil)
		r := newRunner(t, store, graph.Options{Activities: &script{}})
		if _, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: limited(0)}); err != nil {
			t.Fatal(err)
		}
		run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
		if run.Lacks == nil || took > time.Second {
			t.Fatalf("took %v, lacks %v", took, run.Lacks)
		}
		register(t, r, "urn:child", linear(t, "one", "a"))
		run, _, _ = drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
		wantStatus(t, run, machine.Completed)
	})
}

// TestDriveAndTimers: a timer within the limit is waited for, a later one is not, nor any with StopAtTimer unless it is due.
func TestDriveAndTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		nap := workflow(t, "nap", []string{startNode(), timerWait("n", "1h"), tool("a"), endNode()}, "s n", "n a", "a e")
		first := newRunner(t, store, graph.Options{Activities: &script{}})
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: nap, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		first.Close()
		r := newRunner(t, store, graph.Options{Activities: &script{}})
		for _, req := range []graph.DriveRequest{{Caller: limited(59 * time.Minute)}, {Caller: limited(2 * time.Hour), StopAtTimer: true}} {
			run, took, _ := drive(t, r, req)
			wantStatus(t, run, machine.AwaitingTimer)
			if took != 0 {
				t.Errorf("took %v", took)
			}
		}
		time.Sleep(2 * time.Hour)
		run, _, _ := drive(t, r, graph.DriveRequest{Caller: limited(2 * time.Hour), StopAtTimer: true})
		wantStatus(t, run, machine.Completed)
	})
	synctest.Test(t, func(t *testing.T) {
		nap := workflow(t, "nap", []string{startNode(), timerWait("n", "1h"), endNode()}, "s n", "n e")
		r := newRunner(t, historymem.New(), graph.Options{})
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: nap, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(2 * time.Hour)})
		wantStatus(t, run, machine.Completed)
		if took != time.Hour {
			t.Errorf("took %v", took)
		}
	})
}

// TestDriveRestsOnSomebody: what a host, a person or a signal has to end is not waited for; nor is a run that has ended.
func TestDriveRestsOnSomebody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, nodes := range map[string][]string{
			"person":          {startNode(), interrupt("w"), endNode()},
			"signal":          {startNode(), signalWait("w", "go"), endNode()},
			"beside a branch": {startNode(), fork("f", "all", "w", "n"), signalWait("w", "go"), timerWait("n", "1h"), endNode()},
		} {
			edges := []string{"s w", "w e"}
			if len(nodes) > 3 {
				edges = []string{"s f", "f e", "w e", "n e"}
			}
			r := newRunner(t, historymem.New(), graph.Options{})
			start(t, r, "r", workflow(t, name, nodes, edges...), nil)
			run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
			if took != 0 || run.Status.Terminal() {
				t.Errorf("%s: took %v, status %s", name, took, run.Status)
			}
			if _, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
				t.Fatal(err)
			}
			run, _, _ = drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
			wantStatus(t, run, machine.Cancelled)
		}
		r, _ := host(t, graph.Options{})
		start(t, r, "r", linear(t, "one", "a"), nil)
		run, took, _ := drive(t, r, graph.DriveRequest{Caller: limited(time.Hour)})
		wantStatus(t, run, machine.AwaitingActivity)
		if took != 0 {
			t.Errorf("host: took %v", took)
		}
	})
}

// TestDriveRefuses: what a call is refused for changes nothing.
func TestDriveRefuses(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	start(t, r, "r", linear(t, "one", "a"), nil)
	unchanged(t, store, func() {
		_, err := r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "none"})
		wantCode(t, err, problem.ExecutionNotFound)
		_, err = r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Definition: linear(t, "two", "b")}})
		wantCode(t, err, problem.SubmitValidationError)
		_, err = r.Drive(t.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Mode: "mine"}})
		wantCode(t, err, problem.ValidationError)
	})
}
