package work

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue holds the attempts of a process that wait for their turn.
//
// Turns go round: each run has one in a round, in the order of priority, and what comes in while a round lasts belongs to the next one. So
// a run with many attempts does not hold up one with a few, and none waits for ever. The first attempt that a run has waiting passes all
// of a lower priority, whatever their round; but who has waited longest is passed only a few times, and a run with more attempts passes
// again only after others have had some turns.
//
// Attempts that need room in different pools have queues of their own. The one whose next attempt has the highest priority is first, but for
// one that was passed a few times; equals take turns. If others take the room in each of the pools of a queue again and again, it is kept for that queue.
type Queue struct {
	env   Env // limits of starts per second need a goroutine
	pools map[string]*pool

	mu      sync.Mutex
	lanes   []*lane
	next    int // the lane that is asked first
	able    []*lane
	overdue *lane // for which room is kept; may be nil
	seq     uint64
	open    bool
	closed  bool
	started bool
	wake    chan time.Duration
}

// NewQueue returns a queue with limits.
func NewQueue(env Env, limits []Limit) *Queue {
	q := &Queue{env: env, pools: map[string]*pool{}}
	for _, l := range limits {
		q.pools[l.Class] = &pool{Limit: l}
	}
	return q
}

// Unlimited reports whether there are no limits at all.
func (q *Queue) Unlimited() bool { return len(q.pools) == 0 }

// Limited reports whether a limit bounds attempts of one of the classes.
func (q *Queue) Limited(classes []string) bool {
	return slices.ContainsFunc(classes, func(c string) bool { return q.pools[c] != nil })
}

// Enter makes an attempt wait for its turn, which may come at once.
func (q *Queue) Enter(t *Ticket) {
	var pools []*pool
	for _, c := range t.Classes {
		if p := q.pools[c]; p != nil && !slices.Contains(pools, p) {
			pools = append(pools, p)
		}
	}
	if len(pools) == 0 {
		t.Turn(func() {})
		return
	}
	q.mu.Lock()
	if q.closed || q.open {
		closed := q.closed
		q.mu.Unlock()
		if closed {
			t.Left()
		} else {
			t.Turn(func() {})
		}
		return
	}
	i := slices.IndexFunc(q.lanes, func(l *lane) bool { return l.matches(pools) })
	if i < 0 {
		i = len(q.lanes)
		q.lanes = append(q.lanes, newLane(pools))
	}
	q.seq++
	t.seq, t.at = q.seq, [orders]int{-1, -1, -1}
	q.lanes[i].push(t)
	turns := q.turns()
	if t.waits() {
		t.stop = context.AfterFunc(t.Context, func() { q.leave(t) })
	}
	q.mu.Unlock()
	q.call(turns)
}

// leave ends the waiting of a ticket whose context has ended.
func (q *Queue) leave(t *Ticket) {
	q.mu.Lock()
	waits := t.waits()
	var turns []*Ticket
	if waits {
		t.lane.remove(t)
		turns = q.turns()
	}
	q.mu.Unlock()
	q.call(turns)
	if waits {
		t.Left()
	}
}

// turns takes out the tickets whose turn has come, and sees to it that the queue wakes up for the next one.
func (q *Queue) turns() (turns []*Ticket) {
	now := time.Now()
	for {
		l, wait := q.first(now)
		if l == nil {
			if wait >= 0 && !q.closed {
				q.wakeAfter(wait)
			}
			return turns
		}
		t := l.take()
		for _, p := range l.pools {
			p.used++
			p.tokens--
		}
		turns = append(turns, t)
		q.note(l)
	}
}

// first is the lane that has the next turn. If none has, wait is the time until one may, or negative if that takes the end of an attempt.
func (q *Queue) first(now time.Time) (first *lane, wait time.Duration) {
	wait, q.able = -1, q.able[:0]
	at := 0
	for i := range q.lanes {
		n := (q.next + i) % len(q.lanes)
		l := q.lanes[n]
		if l.len() == 0 {
			continue
		}
		d, ok := l.after(now)
		switch {
		case !ok || q.keeps(l):
		case d > 0:
			if wait < 0 || d < wait {
				wait = d
			}
		default:
			if q.able = append(q.able, l); l.before(first) {
				first, at = l, n
			}
		}
	}
	if first != nil {
		q.next = (at + 1) % len(q.lanes)
		for _, l := range q.able {
			l.yield(first)
		}
	}
	return first, wait
}

// keeps reports whether the room that a lane needs is kept for another one.
func (q *Queue) keeps(l *lane) bool {
	if q.overdue != nil && q.overdue.len() == 0 {
		q.overdue = nil
	}
	return q.overdue != nil && q.overdue != l && slices.ContainsFunc(l.pools, func(p *pool) bool {
		return slices.Contains(q.overdue.pools, p) && !p.spare()
	})
}

// note counts the turn of a lane as missed by those that need the same room. One is overdue that has missed more turns in each of its
// pools than there are lanes.
func (q *Queue) note(l *lane) {
	clear(l.missed)
	if q.overdue == l {
		q.overdue = nil
	}
	for _, other := range q.lanes {
		if other == l {
			continue
		}
		if other.len() == 0 {
			clear(other.missed)
			continue
		}
		for i, p := range other.pools {
			if slices.Contains(l.pools, p) {
				other.missed[i]++
			}
		}
		if q.overdue == nil && slices.Min(other.missed) > len(q.lanes) {
			q.overdue = other
		}
	}
}

// call tells tickets that their turn has come.
func (q *Queue) call(turns []*Ticket) {
	for _, t := range turns {
		if t.stop != nil {
			t.stop()
		}
		t.Turn(sync.OnceFunc(func() { q.give(t.lane.pools) }))
	}
}

// give gives back the room that an attempt had.
func (q *Queue) give(pools []*pool) {
	q.mu.Lock()
	for _, p := range pools {
		p.used--
	}
	turns := q.turns()
	q.mu.Unlock()
	q.call(turns)
}

// wakeAfter makes the queue look again when the next start is free.
func (q *Queue) wakeAfter(d time.Duration) {
	if !q.started {
		q.started, q.wake = true, make(chan time.Duration, 1)
		q.env.Go(q.loop)
	}
	select {
	case <-q.wake:
	default:
	}
	q.wake <- d
}

func (q *Queue) loop() {
	var due <-chan time.Time
	for {
		select {
		case <-q.env.Context.Done():
			return
		case d := <-q.wake:
			due = time.After(d)
		case <-due:
			due = nil
			q.give(nil)
		}
	}
}

// Open lifts the limits: all that wait have their turn. It is for a process that begins nothing any more, so that what waits is
// left to others.
func (q *Queue) Open() {
	q.mu.Lock()
	q.open = true
	waiting := q.takeAll()
	q.mu.Unlock()
	q.call(waiting)
}

// Close takes out all that wait, and lets nothing in.
func (q *Queue) Close() {
	q.mu.Lock()
	q.closed = true
	left := q.takeAll()
	q.mu.Unlock()
	for _, t := range left {
		t.stop()
		t.Left()
	}
}

func (q *Queue) takeAll() (all []*Ticket) {
	for _, l := range q.lanes {
		for l.len() > 0 {
			t := l.take()
			for _, p := range l.pools {
				p.used++ // as one that had its turn: see give
			}
			all = append(all, t)
		}
	}
	return all
}

// Waiting returns the number of attempts that wait.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, l := range q.lanes {
		n += l.len()
	}
	return n
}
