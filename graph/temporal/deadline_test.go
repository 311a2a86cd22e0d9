package temporal

import (
	"context"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// deadlined is a definition with a deadline of the runs, whose node has one, too. Its failures are caught.
func deadlined(t *testing.T, run, node string) *definition.Document {
	t.Helper()
	return enginetest.Define(t, `{"document":{"schema":"urn:test","name":"late","version":"1"},"x-workflows-engine":{"uses":["catch","deadline"],"deadline":"`+run+`"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},
			{"id":"work","type":"step","config":{"handler":"charge"},"deadline":"`+node+`","retry":{"max_attempts":9,"initial_interval":"7m"},"catch":[{"codes":["*"],"target":"ask","as":"why"}]},
			{"id":"ask","type":"interrupt","config":{"prompt":"Well?","resume_schema":{"type":"object"}}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"work"},{"source":"work","target":"ask"},{"source":"ask","target":"end"}]}`)
}

// later returns the status of a run after a time.
func later(t *testing.T, e *Engine, b *testBackend, id string, d time.Duration, want machine.Status) *view.Run {
	t.Helper()
	b.runs[id].sleep(d)
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
	if err != nil || run.Status != want {
		t.Fatalf("%+v %v, want %s", run, err, want)
	}
	return run
}

// TestDeadlinesAreTheMachines: timers of the run end visits and the run, as on a store. Temporal does not end the workflow.
func TestDeadlinesAreTheMachines(t *testing.T) {
	t.Parallel()
	busy := steps(func(context.Context, activities.Request) (any, error) {
		return nil, &activities.Failure{Code: "BUSY", Message: "later"}
	})
	for name, mode := range map[string]machine.Mode{"in a pause": machine.InProcess, "at a host": machine.HostMediated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, b := newTestEngine(t, Options{Activities: busy})
			run := start(t, e, graph.StartRequest{ExecutionID: "r", Definition: deadlined(t, "72h", "10m"), Mode: mode, Deadline: time.Hour})
			begun := run.CreatedAt
			if !run.DeadlineAt.Equal(begun.Add(time.Hour)) {
				t.Errorf("deadline %s of a run of %s", run.DeadlineAt, begun)
			}
			run = later(t, e, b, "r", 11*time.Minute, machine.Interrupted)
			why, _ := run.State["why"].(map[string]any)
			if took := run.UpdatedAt.Sub(begun); why["code"] != string(problem.Timeout) || took < 10*time.Minute || took > 10*time.Minute+time.Second {
				t.Errorf("caught %v after %s", why, took)
			}
			run = later(t, e, b, "r", 2*time.Hour, machine.Failed)
			if took := run.UpdatedAt.Sub(begun); run.ErrorCode != string(problem.RunTimeout) || took < time.Hour || took > time.Hour+time.Second {
				t.Errorf("%s after %s", run.ErrorCode, took)
			}
		})
	}
}

// TestADeadlineOfASubworkflowFailsIt: the parent catches the failure; the deadline of its start is not that of the child.
func TestADeadlineOfASubworkflowFailsIt(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	if err := e.RegisterWorkflow("child", deadlined(t, "20m", "10m")); err != nil {
		t.Fatal(err)
	}
	d := enginetest.Define(t, `{"document":{"schema":"urn:test","name":"parent","version":"1"},"x-workflows-engine":{"uses":["catch"]},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"sub","type":"subworkflow","config":{"workflow_ref":"child","input_mapping":{}},"catch":[{"codes":["RUN_TIMEOUT"],"target":"end","as":"why"}]},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"sub"},{"source":"sub","target":"end"}]}`)
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: d, Deadline: time.Hour})
	run := later(t, e, b, "r", 2*time.Hour, machine.Completed)
	if why, _ := run.FinalState["why"].(map[string]any); why["code"] != string(problem.RunTimeout) {
		t.Errorf("%s: %v", run.Status, run.FinalState)
	}
}

// TestDeadlinesOnAServer: a node ends at its deadline, and the run at its own.
func TestDeadlinesOnAServer(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, Options{Activities: steps(func(context.Context, activities.Request) (any, error) {
		return nil, &activities.Failure{Code: "BUSY", Message: "later"}
	})})
	run := start(t, e, graph.StartRequest{Definition: deadlined(t, "4s", "1s")})
	if why, _ := run.State["why"].(map[string]any); run.Status != machine.Interrupted || why["code"] != string(problem.Timeout) {
		t.Fatalf("%+v", run)
	}
	run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: run.ExecutionID, Since: run.Seq, Wait: &graph.Wait{Limit: time.Minute}})
	if err != nil || run.ErrorCode != string(problem.RunTimeout) || run.UpdatedAt.Before(run.DeadlineAt) {
		t.Errorf("%+v %v", run, err)
	}
}
