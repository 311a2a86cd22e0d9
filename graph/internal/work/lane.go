package work

import (
	"container/list"
	"time"
)

// lane holds the waiting tickets of one priority that need places in the same pools.
type lane struct {
	pools    []*pool
	priority int
	byRun    map[string]*line
	lines    list.List // of *line, the next turn first
	arrivals list.List // of *Ticket, the oldest first
	// filled holds pool.filled of each pool since the oldest ticket is the oldest.
	filled []uint64
}

// line holds the waiting tickets of a run in a lane.
type line struct {
	place   uint64 // Queue.seq when the run arrived, or had its last turn
	waiting list.List
	at      *list.Element // in lane.lines
}

func (s *line) first() *Ticket { return s.waiting.Front().Value.(*Ticket) }

func newLane(pools []*pool, priority int) *lane {
	l := &lane{pools: pools, priority: priority, byRun: map[string]*line{}, filled: make([]uint64, len(pools))}
	l.count()
	return l
}

func (l *lane) empty() bool { return l.arrivals.Len() == 0 }

// first returns the line with the next turn. The lane is not empty.
func (l *lane) first() *line { return l.lines.Front().Value.(*line) }

// oldest returns the ticket that has waited longest. The lane is not empty.
func (l *lane) oldest() *Ticket { return l.arrivals.Front().Value.(*Ticket) }

// push adds a ticket.
func (l *lane) push(t *Ticket) {
	s := l.byRun[t.Run]
	if s == nil {
		s = &line{place: t.seq}
		s.at = l.lines.PushBack(s)
		l.byRun[t.Run] = s
	}
	t.lane, t.inLane, t.inLine = l, l.arrivals.PushBack(t), s.waiting.PushBack(t)
}

// remove removes a ticket that waits.
func (l *lane) remove(t *Ticket) {
	s := l.byRun[t.Run]
	l.arrivals.Remove(t.inLane)
	s.waiting.Remove(t.inLine)
	t.inLane, t.inLine = nil, nil
	if s.waiting.Len() == 0 {
		l.lines.Remove(s.at)
		delete(l.byRun, t.Run)
	}
}

// toBack puts a run behind the others.
func (l *lane) toBack(run string, place uint64) {
	s := l.byRun[run]
	s.place = place
	l.lines.MoveToBack(s.at)
}

// after returns the time until a ticket may have its turn; ok is false if an attempt must end first.
func (l *lane) after(now time.Time) (d time.Duration, ok bool) {
	for _, p := range l.pools {
		wait, ok := p.after(now)
		if !ok {
			return 0, false
		}
		d = max(d, wait)
	}
	return d, true
}

func (l *lane) fits(now time.Time) bool {
	d, ok := l.after(now)
	return ok && d == 0
}

// count begins to count the turns that pass the oldest ticket.
func (l *lane) count() {
	for i, p := range l.pools {
		l.filled[i] = p.filled
	}
}

// passed reports whether others have passed the oldest ticket often enough: they have filled one of its pools, and each that is full now,
// in all turns but every twentieth. A pool that is full for long is not filled often; keeping places in others meanwhile would waste them.
func (l *lane) passed(now time.Time) (passed bool) {
	for i, p := range l.pools {
		often := p.filled-l.filled[i] >= relief-1
		if !often && !p.room(now) {
			return false
		}
		passed = passed || often
	}
	return passed
}
