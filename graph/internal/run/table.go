package run

import (
	"container/list"
	"errors"
	"sync"
	"time"
)

// Bounds on the idle runs in the table; each takes the memory of its state and position.
const (
	maxIdleRuns  = 2048
	maxIdleBytes = 64 << 20
)

// Table holds the runs known to this process, one *Run for each id, so that all uses of a run share its lock. Runs in use stay; idle runs
// stay while there is room, so that the next call finds the machine ready.
type Table struct {
	env   *Environment
	mu    sync.Mutex
	byID  map[string]*Run
	idle  *list.List // of *Run, the last used first
	bytes int64
	// maxIdle bounds the idle runs.
	maxIdle int
}

// NewTable returns an empty table.
func NewTable(env *Environment) *Table {
	return &Table{env: env, byID: map[string]*Run{}, idle: list.New(), maxIdle: maxIdleRuns}
}

// KeepIdle sets the number of idle runs that are kept.
func (t *Table) KeepIdle(runs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.maxIdle = runs
}

// Len returns the number of runs in the table, including idle ones.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Hold returns the run with an id for use until Drop. The run need not exist in the store.
func (t *Table) Hold(id string) *Run {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.byID[id]
	if x == nil {
		x = newRun(t.env, id)
		t.byID[id] = x
	}
	t.use(x)
	return x
}

// Retain adds a use of a run that the caller holds already.
func (t *Table) Retain(x *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.use(x)
}

func (t *Table) use(x *Run) {
	x.uses++
	if x.idle != nil {
		t.bytes -= x.idleBytes
		t.idle.Remove(x.idle)
		x.idle = nil
	}
}

// ErrBusy reports that a run is busy, and that there is no time to read it from the store instead.
var ErrBusy = errors.New("the run is busy")

// LockToRead locks the run. If that is busy, it returns a temporary copy, locked, that reads the store and drives nothing, so that
// questions are answered while the run computes. until, unless zero, is the time after which it returns ErrBusy instead.
func (t *Table) LockToRead(x *Run, until time.Time) (*Run, error) {
	patience := LockGrace
	if !until.IsZero() {
		patience = min(patience, time.Until(until))
	}
	if x.lock.LockWithin(patience) {
		return x, nil
	}
	if !until.IsZero() && !time.Now().Before(until) {
		return nil, ErrBusy
	}
	env := *t.env
	env.ReadOnly = true
	x = newRun(&env, x.id)
	x.Lock()
	return x, nil
}

func newRun(env *Environment, id string) *Run { return &Run{env: env, id: id, lock: NewLock()} }

// Drop ends one use of a run.
func (t *Table) Drop(x *Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.uses--
	if x.uses > 0 || t.byID[x.id] != x {
		return
	}
	x.idleBytes = x.cost.Load()
	if x.idleBytes == 0 {
		delete(t.byID, x.id)
		return
	}
	x.idle = t.idle.PushFront(x)
	t.bytes += x.idleBytes
	for t.idle.Len() > t.maxIdle || (t.bytes > maxIdleBytes && t.idle.Len() > 1) {
		oldest := t.idle.Remove(t.idle.Back()).(*Run)
		t.bytes -= oldest.idleBytes
		delete(t.byID, oldest.id)
	}
}
