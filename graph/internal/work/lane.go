package work

import (
	"slices"
	"time"
)

const (
	// maxPassed bounds how often tickets of a higher priority pass the oldest ticket, and other lanes pass a lane.
	maxPassed = 3
	// pause is the number of turns of others before a run with more tickets may pass again.
	pause = 9
)

// lane holds the tickets that need room in the same pools.
type lane struct {
	pools   []*pool
	waiting [orders]sorted
	shares  map[string]*share
	// round is the round of the last ticket that had its turn by round. Each run has one turn in a round.
	round uint64
	// turn counts the turns. pausing are the runs that may pass again later, in this order.
	turn    uint64
	pausing []*share
	// passed counts the turns of a higher priority than the oldest ticket's, since it is the oldest.
	passed int
	// yielded counts the turns lost to lanes of a higher priority since this lane's last turn.
	yielded int
	// missed counts, for each of the pools, the turns of other lanes since this one had its last turn, or began to wait.
	missed []int
}

// share holds the waiting tickets of a run in a lane.
type share struct {
	run     string
	round   uint64 // of its last ticket
	waiting []*Ticket
	until   uint64 // until this turn of the lane, the run does not pass
}

func newLane(pools []*pool) *lane {
	l := &lane{pools: pools, shares: map[string]*share{}, missed: make([]int, len(pools))}
	for o := range l.waiting {
		l.waiting[o].order = order(o)
	}
	return l
}

func (l *lane) matches(pools []*pool) bool { return slices.Equal(l.pools, pools) }

func (l *lane) len() int { return l.waiting[byRound].Len() }

// push adds a ticket.
func (l *lane) push(t *Ticket) {
	s := l.shares[t.Run]
	if s == nil {
		s = &share{run: t.Run}
		l.shares[t.Run] = s
	}
	s.round = max(s.round, l.round) + 1
	t.lane, t.round = l, s.round
	s.waiting = append(s.waiting, t)
	l.waiting[byRound].add(t)
	l.waiting[byArrival].add(t)
	l.mayPass(s)
}

// mayPass lets the first ticket of a run pass others, unless the run pauses.
func (l *lane) mayPass(s *share) {
	if l.turn >= s.until {
		l.waiting[byPriority].add(s.waiting[0])
	}
}

// remove removes a ticket that leaves, or has its turn.
func (l *lane) remove(t *Ticket) {
	for o := range l.waiting {
		l.waiting[o].remove(t)
	}
	s := l.shares[t.Run]
	if s.waiting[0] == t {
		s.waiting = s.waiting[1:] // the usual case
	} else {
		i := slices.Index(s.waiting, t)
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	if len(s.waiting) == 0 {
		delete(l.shares, t.Run)
	} else {
		l.mayPass(s)
	}
}

// next returns the ticket with the next turn. The lane is not empty.
func (l *lane) next() *Ticket {
	if l.passed >= maxPassed {
		return l.waiting[byArrival].tickets[0]
	}
	t := l.waiting[byRound].tickets[0]
	if first := l.waiting[byPriority].tickets; len(first) > 0 && first[0].Priority > t.Priority {
		return first[0]
	}
	return t
}

// take removes the ticket with the next turn.
func (l *lane) take() *Ticket {
	t, oldest := l.next(), l.waiting[byArrival].tickets[0]
	switch {
	case t == oldest:
		l.passed = 0
	case t.Priority > oldest.Priority:
		l.passed++
	}
	if t == l.waiting[byRound].tickets[0] {
		l.round = max(l.round, t.round)
	}
	l.turn++
	s := l.shares[t.Run]
	s.until = l.turn + pause
	l.remove(t)
	if len(s.waiting) > 0 {
		l.pausing = append(l.pausing, s)
	}
	for len(l.pausing) > 0 && l.pausing[0].until <= l.turn {
		if s := l.pausing[0]; l.shares[s.run] == s {
			l.mayPass(s)
		}
		l.pausing = l.pausing[1:]
	}
	return t
}

// before reports whether the lane has the next turn before another one, which may be nil. Both have room.
func (l *lane) before(other *lane) bool {
	if other == nil {
		return true
	}
	if owed := l.yielded >= maxPassed; owed != (other.yielded >= maxPassed) {
		return owed
	}
	return l.next().Priority > other.next().Priority
}

// yield counts a turn that this lane lost to another one.
func (l *lane) yield(first *lane) {
	switch {
	case l == first:
		l.yielded = 0
	case l.next().Priority < first.next().Priority:
		l.yielded++
	}
}

// after returns the time until the lane's next ticket may have its turn.
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
