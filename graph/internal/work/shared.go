package work

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// sharing is the part of a pool whose limit all processes of the store share. The places are the slots that this process holds; an attempt
// begins at a time that this process has reserved. While an attempt waits for either, it has no place in any pool.
type sharing struct {
	// slots are the slots of this process, others those of all other processes, as last known.
	slots, others int
	// returning is the number of slots to return as attempts end.
	returning int
	starts    []start // in order
	// peak is the largest number of slots in use since the last look, before that between the two looks before.
	peak, before int
	// unknown: the store may not know of the slots in use.
	unknown bool
	// told is the number of slots that the store believes this process to lack.
	told int
	// lasts reports whether the lease of the process lasts: its slots count only then.
	lasts func() bool
}

// start is a reserved time for a start, by the clocks of this process and of the store.
type start struct{ here, stored time.Time }

// lateness is how long after its time a reserved start may be used: a quarter of the time between two starts, but at least startSlack.
func (p *pool) lateness() time.Duration {
	return max(startSlack, history.SharedLimit{PerSecond: p.PerSecond}.Step()/4)
}

const startSlack = history.StartsAhead / 2

// sharedAfter is pool.after.
func (p *pool) sharedAfter(now time.Time) (d time.Duration, ok bool) {
	if p.Concurrent > 0 && (p.unused() <= 0 || !p.shared.lasts()) {
		return 0, false
	}
	if p.PerSecond <= 0 {
		return 0, true
	}
	p.expire(now)
	if len(p.shared.starts) == 0 {
		return 0, false
	}
	return max(0, p.shared.starts[0].here.Sub(now)), true
}

// unused returns the number of slots that further attempts may use.
func (p *pool) unused() int { return p.shared.slots - p.shared.returning - p.used }

// expire drops the starts whose time has passed.
func (p *pool) expire(now time.Time) {
	s := p.shared
	n := 0
	for n < len(s.starts) && now.Sub(s.starts[n].here) > p.lateness() {
		n++
	}
	s.starts = s.starts[n:]
}

// takeShared takes a slot and a start.
func (p *pool) takeShared() {
	s := p.shared
	s.peak = max(s.peak, p.used)
	if p.PerSecond > 0 && len(s.starts) > 0 {
		s.starts = s.starts[1:]
	}
}

// Demand is what a process wants of a shared limit, and holds of it.
type Demand struct {
	history.Want
	// Held is the number of slots that the process holds.
	Held int
	// Free: a slot that others lack has become free, the store may not know of slots in use, or it keeps one free for this process, which wants none.
	Free bool
}

