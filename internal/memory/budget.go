// Package memory holds the memory budget of the process: the runtime's limit, and the admission of new work. The
// limit alone does not hold off a flood of starts: a runtime above it collects all the time and still grows.
//
//	b := memory.Set(512 << 20, env)
//	err := b.Admit() // MEMORY_BUDGET_EXCEEDED while live objects leave no room
//	leave, err := b.Enter(ctx) // waits for room
//
// The budget covers Go's memory. SQLite's cache, mapped files and child processes come on top, and a computation
// within its own bounds is never ended: the budget keeps new work out and does not stop running work.
package memory

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Default is the budget where nothing is said.
const Default = 512 << 20

// Budget is the memory that a process may take. A nil one admits everything.
type Budget struct {
	most int64
	// allocated returns the bytes of all objects with garbage, live the bytes of live objects after the last collection.
	allocated, live func() int64
	collect         func()
	now             func() time.Time

	mu        sync.Mutex
	collected time.Time
	// underWay counts the pieces of work that Enter has counted in.
	underWay atomic.Int64
}

// Set sets the limit of the runtime, unless the user has set GOMEMLIMIT, and returns the budget; 0 means no budget
// and returns nil.
func Set(most int64, goMemLimit string) *Budget {
	if most == 0 {
		return nil
	}
	if goMemLimit == "" {
		debug.SetMemoryLimit(most)
	} else if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		most = limit
	}
	return &Budget{most: most, allocated: counter("/memory/classes/heap/objects:bytes"), live: counter("/gc/heap/live:bytes"), collect: runtime.GC, now: time.Now}
}

// collectEvery is how long new work is admitted or rejected by the figure of the last collection.
const collectEvery = time.Second

// Admit rejects new work while live objects take more than three quarters of the budget; the rest is for running
// work. It costs less than a microsecond while there is room.
func (b *Budget) Admit() error {
	if b == nil || b.allocated() <= b.room() {
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
	return problem.New(problem.MemoryBudgetExceeded, "the runs of this process use %d MiB of memory; new work is accepted up to %d MiB", live>>20, b.room()>>20).
		WithHint("Nothing was changed. Try again when other runs have ended or wait, or give the process more with --max-memory.")
}

func (b *Budget) room() int64 { return b.most / 4 * 3 }

// counter reads a metric of the runtime; nothing stops for it.
func counter(name string) func() int64 {
	return func() int64 {
		sample := []metrics.Sample{{Name: name}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
}

// How a piece of work waits for room.
const (
	lookInterval = 100 * time.Millisecond
	// longestWait bounds the wait of a piece of work, because others may wait for its run. A quarter of its own time
	// is the other bound.
	longestWait = 10 * time.Second
)

// Enter counts a piece of work in, after waiting for other work to end while there is no room; leave counts it out. A
// single piece of work does not wait, since nothing would make room for it. It returns the error of the context.
func (b *Budget) Enter(ctx context.Context) (leave func(), err error) {
	if b == nil {
		return func() {}, nil
	}
	last := b.now().Add(longestWait)
	if deadline, ok := ctx.Deadline(); ok {
		last = b.now().Add(min(longestWait, deadline.Sub(b.now())/4))
	}
	for !b.count(!b.now().Before(last) || b.Admit() == nil) {
		if err := wait.For(ctx, lookInterval); err != nil {
			return nil, err
		}
	}
	return func() { b.underWay.Add(-1) }, nil
}

// count counts a piece of work in, unless there is no room and other work is running.
func (b *Budget) count(room bool) bool {
	if room {
		b.underWay.Add(1)
		return true
	}
	return b.underWay.CompareAndSwap(0, 1)
}
