package graph

import (
	"container/heap"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// alarms is this process's clock: one goroutine, started with the first timer, sleeps until the earliest and fires it.
type alarms struct {
	r       *Runner
	mu      sync.Mutex
	queue   alarmQueue
	byID    map[string]*alarm
	started bool
	wake    chan struct{}
}

// alarm is the earliest open timer of a run. Own alarms are of runs that this process had in hand, started ones of runs
// that were begun here and to which nobody else had written by the record seq.
type alarm struct {
	id      string
	due     time.Time
	own     bool
	started bool
	seq     int64
	index   int
}

func (a *alarms) init(r *Runner) {
	a.r, a.byID, a.wake = r, map[string]*alarm{}, make(chan struct{}, 1)
}

// set takes note of a run's open timers. The caller is a counted task and has locked the run.
func (a *alarms) set(x *run, ts []machine.Timer) {
	var due time.Time
	for _, t := range ts {
		if due.IsZero() || t.Due.Before(due) {
			due = t.Due
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.byID[x.id]
	switch {
	case due.IsZero():
		if old != nil {
			heap.Remove(&a.queue, old.index)
			delete(a.byID, x.id)
		}
		return
	case old != nil:
		old.due, old.own, old.started, old.seq = due, true, x.started, x.exec.Seq
		heap.Fix(&a.queue, old.index)
	default:
		a.put(&alarm{id: x.id, due: due, own: true, started: x.started, seq: x.exec.Seq})
	}
	a.rouse()
}

// lend takes note of a timer of a run that another process had in hand, unless one as early is known already. Once it has
// rung, the run's other timers are known again.
func (a *alarms) lend(id string, due time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch al := a.byID[id]; {
	case al == nil:
		a.put(&alarm{id: id, due: due})
	case due.Before(al.due):
		al.due, al.own = due, false
		heap.Fix(&a.queue, al.index)
	default:
		return
	}
	a.rouse()
}

func (a *alarms) put(al *alarm) {
	heap.Push(&a.queue, al)
	a.byID[al.id] = al
}

func (a *alarms) rouse() {
	if !a.started {
		a.started = true
		a.r.tasks.Go(a.loop)
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// take gives the alarms that are due, and how long the next one has.
func (a *alarms) take() (due []*alarm, next time.Duration, more bool) {
	now := a.r.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 {
		first := a.queue[0]
		if first.due.After(now) {
			return due, first.due.Sub(now), true
		}
		heap.Pop(&a.queue)
		delete(a.byID, first.id)
		due = append(due, first)
	}
	return due, 0, false
}

// maxSleep bounds one sleep, so that a clock that was set forward is noticed.
const maxSleep = time.Minute

func (a *alarms) loop() {
	for {
		due, next, more := a.take()
		for _, al := range due {
			a.r.tasks.Go(func() { a.r.ring(al) })
		}
		var sleep <-chan time.Time
		if more {
			sleep = time.After(min(next, maxSleep))
		}
		select {
		case <-a.r.ctx.Done():
			return
		case <-a.wake:
		case <-sleep:
		}
	}
}

// ring fires a run's due timers and drives on what follows.
func (r *Runner) ring(al *alarm) {
	ctx := lasting(r.ctx)
	x := r.runs.hold(al.id)
	defer r.runs.drop(x)
	var y yield
	x.mu.Lock()
	err := x.ring(ctx, al, &y)
	if x.m != nil {
		r.alarms.again(x, x.m.Timers())
	}
	x.mu.Unlock()
	if err != nil && !errors.Is(err, problem.ExecutionNotFound) {
		r.log.Warn("timer not fired", logRun, x.id, logError, err)
	}
	r.carry(ctx, x, &y)
}

func (x *run) ring(ctx context.Context, al *alarm, y *yield) error {
	look := x.open
	if !al.own { // another process has set the timer since the run was in hand here, if it ever was
		if left, err := x.leftToDriver(ctx); err != nil || left {
			return err
		}
		look = x.sync
	}
	if err := look(ctx, nil); err != nil || x.ended() {
		return err
	}
	x.started = x.started || al.started && al.seq == x.exec.Seq // the table may have dropped the run
	if al.own && (x.held || !x.elsewhere()) {
		return x.fireDue(ctx, y)
	}
	return x.takeOver(ctx, y)
}

// leftToDriver reports whether the timers of a run that is not in hand here are the business of another process, which
// performs something of it. It saves loading the run in each round in which a timer of it is overdue.
func (x *run) leftToDriver(ctx context.Context) (bool, error) {
	if x.m != nil || x.held {
		return false, nil
	}
	exec, err := x.r.store.Execution(ctx, x.id)
	if err != nil || !slices.ContainsFunc(exec.Waits, func(w history.Wait) bool { return w.InProcess() }) {
		return false, err
	}
	return x.drivenAfar(ctx)
}

// again sets the alarm for timers that have not come due yet, or that this process may fire later; one that is due and was
// not fired is left to others.
func (a *alarms) again(x *run, ts []machine.Timer) {
	now := a.r.now()
	var open []machine.Timer
	for _, t := range ts {
		if at, mine := x.firesAt(t); mine {
			t.Due = at
		}
		if t.Due.After(now) {
			open = append(open, t)
		}
	}
	a.set(x, open)
}

// alarmQueue is a heap of alarms, the earliest first.
type alarmQueue []*alarm

func (q alarmQueue) Len() int           { return len(q) }
func (q alarmQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q alarmQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push adds an *alarm.
func (q *alarmQueue) Push(v any) {
	al := v.(*alarm)
	al.index = len(*q)
	*q = append(*q, al)
}

// Pop removes the last element.
func (q *alarmQueue) Pop() any {
	last := len(*q) - 1
	al := (*q)[last]
	*q = (*q)[:last]
	return al
}
