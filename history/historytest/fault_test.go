package historytest_test

import (
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestFaultStorePasses: without a fault it is the store beneath.
func TestFaultStorePasses(t *testing.T) {
	t.Parallel()
	historytest.Run(t, func(_ testing.TB, now func() time.Time) history.Store {
		return historytest.NewFaultStore(historymem.NewWith(historymem.Options{Now: now}))
	})
}

func TestFaultStore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   historytest.Fault
		fails   []bool // of three appends
		records int
	}{
		{"none", historytest.Fault{}, []bool{false, false, false}, 3},
		{"before commit", historytest.Fault{At: 2}, []bool{false, true, false}, 2},
		{"after commit", historytest.Fault{At: 2, AfterCommit: true}, []bool{false, true, false}, 3},
		{"dead before commit", historytest.Fault{At: 2, Dead: true}, []bool{false, true, true}, 1},
		{"dead after commit", historytest.Fault{At: 1, AfterCommit: true, Dead: true}, []bool{true, true, true}, 1},
		{"reads count too", historytest.Fault{At: 4, Reads: true}, []bool{false, true, false}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			below := historymem.New()
			s := historytest.NewFaultStore(below)
			s.Set(c.fault)
			for i, want := range c.fails {
				e, err := below.Execution(ctx, "x")
				if errors.Is(err, problem.ExecutionNotFound) {
					e = history.Execution{ID: "x"}
				}
				_, _ = s.Read(ctx, "x", 1, 0)
				x := historytest.NewTrace(t, "x")
				x.Execution = e
				err = s.Append(ctx, x.Batch("C ScheduleNode a"))
				if errors.Is(err, historytest.ErrInjected) != want {
					t.Errorf("append %d: got %v, failure wanted: %t", i+1, err, want)
				}
			}
			if rs, err := below.Read(ctx, "x", 1, 0); err != nil || len(rs) != c.records {
				t.Errorf("the store beneath has %d records, %v", len(rs), err)
			}
			if s.Struck() != (c.fault.At > 0) || s.Appends() != 3 {
				t.Errorf("struck %t, %d appends", s.Struck(), s.Appends())
			}
			s.Revive()
			if _, err := s.Execution(ctx, "x"); err != nil {
				t.Errorf("revived: %v", err)
			}
		})
	}
}
