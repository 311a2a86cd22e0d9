package work

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Queue holds the attempts of a process that wait for their turn.
//
// The next turn belongs to the highest priority. Runs of equal priority take turns: after its turn a run is behind the others, so a run
// with many attempts does not delay a run with a few. Every twentieth turn goes to the attempt that has waited longest, whatever its
// priority, so nothing starves.
//
// An attempt needs a place in each of its pools: the limits of its classes, those of this process and those that all processes share, and the capacity. Attempts that do not need a full pool pass
// those that do. If the twentieth turn belongs to an attempt whose pools are never free at the same time, their places are kept for it.
type Queue struct {
	env      Env // limits of starts per second need a goroutine
	limits   map[string]*pool
	places   int   // the capacity, 0 for no bound
	capacity *pool // the last pool of each lane
	release  func()
	freed    chan struct{}
	asks     chan struct{} // see Asks
	sharing  atomic.Int32  // the number of shared limits

	mu      sync.Mutex
	shared  map[string]*pool
	lanes   []*lane // the highest priority first; without empty ones
	waiting int
	seq     uint64 // of the last arrival or turn
	passed  int    // the turns by priority since the last one by age
	held    *lane  // the lane that places are kept for; may be nil
	open    bool
	closed  bool
	started bool
	wake    chan time.Duration
}

// NewQueue returns a queue with limits. The capacity bounds the attempts that have a place, 0 for no bound.
func NewQueue(env Env, limits []Limit, capacity int) *Queue {
	q := &Queue{
		env: env, limits: map[string]*pool{}, places: capacity, capacity: &pool{Limit: Limit{Concurrent: capacity}},
		freed: make(chan struct{}, 1), asks: make(chan struct{}, 1), shared: map[string]*pool{},
	}
	for _, l := range limits {
		q.limits[l.Class] = &pool{Limit: l}
	}
	reserved := []*pool{q.capacity}
	q.release = func() { q.give(reserved) }
	return q
}

// Unlimited reports whether no class has a limit.
func (q *Queue) Unlimited() bool { return len(q.limits) == 0 && q.sharing.Load() == 0 }

// Limited reports whether a limit applies to one of the classes.
func (q *Queue) Limited(classes []string) bool {
	limited := slices.ContainsFunc(classes, func(c string) bool { return q.limits[c] != nil })
	return limited || q.Shares(classes)
}

// Enter queues an attempt, which may have its turn at once.
func (q *Queue) Enter(t *Ticket) {
	if q.places == 0 && !q.Limited(t.Classes) {
		t.Turn(func() {})
		return
	}
	closed := false
	q.update(func() {
		if closed = q.closed; !closed {
			q.push(t)
		}
	})
	if closed {
		t.Left()
	}
}

// pools returns the pools of an attempt: its limits in this process, its shared limits, and the capacity.
func (q *Queue) pools(classes []string) (pools []*pool) {
	for _, limits := range []map[string]*pool{q.limits, q.shared} {
		for _, c := range classes {
			if p := limits[c]; p != nil && !slices.Contains(pools, p) {
				pools = append(pools, p)
			}
		}
	}
	return append(pools, q.capacity)
}

// Reserve takes a place of the capacity at once. ok is false if a limit applies to one of the classes, if no place is free or if a waiting
// attempt could use it; then Enter the attempt. Call release once, when the attempt has ended.
func (q *Queue) Reserve(classes []string) (release func(), ok bool) {
	if q.Limited(classes) {
		return nil, false
	}
	if q.places == 0 {
		return noRelease, true
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.capacity.room(now) || slices.ContainsFunc(q.lanes, func(l *lane) bool { return q.ready(l, now) }) {
		return nil, false
	}
	q.capacity.take(now)
	return q.release, true
}

func noRelease() {}

// Room returns how many more attempts of these classes the limits let begin: now by Concurrent, within a quarter of a second by PerSecond.
// Waiting attempts come first.
func (q *Queue) Room(classes []string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	room := math.MaxInt
	for _, p := range q.pools(classes) {
		if p == q.capacity {
			continue
		}
		waiting := 0
		for _, l := range q.lanes {
			if slices.Contains(l.pools, p) {
				waiting += l.arrivals.Len()
			}
		}
		if p.Concurrent > 0 {
			n := p.Concurrent - p.used - waiting
			if p.shared != nil {
				n -= p.shared.others
			}
			room = min(room, n)
		}
		if p.PerSecond > 0 {
			room = min(room, int(math.Ceil(p.PerSecond/4))-waiting)
		}
	}
	return max(0, room)
}

// Waiting returns the number of waiting attempts.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// InUse returns the number of attempts that have a place. Without a capacity, only attempts with a limit need one.
func (q *Queue) InUse() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.capacity.used
}

