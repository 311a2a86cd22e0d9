// Package memory holds the memory budget of the process: the runtime's own limit, and whether there is room for new work.
//
//	b := memory.Set(512 << 20, env)
//	err := b.Admit() // MEMORY_BUDGET_EXCEEDED while live objects leave no room
//	leave, err := b.Enter(ctx) // waits for room
//
// The budget is that of Go's memory. What SQLite's cache, mapped files and child processes take comes on top, and one computation that is
// within its own bounds is never ended: the budget keeps new work out, it does not stop what has begun.
package memory

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Default is the budget where nothing is said.
const Default = 512 << 20

// Budget is the memory that a process may take. A nil one admits everything.
type Budget struct {
	most int64
	// live returns the bytes of live objects as of the last collection, collect collects, now is the time.
	live    func() int64
	collect func()
	now     func() time.Time

	mu        sync.Mutex
	collected time.Time
	// underWay counts the pieces of work that Enter has counted in.
	underWay atomic.Int64
}

// Set makes most bytes the limit of the runtime, unless the user has set GOMEMLIMIT, and returns the budget; nil for 0, which is none.
func Set(most int64, goMemLimit string) *Budget {
	if most == 0 {
		return nil
	}
	if goMemLimit == "" {
		follow(most)
	} else if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		most = limit
	}
	return &Budget{most: most, live: liveBytes, collect: runtime.GC, now: time.Now}
}

// follow sets the limit of the runtime by what is live, at once and after each collection: the runtime would otherwise let garbage grow
// up to the whole budget, although collecting it earlier costs next to nothing as long as little is live.
func follow(most int64) {
	if limit := limitFor(most, liveBytes()); limit != debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(limit)
	}
	runtime.SetFinalizer(&sentinel{}, func(*sentinel) { follow(most) })
}

// sentinel is garbage: its finalizer runs after the next collection.
type sentinel struct{ _ [32]byte }

// limitFor returns the limit of the runtime while so many bytes are live: three eighths of the budget, or half as much again as what is live,
// so that a process that needs its memory does not collect all the time; at most the budget.
func limitFor(most, live int64) int64 { return min(most, max(most/8*3, live/2*3)) }

// collectEvery is how long new work may be refused by a figure of the past: the figure is that of the last collection, and where
// nothing is begun there may be no next one.
const collectEvery = time.Second

// Admit refuses new work while live objects take more than three quarters of the budget; the rest is room for what is in flight. It
// costs less than a microsecond while there is room.
func (b *Budget) Admit() error {
	if b == nil || b.live() <= b.room() {
		return nil
	}
	b.mu.Lock()
	if now := b.now(); now.Sub(b.collected) >= collectEvery {
		b.collect()
		b.collected = now
	}
	live := b.live()
	b.mu.Unlock()
	if live <= b.room() {
		return nil
	}
	return problem.New(problem.MemoryBudgetExceeded, "the runs of this process take %d MiB of memory; new work is taken up to %d MiB", live>>20, b.room()>>20).
		WithHint("Nothing was changed. Try again when other runs have ended or rest, or give the process more with --max-memory.")
}

func (b *Budget) room() int64 { return b.most / 4 * 3 }

// liveBytes reads a counter; nothing stops for it.
func liveBytes() int64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
