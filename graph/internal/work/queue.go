package work

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Queue holds the attempts of a process that wait for their turn.
//
// Each run has one turn in a round, in the order of priority; attempts that arrive during a round belong to the next one. So a run with
// many attempts does not delay a run with a few, and each attempt gets its turn. The first waiting attempt of a run passes all attempts
// of a lower priority, whatever their round. But the oldest attempt is passed only a few times, and a run with more attempts passes again
// only after some turns of others.
//
// Attempts that need room in different pools have separate lanes. The lane whose next attempt has the highest priority is first, except
// for a lane that was passed a few times; equals take turns. If others keep taking the room in each of a lane's pools, room is reserved
// for that lane.
type Queue struct {
	env   Env // limits of starts per second need a goroutine
	pools map[string]*pool

	mu      sync.Mutex
	lanes   []*lane
	next    int // the lane that is checked first
	able    []*lane
	overdue *lane // room is reserved for it; may be nil
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

// Unlimited reports whether there are no limits.
func (q *Queue) Unlimited() bool { return len(q.pools) == 0 }

// Limited reports whether a limit applies to one of the classes.
func (q *Queue) Limited(classes []string) bool {
	return slices.ContainsFunc(classes, func(c string) bool { return q.pools[c] != nil })
}

// Enter queues an attempt, which may have its turn at once.
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

// leave removes a ticket whose context has ended.
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

// turns removes the tickets that have their turn, and sets the time of the next check.
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

// first returns the lane with the next turn. Without one, wait is the time until the next turn, or negative if an attempt must end first.
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

// keeps reports whether a lane's room is reserved for another lane.
func (q *Queue) keeps(l *lane) bool {
	if q.overdue != nil && q.overdue.len() == 0 {
		q.overdue = nil
	}
	return q.overdue != nil && q.overdue != l && slices.ContainsFunc(l.pools, func(p *pool) bool {
		return slices.Contains(q.overdue.pools, p) && !p.spare()
	})
}

// note counts a lane's turn as missed by the lanes that need the same room. A lane is overdue if it has missed more turns in each of its
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

// call calls Turn of tickets.
func (q *Queue) call(turns []*Ticket) {
	for _, t := range turns {
		if t.stop != nil {
			t.stop()
		}
		t.Turn(sync.OnceFunc(func() { q.give(t.lane.pools) }))
	}
}

// give returns the room of an attempt.
func (q *Queue) give(pools []*pool) {
	q.mu.Lock()
	for _, p := range pools {
		p.used--
	}
	turns := q.turns()
	q.mu.Unlock()
	q.call(turns)
}

// wakeAfter makes the queue check again when the next start is free.
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

// Open lifts the limits, so that all tickets have their turn. A draining process calls it: other processes perform these attempts.
func (q *Queue) Open() {
	q.mu.Lock()
	q.open = true
	waiting := q.takeAll()
	q.mu.Unlock()
	q.call(waiting)
}

// Close removes all tickets, and admits no more.
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
				p.used++ // as for a ticket that had its turn; see give
			}
			all = append(all, t)
		}
	}
	return all
}

// Waiting returns the number of waiting attempts.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, l := range q.lanes {
		n += l.len()
	}
	return n
}