// Shares reports whether a shared limit applies to one of the classes.
func (q *Queue) Shares(classes []string) bool {
	if q.sharing.Load() == 0 {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(classes, func(c string) bool { return q.shared[c] != nil })
}

// Asks receives after the result of Demands may have changed. Several changes may be received as one.
func (q *Queue) Asks() <-chan struct{} { return q.asks }

// Demands returns what the waiting attempts want of the shared limits, for those limits where the process has too little or too much. Unused
// starts in it are not used any more. If again is positive, further starts can be used after that time.
func (q *Queue) Demands(now time.Time) (demands []Demand, again time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open || q.closed {
		return nil, 0
	}
	for _, class := range slices.Sorted(maps.Keys(q.shared)) {
		p := q.shared[class]
		slots, starts := 0, 0
		left := map[*pool]int{}
		for _, l := range q.lanes {
			if !slices.Contains(l.pools, p) {
				continue
			}
			begin, soon, wait := l.beginning(left, now)
			if wait > 0 && (again == 0 || wait < again) {
				again = wait
			}
			slots += p.slotsFor(l, begin)
			starts += p.startsFor(l, soon)
		}
		if p.Concurrent > 0 {
			starts = min(starts, max(0, p.unused()))
		}
		if d := p.demand(slots, starts); d.Free || d.Slots != d.Held || d.Starts > 0 || d.Unused > 0 {
			demands = append(demands, d)
		}
	}
	return demands, again
}

// beginning returns how many attempts of the lane the limits of this process and its capacity let begin, and how many of them before reserved
// starts would expire. If a rate allows none of them, wait is the time until it does. left holds
// the free places of pools that the lanes before have left, and is changed.
func (l *lane) beginning(left map[*pool]int, now time.Time) (begin, soon int, wait time.Duration) {
	begin = l.arrivals.Len()
	for _, p := range l.pools {
		if p.shared != nil || p.Concurrent == 0 {
			continue
		}
		if _, known := left[p]; !known {
			left[p] = max(0, p.Concurrent-p.used)
		}
		begin = min(begin, left[p])
	}
	soon = begin
	for _, p := range l.pools {
		if p.shared != nil {
			continue
		}
		if p.Concurrent > 0 {
			left[p] -= begin
		}
		if p.PerSecond > 0 {
			p.refill(now)
			const rounding = 1e-6
			n := int(p.tokens + p.PerSecond*startSlack.Seconds() + rounding)
			if soon = min(soon, max(0, n)); n < 1 {
				d, _ := p.after(now)
				wait = max(wait, d-startSlack, time.Millisecond)
			}
		}
	}
	return begin, soon, wait
}

// slotsFor returns how many slots n attempts of a lane need, considering the slots of its other shared limits.
func (p *pool) slotsFor(l *lane, n int) int {
	for _, o := range l.pools {
		if o.shared != nil && o != p && o.Concurrent > 0 {
			n = min(n, max(0, o.Concurrent-o.shared.others-o.used))
		}
	}
	return n
}

// startsFor returns how many starts n attempts of a lane need, considering its slots and the starts of its lower shared rates.
func (p *pool) startsFor(l *lane, n int) int {
	for _, o := range l.pools {
		if o.shared == nil {
			continue
		}
		if o.Concurrent > 0 {
			n = min(n, max(0, o.unused()))
		}
		if o != p && o.PerSecond > 0 && cmp.Or(cmp.Compare(o.PerSecond, p.PerSecond), cmp.Compare(o.Class, p.Class)) < 0 {
			n = min(n, len(o.shared.starts))
		}
	}
	return n
}

// demand returns the demand of attempts that need so many slots and starts.
func (p *pool) demand(slots, starts int) Demand {
	s := p.shared
	d := Demand{Want: history.Want{Class: p.Class}}
	if p.Concurrent > 0 {
		d.Held, d.Used = s.slots, p.used
		d.Slots = max(p.used, min(max(p.used+slots, s.peak, s.before), p.Concurrent))
		d.Free = s.returning > 0 && p.used < s.slots || s.unknown && p.used > 0 || s.told > 0 && d.Slots == 0
	}
	if p.PerSecond > 0 {
		if p.Concurrent > 0 {
			d.Starting = starts
		}
		d.Starts = max(0, starts-len(s.starts))
		if d.Unused = max(0, len(s.starts)-starts); d.Unused > 0 {
			n := len(s.starts) - d.Unused
			d.First = s.starts[n].stored
			s.starts = s.starts[:n]
		}
	}
	return d
}

// Granted notes the answer of the store to a want of this process, which arrived at a time.
func (q *Queue) Granted(class string, g *history.Granted, arrived time.Time) {
	q.update(func() {
		p := q.shared[class]
		switch {
		case p == nil || q.open || q.closed:
			return
		case !g.Limit.Bounds():
			q.unshare(p)
			return
		}
		s := p.shared
		p.Concurrent, p.PerSecond = g.Limit.Concurrent, g.Limit.PerSecond
		returned := s.slots - g.Slots
		if s.returning = max(0, s.returning-returned); returned <= 0 {
			s.returning = 0 // nobody needs them any more
		}
		s.slots, s.others, s.unknown, s.told = g.Slots, g.Others, false, 0
		if step := g.Limit.Step(); step > 0 {
			for i := range g.Starts {
				ahead := time.Duration(i) * step
				s.starts = append(s.starts, start{arrived.Add(g.First.Sub(g.Now) + ahead), g.First.Add(ahead)})
			}
		}
	})
}

// SetShared replaces the shared limits by those of the store. process is the name of this process there, and lasts reports whether its lease
// lasts.
func (q *Queue) SetShared(uses []history.LimitUse, process string, lasts func() bool) {
	if len(uses) == 0 && q.sharing.Load() == 0 {
		return
	}
	q.update(func() {
		if q.open || q.closed {
			return
		}
		added, more := false, false
		listed := map[string]bool{}
		for i := range uses {
			u := &uses[i]
			listed[u.Class] = true
			p := q.shared[u.Class]
			if p == nil {
				p = &pool{shared: &sharing{lasts: lasts}}
				q.shared[u.Class] = p
				q.sharing.Store(int32(len(q.shared)))
				added = true
			}
			own, _ := u.ShareOf(process)
			others := u.Slots() - own.Slots
			more = more || u.Concurrent-others > p.Concurrent-p.shared.others
			p.Limit = Limit{Class: u.Class, Concurrent: u.Concurrent, PerSecond: u.PerSecond}
			s := p.shared
			s.others, s.returning = others, min(s.slots, own.Slots-u.Keep(process))
			s.unknown = s.unknown || own.Slots < s.slots && p.used > 0
			s.before, s.peak, s.told = s.peak, p.used, own.Short()
		}
		for class, p := range q.shared {
			if !listed[class] {
				q.unshare(p)
				more = true
			}
		}
		if added {
			q.relane()
		}
		if more {
			q.tellFreed()
		}
	})
}

// unshare removes a shared limit.
func (q *Queue) unshare(p *pool) {
	delete(q.shared, p.Class)
	q.sharing.Store(int32(len(q.shared)))
	p.Limit = Limit{}
}

// LoseShares drops the slots of this process, whose lease is lost. Attempts that use some go on.
func (q *Queue) LoseShares() {
	q.update(func() {
		for _, p := range q.shared {
			p.shared.slots, p.shared.returning, p.shared.unknown = 0, 0, true
		}
	})
}

// relane moves the waiting tickets to the lanes of the limits of today.
func (q *Queue) relane() {
	var all []*Ticket
	for _, l := range q.lanes {
		for e := l.arrivals.Front(); e != nil; e = e.Next() {
			all = append(all, e.Value.(*Ticket))
		}
	}
	slices.SortFunc(all, func(a, b *Ticket) int { return cmp.Compare(a.seq, b.seq) })
	q.lanes, q.held = nil, nil
	for _, t := range all {
		q.place(t)
	}
}

// sharedOnly reports whether the attempts of a lane wait for a shared limit and for nothing else, or for one that is full in all processes: no
// other process could begin them earlier.
func (l *lane) sharedOnly(now time.Time) bool {
	room, shares, full := true, false, false
	for _, p := range l.pools {
		if p.shared == nil {
			room = room && p.room(now)
			continue
		}
		shares = shares || !p.room(now)
		full = full || p.Concurrent > 0 && p.used+p.shared.others >= p.Concurrent
	}
	return full || shares && room
}
