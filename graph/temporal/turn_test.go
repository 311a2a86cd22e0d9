package temporal

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// hasty is the member of a node that bounds its wait for a turn, and tries twice.
const hasty = `"queue_timeout":"5m","retry":{"max_attempts":2,"initial_interval":"1h"},`

// recordsOf returns the names of a run's records of the node work.
func recordsOf(t *testing.T, e graph.Engine, id string) (names []string) {
	t.Helper()
	records, err := e.History(t.Context(), graph.HistoryRequest{ExecutionID: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Payload.NodeID == "work" {
			names = append(names, string(r.Name))
			if r.Name == history.ActivityFailed {
				names = append(names, r.Payload.Code)
			}
		}
	}
	return names
}

// follow waits for the end of a run through its back-offs.
func follow(t *testing.T, e graph.Engine, id string) (status machine.Status) {
	t.Helper()
	for {
		run, err := e.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 5 * time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Terminal() {
			return run.Status
		}
	}
}

// TestAnAttemptIsRequestedAtItsTurn: with a queue_timeout, the activity gets the attempt when it begins, also after a back-off.
func TestAnAttemptIsRequestedAtItsTurn(t *testing.T) {
	t.Parallel()
	var keys []string
	e, _ := newTestEngine(t, Options{Activities: steps(func(_ context.Context, req activities.Request) (any, error) {
		if keys = append(keys, req.IdempotencyKey); len(keys) < 2 {
			return nil, &activities.Failure{Code: "BUSY", Message: "later"}
		}
		return map[string]any{"attempt": req.Attempt}, nil
	})})
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: queued(t, hasty)})
	if s := follow(t, e, "r"); s != machine.Completed || !slices.Equal(keys, []string{"r:work#1.1", "r:work#1.2"}) {
		t.Fatalf("%s, attempts %q", s, keys)
	}
	want := []string{
		"NodeScheduled", "ActivityRequested", "ActivityFailed", "BUSY", "ActivityRequested", "ActivityCompleted", "CompleteNode",
	}
	if got := recordsOf(t, e, "r"); !slices.Equal(slices.DeleteFunc(got, func(s string) bool { return !slices.Contains(want, s) }), want) {
		t.Errorf("records %q", got)
	}
}

// TestAnAttemptWithoutATurnFails: it was never requested, and its node can lead on.
func TestAnAttemptWithoutATurnFails(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{Activities: steps(charged)})
	b.noTurn = true
	start(t, e, graph.StartRequest{ExecutionID: "r", Definition: queued(t, hasty)})
	if s := follow(t, e, "r"); s != machine.Failed {
		t.Fatal(s)
	}
	got := recordsOf(t, e, "r")
	if strings.Count(strings.Join(got, " "), string(problem.QueueTimeout)) != 2 || slices.Contains(got, string(history.ActivityRequested)) {
		t.Errorf("records %q", got)
	}
}

// TestATurnOnAServer: attempts wait for a worker until the queue_timeout, or until one comes.
func TestATurnOnAServer(t *testing.T) {
	t.Parallel()
	o := dial(t, Options{Queues: []string{"night"}})
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	performs(t, o) // no executor
	late, patient := unique(t)+"-late", unique(t)+"-patient"
	start(t, e, graph.StartRequest{ExecutionID: late, Definition: queued(t, `"queue_timeout":"1s",`), Wait: graph.Wait{Limit: graph.NoWait}})
	start(t, e, graph.StartRequest{ExecutionID: patient, Definition: queued(t, `"queue_timeout":"10m",`), Wait: graph.Wait{Limit: graph.NoWait}})
	run := ended(t, e, late)
	if run.Status != machine.Failed || run.ErrorCode != string(problem.QueueTimeout) {
		t.Errorf("%s %s %s", run.Status, run.ErrorCode, run.Error)
	}
	run, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: patient})
	if err != nil || len(run.Pending) != 1 || !run.Pending[0].Queued {
		t.Fatalf("%+v %v", run, err)
	}
	o.Activities = steps(charged)
	performs(t, o)
	if run := ended(t, e, patient); run.Status != machine.Completed {
		t.Errorf("%s %s", run.Status, run.Error)
	}
	if *update {
		record(t, o.Client, late, "queue-timeout")
		record(t, o.Client, patient, "turn")
	}
}
