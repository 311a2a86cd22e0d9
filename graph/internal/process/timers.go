package process

import (
	"container/heap"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Timer is the earliest open timer of a run.
type Timer struct {
	ExecutionID string
	run.Timer
	due   time.Time
	index int
}

// Queue is the timer queue of a process. One goroutine sleeps until the earliest timer is due, and fires it.
type Queue struct {
	work.Env
	runs driver

	mu      sync.Mutex
	timers  timerHeap
	byID    map[string]*Timer
	started bool
	wake    chan struct{}
}

// Set sets the complete set of a run's open timers. The run is locked.
func (q *Queue) Set(x *run.Run, ts []machine.Timer) {
	var due time.Time
	for _, t := range ts {
		if due.IsZero() || t.Due.Before(due) {
			due = t.Due
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	old := q.byID[x.ID()]
	if due.IsZero() {
		if old != nil {
			heap.Remove(&q.timers, old.index)
			delete(q.byID, x.ID())
		}
		return
	}
	if old == nil {
		old = q.push(x.ID(), due)
	}
	old.due, old.Timer = due, run.Timer{Own: true, StartedHere: x.StartedHere(), Seq: x.Seq()}
	heap.Fix(&q.timers, old.index)
	q.wakeUp()
}

// Offer adds a timer of another process's run, unless an earlier one is known. When it has fired, the run's other timers are known again.
func (q *Queue) Offer(id string, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch t := q.byID[id]; {
	case t == nil:
		q.push(id, due)
	case due.Before(t.due):
		t.due, t.Own = due, false
		heap.Fix(&q.timers, t.index)
	default:
		return
	}
	q.wakeUp()
}

func (q *Queue) push(id string, due time.Time) *Timer {
	t := &Timer{ExecutionID: id, due: due}
	heap.Push(&q.timers, t)
	if q.byID == nil {
		q.byID = map[string]*Timer{}
	}
	q.byID[id] = t
	return t
}

func (q *Queue) wakeUp() {
	if !q.started {
		q.started, q.wake = true, make(chan struct{}, 1)
		q.Go(q.loop)
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take removes the due timers, and returns the time until the next one.
func (q *Queue) take() (due []Timer, next time.Duration, more bool) {
	now := q.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.timers) > 0 {
		first := q.timers[0]
		if first.due.After(now) {
			return due, first.due.Sub(now), true
		}
		heap.Pop(&q.timers)
		delete(q.byID, first.ExecutionID)
		due = append(due, *first)
	}
	return due, 0, false
}

// maxSleep bounds one sleep, so that a clock that was set forward is noticed.
const maxSleep = time.Minute

func (q *Queue) loop() {
	for {
		due, next, more := q.take()
		for _, t := range due {
			q.Go(func() { q.runs.fire(t) })
		}
		var sleep <-chan time.Time
		if more {
			sleep = time.After(min(next, maxSleep))
		}
		select {
		case <-q.Context.Done():
			return
		case <-q.wake:
		case <-sleep:
		}
	}
}

// timerHeap is a heap of timers, the earliest first.
type timerHeap []*Timer

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push adds a *Timer.
func (h *timerHeap) Push(v any) {
	t := v.(*Timer)
	t.index = len(*h)
	*h = append(*h, t)
}

// Pop removes the last timer.
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}