// Free returns the number of free places beyond the waiting attempts: math.MaxInt without a capacity, 0 after Open or Close.
func (q *Queue) Free() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.free()
}

func (q *Queue) free() int {
	switch {
	case q.open || q.closed:
		return 0
	case q.places == 0:
		return math.MaxInt
	}
	return max(0, q.places-q.capacity.used-q.waiting)
}

// Freed receives after Free has risen. Several rises may be received as one.
func (q *Queue) Freed() <-chan struct{} { return q.freed }

// Overdue returns the runs with an attempt that has waited since before a time, each once, in the order of their next turn. It omits attempts
// that wait for a shared limit: they would wait in other processes, too.
func (q *Queue) Overdue(since time.Time) (runs []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	var late []*line
	for _, l := range q.lanes {
		if !l.oldest().entered.Before(since) || l.sharedOnly(now) {
			continue
		}
		for e := l.lines.Front(); e != nil; e = e.Next() {
			if s := e.Value.(*line); s.first().entered.Before(since) {
				late = append(late, s)
			}
		}
	}
	slices.SortFunc(late, func(a, b *line) int {
		return cmp.Or(cmp.Compare(b.first().Priority, a.first().Priority), cmp.Compare(a.place, b.place))
	})
	listed := map[string]bool{}
	for _, s := range late {
		if run := s.first().Run; !listed[run] {
			listed[run] = true
			runs = append(runs, run)
		}
	}
	return runs
}

// Open lifts all limits, so that all tickets have their turn. A draining process calls it: other processes perform these attempts.
func (q *Queue) Open() {
	q.update(func() {
		q.open = true
		q.capacity.Limit = Limit{}
		for _, p := range q.limits {
			p.Limit = Limit{}
		}
		for _, p := range q.shared {
			p.Limit = Limit{}
		}
	})
}

// Close removes all tickets, and admits no more.
func (q *Queue) Close() {
	var left []*Ticket
	q.update(func() {
		q.closed = true
		for len(q.lanes) > 0 {
			t := q.lanes[0].oldest()
			q.remove(t)
			left = append(left, t)
		}
	})
	for _, t := range left {
		t.stop()
		t.Left()
	}
}

// update changes the queue and calls Turn of the tickets that have their turn then.
func (q *Queue) update(change func()) {
	q.mu.Lock()
	free := q.free()
	change()
	turns := q.turns()
	if q.free() > free {
		q.tellFreed()
	}
	if len(q.shared) > 0 {
		tell(q.asks)
	}
	q.mu.Unlock()
	for _, t := range turns {
		t.stop()
		t.Turn(sync.OnceFunc(func() { q.give(t.lane.pools) }))
	}
}

func (q *Queue) tellFreed() { tell(q.freed) }

