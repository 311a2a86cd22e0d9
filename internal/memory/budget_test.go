package memory_test

import (
	"errors"
	"runtime/debug"
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

// TestGarbage: what is allocated decides whether to collect, what lives whether to refuse. A second within which there was a collection is
// judged by its figure.
func TestGarbage(t *testing.T) {
	t.Parallel()
	allocated, collections := int64(300), 0
	now := time.Unix(0, 0).Add(time.Hour)
	b := memory.New(400, func() int64 { return 100 }, func() { collections++ }, func() time.Time { return now })
	memory.Allocated(b, func() int64 { return allocated })
	for i, want := range []int{0, 1, 1, 2} {
		if i > 0 {
			allocated = 1000
		}
		if i == 3 {
			now = now.Add(time.Second)
		}
		if err := b.Admit(); err != nil || collections != want {
			t.Errorf("call %d: %v after %d collections, want %d", i, err, collections, want)
		}
	}
}

// TestRuntimeLimit: the budget is the limit of the runtime, unless GOMEMLIMIT has set one, which then is the budget.
func TestRuntimeLimit(t *testing.T) { // not parallel: there is one limit in a process
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	memory.Set(1<<40, "")
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("limit %d", got)
	}
	debug.SetMemoryLimit(4)
	b := memory.Set(1<<40, "4B")
	if got := debug.SetMemoryLimit(before); got != 4 || !errors.Is(b.Admit(), problem.MemoryBudgetExceeded) {
		t.Errorf("limit %d beside GOMEMLIMIT, and it admits new work above it", got)
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
