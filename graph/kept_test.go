package graph_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

func keepTasks(t *testing.T, r *graph.Runner, id string) error {
	t.Helper()
	_, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: id, Reason: "moved", KeepTasks: true})
	return err
}

// parentOf gives a workflow whose subworkflow delegates.
func parentOf(t testing.TB) (parent, child *definition.Document) {
	child = delegation(t)
	return workflow(t, "outer", []string{startNode(), subworkflow("v", "urn:del"), endNode()}, "s v", "v e"), child
}

// TestAMovedRunKeepsItsTasks ends a run that goes on in another store, with the task that its agent works on: in a
// subworkflow, and by a process that could tell the agent.
func TestAMovedRunKeepsItsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, old := &agent{}, historymem.New()
		r := newRunner(t, old, graph.Options{Delegates: a})
		parent, child := parentOf(t)
		register(t, r, "urn:del", child)
		atOnce(t, r, "r", parent)
		to, res := moved(t, old, "r")
		if res.Tasks != 1 {
			t.Errorf("%d tasks", res.Tasks)
		}
		if err := keepTasks(t, r, "r"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, id := range []string{"r", "r:sub:v"} {
			rs := records(t, old, id)
			if end := rs[len(rs)-1]; end.Name != history.ExecutionCancelled || !end.Payload.KeepTasks {
				t.Errorf("%s ended as %+v", id, end)
			}
		}
		there := newRunner(t, to, graph.Options{Delegates: a, Work: graph.WorkAll})
		a.becomes("r:sub:v:d#1.1", activities.Task{State: activities.TaskCompleted, Output: object{"patch": "p"}})
		time.Sleep(time.Minute)
		wantStatus(t, settled(t, there, "r"), machine.Completed)
		if got := a.said(); got != "send r:sub:v:d#1.1" {
			t.Error(got)
		}
	})
}

// TestNobodyEndsAKeptTaskLater covers those who come upon the task of a run that another process has ended.
func TestNobodyEndsAKeptTaskLater(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]func(t *testing.T, store *historymem.Store, a *agent){
		"whoever polls it": func(t *testing.T, store *historymem.Store, a *agent) {
			r := newRunner(t, store, graph.Options{Delegates: a})
			atOnce(t, r, "r", delegation(t))
			if err := keepTasks(t, newRunner(t, store, graph.Options{}), "r"); err != nil {
				t.Error(err)
			}
		},
		"whoever polls it in vain": func(t *testing.T, store *historymem.Store, a *agent) {
			r := newRunner(t, store, graph.Options{Delegates: a})
			atOnce(t, r, "r", delegation(t))
			if err := keepTasks(t, newRunner(t, store, graph.Options{}), "r"); err != nil {
				t.Error(err)
			}
			a.fails("r:d#1.1", activities.Fail(problem.A2ACredentialsMissing, "no entry"))
		},
		"whoever polls it once the run is gone": func(t *testing.T, store *historymem.Store, a *agent) {
			r := newRunner(t, store, graph.Options{Delegates: a})
			atOnce(t, r, "r", delegation(t))
			if err := keepTasks(t, newRunner(t, store, graph.Options{}), "r"); err != nil {
				t.Error(err)
			}
			a.fails("r:d#1.1", activities.Fail(problem.A2ACredentialsMissing, "no entry"))
			page, err := store.Prune(t.Context(), history.PruneQuery{Before: time.Now().Add(time.Hour)})
			if err != nil || len(page.Trees) != 1 {
				t.Errorf("%+v, %v", page, err)
			}
		},
		"whoever looks after the subworkflow of a parent that has ended": func(t *testing.T, store *historymem.Store, a *agent) {
			parent, child := parentOf(t)
			r := newRunner(t, store, graph.Options{Delegates: a})
			register(t, r, "urn:del", child)
			atOnce(t, r, "r", parent)
			closeRunner(t, r)
			dying := newRunner(t, &faulty{Store: store, late: true}, graph.Options{})
			_ = keepTasks(t, dying, "r")
			closeRunner(t, dying)
			if child, err := store.Execution(t.Context(), "r:sub:v"); err != nil || child.Phase.Terminal() {
				t.Errorf("the subworkflow has ended too: %s, %v", child.Phase, err)
			}
			newRunner(t, store, graph.Options{Delegates: a, Work: graph.WorkAll})
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			wantStatus(t, status(t, newRunner(t, store, graph.Options{}), "r:sub:v"), machine.Cancelled)
		},
		"whoever sends it": func(t *testing.T, store *historymem.Store, a *agent) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			a.onSend = func(activities.Request) { close(begun); <-goOn }
			r := newRunner(t, store, graph.Options{Delegates: a})
			if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: delegation(t), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := keepTasks(t, r, "r"); err != nil {
				t.Error(err)
			}
			close(goOn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, store := &agent{}, historymem.New()
				later(t, store, a)
				time.Sleep(time.Hour)
				synctest.Wait()
				a.mu.Lock()
				defer a.mu.Unlock()
				if len(a.calls) != 1 {
					t.Errorf("the agent was told: %s", a.calls)
				}
			})
		})
	}
}