// tell sends to a channel unless it holds a value.
func tell(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// give returns the places of an attempt.
func (q *Queue) give(pools []*pool) {
	q.update(func() {
		for _, p := range pools {
			p.used--
		}
	})
}

// push adds a ticket that arrives.
func (q *Queue) push(t *Ticket) {
	q.seq++
	t.seq, t.entered = q.seq, time.Now()
	q.place(t)
	q.waiting++
	t.stop = context.AfterFunc(t.Context, func() { q.leave(t) })
}

// place adds a ticket to its lane.
func (q *Queue) place(t *Ticket) {
	pools := q.pools(t.Classes)
	i := slices.IndexFunc(q.lanes, func(l *lane) bool { return l.priority == t.Priority && slices.Equal(l.pools, pools) })
	if i < 0 {
		if i = slices.IndexFunc(q.lanes, func(l *lane) bool { return l.priority < t.Priority }); i < 0 {
			i = len(q.lanes)
		}
		q.lanes = slices.Insert(q.lanes, i, newLane(pools, t.Priority))
	}
	q.lanes[i].push(t)
}

// leave removes a ticket whose context has ended.
func (q *Queue) leave(t *Ticket) {
	left := false
	q.update(func() {
		if left = t.waits(); left {
			q.remove(t)
		}
	})
	if left {
		t.Left()
	}
}

// remove removes a ticket that leaves, or has its turn.
func (q *Queue) remove(t *Ticket) {
	l := t.lane
	if t == l.oldest() {
		l.count()
		if q.held == l {
			q.held = nil
		}
	}
	l.remove(t)
	q.waiting--
	if l.empty() {
		q.lanes = slices.DeleteFunc(q.lanes, (*lane).empty)
	}
}

// turns removes the tickets that have their turn, and sets the time of the next check.
func (q *Queue) turns() (turns []*Ticket) {
	if q.waiting == 0 {
		return nil
	}
	now := time.Now()
	for {
		l, byAge, wait := q.next(now)
		if l == nil {
			if wait >= 0 {
				q.wakeAfter(wait)
			}
			return turns
		}
		turns = append(turns, q.take(l, byAge, now))
	}
}

// relief is the number of turns until one goes to the attempt that has waited longest.
const relief = 20

// next returns the lane with the next turn, and whether its oldest ticket has the turn. Without a lane, wait is the time until the next
// turn, or negative if an attempt must end first.
func (q *Queue) next(now time.Time) (next *lane, byAge bool, wait time.Duration) {
	if q.passed >= relief-1 {
		if l := q.oldest(now); l != nil {
			if l.fits(now) {
				return l, true, 0
			}
			q.held, q.passed = l, 0
		}
	}
	if q.held != nil && q.held.fits(now) {
		return q.held, true, 0
	}
	wait = -1
	for _, l := range q.lanes {
		if next != nil && l.priority < next.priority {
			break
		}
		d, ok := l.after(now)
		switch {
		case !ok || q.keeps(l, now):
		case d > 0:
			if wait < 0 || d < wait {
				wait = d
			}
		case next == nil || l.first().place < next.first().place:
			next = l
		}
	}
	return next, false, wait
}

// oldest returns the lane with the oldest ticket among those that others have passed. A lane without room is one of them only if no
// places are kept yet.
func (q *Queue) oldest(now time.Time) (oldest *lane) {
	for _, l := range q.lanes {
		older := oldest == nil || l.oldest().seq < oldest.oldest().seq
		if older && l.passed(now) && (q.held == nil || q.ready(l, now)) {
			oldest = l
		}
	}
	return oldest
}

// ready reports whether a lane could have the next turn.
func (q *Queue) ready(l *lane, now time.Time) bool { return l.fits(now) && !q.keeps(l, now) }

// keeps reports whether a lane must leave a place to the held lane. Places are kept in the first pools of the held lane, up to one without
// room, so that no place is idle while an earlier pool is full.
func (q *Queue) keeps(l *lane, now time.Time) bool {
	if q.held == nil || q.held == l {
		return false
	}
	for _, p := range q.held.pools {
		if !p.room(now) {
			break
		}
		if !p.spare() && slices.Contains(l.pools, p) {
			return true
		}
	}
	return false
}

// take removes the ticket with the next turn.
func (q *Queue) take(l *lane, byAge bool, now time.Time) *Ticket {
	t := l.first().first()
	q.passed++
	if byAge {
		t, q.passed = l.oldest(), 0
	}
	for _, p := range l.pools {
		p.take(now)
	}
	q.seq++
	l.toBack(t.Run, q.seq)
	q.remove(t)
	return t
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
