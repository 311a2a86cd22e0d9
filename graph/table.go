package graph

import (
	"container/list"
	"sync"
)

// Bounds of what the table keeps of runs that nobody uses at the moment: a rested run costs its state and position.
const (
	maxIdleRuns  = 2048
	maxIdleBytes = 64 << 20
)

// runTable holds the runs that this process knows, one *run an id, so that all that happens here to one run meets at
// its lock. A run in use stays; rested runs stay while there is room, so that the next call finds the machine ready.
type runTable struct {
	r     *Runner
	mu    sync.Mutex
	byID  map[string]*run
	idle  *list.List // of *run, the last used first
	bytes int64
	// maxIdle and maxBytes bound the idle runs.
	maxIdle  int
	maxBytes int64
}

func (t *runTable) init(r *Runner) {
	t.r, t.byID, t.idle = r, map[string]*run{}, list.New()
	t.maxIdle, t.maxBytes = maxIdleRuns, maxIdleBytes
}

// hold gives the run with an id for use until drop. The run may not exist in the store.
func (t *runTable) hold(id string) *run {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byID[id]
	if x == nil {
		x = newRun(t.r, id)
		t.byID[id] = x
	}
	t.take(x)
	return x
}

// retain holds a run that the caller holds already once more.
func (t *runTable) retain(x *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(x)
}

func (t *runTable) take(x *run) {
	x.refs++
	if x.idle != nil {
		t.bytes -= x.idleBytes
		t.idle.Remove(x.idle)
		x.idle = nil
	}
}

// drop ends one use of a run.
func (t *runTable) drop(x *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.refs--
	if x.refs > 0 || t.byID[x.id] != x {
		return
	}
	x.idleBytes = x.keepBytes.Load()
	if x.idleBytes == 0 {
		delete(t.byID, x.id)
		return
	}
	x.idle = t.idle.PushFront(x)
	t.bytes += x.idleBytes
	for t.idle.Len() > t.maxIdle || (t.bytes > t.maxBytes && t.idle.Len() > 1) {
		oldest := t.idle.Remove(t.idle.Back()).(*run)
		t.bytes -= oldest.idleBytes
		delete(t.byID, oldest.id)
	}
}
