package memory_test

import (
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// TestAdmission holds when new work is refused: above three quarters of the budget, after a collection at most every second.
func TestAdmission(t *testing.T) {
	t.Parallel()
	var live, collections int64
	now := time.Unix(0, 0).Add(time.Hour)
	b := memory.New(400, func() int64 { return live }, func() { collections++ }, func() time.Time { return now })
	check := func(what string, admitted bool, collected int64) {
		t.Helper()
		err := b.Admit()
		if (err == nil) != admitted || !admitted && !errors.Is(err, problem.MemoryBudgetExceeded) || collections != collected {
			t.Errorf("%s: %v after %d collections", what, err, collections)
		}
	}
	live = 300
	check("room", true, 0)
	live = 301
	check("no room", false, 1)
	check("at once again", false, 1)
	now = now.Add(time.Second)
	check("a second later", false, 2)
	live = 300
	check("room again", true, 2)
}

// A figure of the past does not refuse work for ever: a collection finds what has become free.
func TestStaleFigure(t *testing.T) {
	t.Parallel()
	live := int64(1000)
	b := memory.New(400, func() int64 { return live }, func() { live = 10 }, time.Now)
	if err := b.Admit(); err != nil {
		t.Error(err)
	}
}

// TestGarbageDoesNotTakeTheBudget: the runtime's limit leaves garbage less than the budget while little is live, and room while much is.
func TestGarbageDoesNotTakeTheBudget(t *testing.T) {
	t.Parallel()
	for live, want := range map[int64]int64{0: 375, 200: 375, 400: 600, 600: 900, 700: 1000, 2000: 1000} {
		if got := memory.LimitFor(1000, live); got != want {
			t.Errorf("%d live: limit %d, want %d", live, got, want)
		}
	}
}

// TestNone shows that no budget admits everything.
func TestNone(t *testing.T) {
	t.Parallel()
	if err := memory.Set(0, "").Admit(); err != nil {
		t.Error(err)
	}
}

func BenchmarkAdmit(b *testing.B) {
	budget := memory.Set(1<<40, "1TiB")
	for b.Loop() {
		if err := budget.Admit(); err != nil {
			b.Fatal(err)
		}
	}
}
