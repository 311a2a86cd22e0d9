package graph_test

import (
	"context"
	"maps"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestClockSteps sets the machine's clock while one process works, another one is dead and a timer is open: the dead one's run is
// taken over when its lease ends, the timer fires after its time, and nothing that is being performed is begun again.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for name, steps := range map[string][]time.Duration{
		"back": {-hour}, "forward": {hour}, "forward and back": {hour, -hour}, "back and forward": {-hour, hour},
	} {
		for _, kind := range []string{"memory", "file", "file, uptime unknown"} {
			if kind == "file, uptime unknown" && name != "back" {
				continue // what looks like a step forward may be time that has passed
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "runs.db")
				synctest.Test(t, func(t *testing.T) { clockSteps(t, kind, path, steps) })
			})
		}
	}
}

func clockSteps(t *testing.T, kind, path string, steps []time.Duration) {
	begun := time.Now()
	var set atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
	uptime := func() (string, time.Duration) { return "boot", time.Since(begun) }
	mem := historymem.NewWith(historymem.Options{Now: now, Uptime: uptime})
	open := func() history.Store {
		o := historysql.Options{Now: now, Uptime: uptime, Synchronous: historysql.Normal}
		switch kind {
		case "memory":
			return mem
		case "file, uptime unknown":
			o.Uptime = nil
		}
		s, err := historysql.Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	var mu sync.Mutex
	begins := map[string]int{}
	work := activities.ExecutorFunc(func(ctx context.Context, req activities.Request) (activities.Result, error) {
		mu.Lock()
		begins[req.NodeID]++
		mu.Unlock()
		_, err := after(12*time.Minute, nil)(ctx, req)
		return activities.Result{Output: object{}}, err
	})
	process := func(s history.Store) *graph.Runner {
		return newRunner(t, s, graph.Options{Activities: work, Work: graph.WorkAll})
	}
	busy := process(open())
	begin(t, busy, "busy", "a")
	timer := workflow(t, "timer", []string{startNode(), timerWait("w", "5m"), endNode()}, "s w", "w e")
	if _, err := busy.Start(t.Context(), graph.StartRequest{ExecutionID: "timer", Definition: timer, Wait: waitFor(0)}); err != nil {
		t.Fatal(err)
	}
	faults := historytest.NewFaultStore(open())
	dying := newRunner(t, faults, graph.Options{Activities: work, Work: graph.WorkAll})
	begin(t, dying, "orphan", "b")
	time.Sleep(time.Minute)
	faults.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
	var latest *graph.Runner
	for _, step := range steps {
		set.Add(int64(step))
		latest = process(open())
		if _, err := latest.Status(t.Context(), graph.StatusRequest{ExecutionID: "busy"}); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
	}
	time.Sleep(30*time.Second + 15*time.Second) // the lease, and a round of the search
	synctest.Wait()
	wantBegins := func(when string) {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if want := map[string]int{"a": 1, "b": 2}; !maps.Equal(begins, want) {
			t.Errorf("%s, attempts begun by node: %v, want %v", when, begins, want)
		}
	}
	wantBegins("after the lease of the dead process")
	time.Sleep(5*time.Minute - time.Since(begun) + 15*time.Second)
	synctest.Wait()
	wantStatus(t, status(t, latest, "timer"), machine.Completed)
	time.Sleep(12 * time.Minute)
	synctest.Wait()
	wantStatus(t, status(t, latest, "busy"), machine.Completed)
	wantBegins("in the end")
}
