package graph_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
)

// ofProcesses calls test with databases that several processes share. open opens the database once more, as another process does.
func ofProcesses(t *testing.T, test func(t *testing.T, open func() history.Store)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "runs.db")
		test(t, func() history.Store { return openFile(t, file) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := pgtest.Shared(t)
		schema := pgtest.Schema(t)
		test(t, func() history.Store {
			s, err := historypg.Open(t.Context(), server.URL(), historypg.Options{Schema: schema, Conns: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s
		})
	})
}

// TestDivision has two workers perform runs that a front process without executors has started. None fails, both take part, none is performed
// twice, and the front process makes one commit for each.
func TestDivision(t *testing.T) {
	t.Parallel()
	ofProcesses(t, func(t *testing.T, open func() history.Store) {
		const runs = 100
		fronts, made := counted(open())
		front := newRunner(t, fronts, graph.Options{Work: graph.WorkNone})
		startMany(t, front, runs, tool("n0"))
		if n := made.appends.Load(); n != runs {
			t.Errorf("%d commits of the front process", n)
		}
		a, b := &gauge{lasts: 10 * time.Millisecond}, &gauge{lasts: 10 * time.Millisecond}
		for _, g := range []*gauge{a, b} {
			newRunner(t, open(), graph.Options{Activities: g, Work: graph.WorkAll, Capacity: 2})
		}
		wantCompleted(t, front, runs)
		na, nb := a.total(t), b.total(t)
		if na+nb != runs || min(na, nb) < runs/5 || max(a.most, b.most) > 2 { // a busy machine may hold one of them up
			t.Errorf("one worker performed %d attempts, %d at once, the other %d, %d at once", na, a.most, nb, b.most)
		}
		t.Logf("%d and %d attempts", na, nb)
	})
}

// TestSharedBacklog has two workers perform the runs of a front process. An urgent run that is started then passes all that has not begun,
// and those of a small customer take turns with those of a big one.
func TestSharedBacklog(t *testing.T) {
	t.Parallel()
	ofProcesses(t, func(t *testing.T, open func() history.Store) {
		const big, small, atOnce = 160, 20, 2
		store := open()
		front := newRunner(t, store, graph.Options{Work: graph.WorkNone, FairLabel: "customer"})
		d := linear(t, "lin", "n0")
		begin := func(id, customer string, priority int) {
			t.Helper()
			_, err := front.Start(t.Context(), graph.StartRequest{
				ExecutionID: id, Definition: d, Labels: map[string]string{"customer": customer}, Priority: priority, Wait: waitFor(0),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range big {
			begin(fmt.Sprint("big", i), "big", 0)
		}
		for i := range small {
			begin(fmt.Sprint("small", i), "small", 0)
		}
		work := &gauge{lasts: 10 * time.Millisecond} // of both workers
		for range 2 {
			newRunner(t, open(), graph.Options{Activities: work, Work: graph.WorkAll, Capacity: atOnce})
		}
		wantStatus(t, settled(t, front, "big10"), machine.Completed)
		work.mu.Lock()
		before := len(work.performed)
		work.mu.Unlock()
		begin("urgent", "third", 100)
		wantStatus(t, settled(t, front, "urgent"), machine.Completed)
		for i := range big {
			wantStatus(t, settled(t, front, fmt.Sprint("big", i)), machine.Completed)
		}
		for i := range small {
			wantStatus(t, settled(t, front, fmt.Sprint("small", i)), machine.Completed)
		}
		if n := work.total(t); n != big+small+1 {
			t.Errorf("%d attempts", n)
		}
		begun := work.inOrder()
		var urgent, last int
		for i, id := range begun {
			switch {
			case id == "urgent":
				urgent = i
			case strings.HasPrefix(id, "small"):
				last = i
			}
		}
		// Those begin before it that were claimed when it was started. The process may be held up between the count and the start.
		if behind := urgent - before; behind > 2*2*atOnce+4+20 {
			t.Errorf("the urgent run began behind %d others", behind)
		}
		if last > 2*small+20 {
			t.Errorf("the last run of the small customer was number %d, ideal %d", last, 2*small)
		}
		t.Logf("the urgent run began behind %d others, the last one of the small customer was number %d", urgent-before, last)
	})
}
