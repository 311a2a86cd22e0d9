package process

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// The rhythm of a search.
const (
	// searchDelay leaves the embedder time to register its workflows before the first round.
	searchDelay = 250 * time.Millisecond
	// searchInterval is how often the store is searched for orphans and for timers of other processes.
	searchInterval = 10 * time.Second
	// OverdueGrace is how long another process's timer may be overdue before it is fired here.
	OverdueGrace = time.Second
	// searchLimit bounds the runs that a round looks at.
	searchLimit = 500
	// glanceInterval is how often, between two rounds, the store is asked whether a process has gone or a timer is overdue.
	glanceInterval = time.Second
)

// Search finds runs without a driver and due timers in the store.
type Search struct {
	work.Env
	// TTL is that of the process's lease: of a short one, the rounds are shorter too.
	TTL      time.Duration
	Presence *Presence
	// Admit returns an error while there is no room for further runs; nil admits all.
	Admit func() error
	// Queue gets the timers that were found.
	Queue *Queue
	runs  driver

	orphans, due Turns
	departed     []string // processes that are gone and whose runs have been looked at
	// here and there are this process's and the store's time at the last look, quiet is when the claiming may go on.
	here, there, quiet time.Time
}

// interval is the pause between two rounds.
func (s *Search) interval() time.Duration { return min(searchInterval, s.TTL/2) }

// hostSlept reports whether the store's clock has moved much faster than this process's, as it does while the host sleeps: leases
// have run out then whose owners are as alive as this process, and about to renew them.
func (s *Search) hostSlept() bool {
	there, err := s.Store.Now(s.Context)
	if err != nil {
		return false // who cannot ask cannot claim either
	}
	here := time.Now()
	if !s.here.IsZero() && there.Sub(s.there)-here.Sub(s.here) > s.TTL/3 {
		s.quiet = here.Add(s.TTL/3 + 2*maxLookInterval)
	}
	s.here, s.there = here, there
	return here.Before(s.quiet)
}

// pause waits. It is false when the search is to end.
func (s *Search) pause(d time.Duration) bool { return wait.For(s.Context, d) == nil }

// Run searches until the engine closes.
func (s *Search) Run() {
	if !s.pause(searchDelay) {
		return
	}
	for {
		s.Presence.beat(s.Now())
		seen := s.Now()
		s.round()
		for left := s.interval(); left > 0; left -= glanceInterval {
			if !s.pause(min(left, glanceInterval)) {
				return
			}
			if left <= glanceInterval {
				break
			}
			if !s.hostSlept() && s.someoneLeft() {
				s.takeAll()
			}
			seen = s.glance(seen)
		}
	}
}

// someoneLeft reports whether a process has gone whose runs have not been looked at since.
func (s *Search) someoneLeft() bool {
	gone, err := s.Store.Departed(s.Context)
	if err != nil {
		return false // the next round says so
	}
	left := slices.ContainsFunc(gone, func(process string) bool { return !slices.Contains(s.departed, process) })
	s.departed = gone
	return left
}

// glance fires the timers that have become overdue since another look: nobody who lives has done so. As a rule it asks for
// the earliest timer and nothing else. Those that were overdue before, which may be left to others, are looked at by each
// round alone; if there are very many, so are all.
func (s *Search) glance(since time.Time) (now time.Time) {
	now = s.Now()
	overdue := now.Add(-OverdueGrace)
	if next, ok, err := s.Store.NextTimer(s.Context); err != nil || !ok || next.After(overdue) {
		return now
	}
	timers, err := s.Store.DueTimers(s.Context, overdue, searchLimit)
	if err != nil {
		return now // the next round says so
	}
	for _, t := range timers {
		if t.Due.After(since.Add(-OverdueGrace)) {
			s.Queue.Offer(t.ExecutionID, t.Due.Add(OverdueGrace))
		}
	}
	return now
}

func (s *Search) round() {
	if !s.hostSlept() && !s.takeAll() {
		return
	}
	timers, err := s.DueTimers(s.Context, s.Now().Add(s.interval()), searchLimit)
	if err != nil {
		s.Log.Warn("due timers not found", run.LogError, err)
		return
	}
	for _, t := range timers {
		s.Queue.Offer(t.ExecutionID, t.Due.Add(OverdueGrace))
	}
}

// takeAll takes over the runs without a driver. It is false when the search is to end.
func (s *Search) takeAll() bool {
	if s.Admit != nil {
		if err := s.Admit(); err != nil {
			s.Log.Warn("no runs taken over for now", run.LogError, err)
			return true
		}
	}
	_, err := s.TakeOrphans(s.Context, searchLimit, false)
	if s.Context.Err() != nil {
		return false
	}
	if err != nil {
		s.Log.Warn("orphans not found", run.LogError, err)
	}
	return true
}

// TakeOrphans takes over runs that no process with a live lease owns, and returns their ids. A patient call waits until it is
// known which workflows have become known, and takes over what was left because of them; otherwise that counts the next time.
func (s *Search) TakeOrphans(ctx context.Context, limit int, patient bool) ([]string, error) {
	ids, err := s.Store.Unowned(ctx, limit+s.orphans.Len())
	if err != nil {
		return nil, err
	}
	taken, left, err := s.takeEach(ctx, s.orphans.Choose(ids, limit))
	if err != nil {
		return taken, err
	}
	if learned := s.runs.reconsider(ctx); patient && learned() {
		more, _, err := s.takeEach(ctx, left)
		return append(taken, more...), err
	}
	return taken, context.Cause(ctx)
}

// takeEach takes over those of some runs that it can, and returns the others as they are to be looked at again.
func (s *Search) takeEach(ctx context.Context, runs []Turn) (taken []string, left []Turn, err error) {
	for _, t := range runs {
		if ctx.Err() != nil {
			return taken, left, context.Cause(ctx)
		}
		took, err := s.runs.takeOrphan(ctx, t.ExecutionID)
		switch {
		case took:
			s.Log.Info("run taken over", run.LogRun, t.ExecutionID)
			taken = append(taken, t.ExecutionID)
			continue
		case err != nil && !t.Again:
			s.Log.Warn("run not taken over", run.LogRun, t.ExecutionID, run.LogError, err)
		}
		left = append(left, Turn{t.ExecutionID, true})
	}
	return taken, left, nil
}

// DueTimers returns the earliest timers of runs of which one is due by a time. It reads on until it has come to as many runs as
// are to be looked at besides those that were, so that what it reads is bounded by the timers of the runs that are left to others.
func (s *Search) DueTimers(ctx context.Context, by time.Time, limit int) ([]history.Timer, error) {
	first := map[string]history.Timer{}
	var ids []string
	wanted := limit + s.due.Len()
	for rows := wanted; ; rows *= 2 {
		all, err := s.Store.DueTimers(ctx, by, rows)
		if err != nil {
			return nil, err
		}
		clear(first)
		ids = ids[:0]
		for _, t := range all {
			if _, ok := first[t.ExecutionID]; !ok {
				first[t.ExecutionID] = t
				ids = append(ids, t.ExecutionID)
			}
		}
		if len(ids) >= wanted || len(all) < rows {
			break
		}
	}
	var due []history.Timer
	for _, t := range s.due.Choose(ids, limit) {
		due = append(due, first[t.ExecutionID])
	}
	return due, nil
}

// Recover takes over what Survey finds, and fires the due timers.
func (p *Process) Recover(ctx context.Context, limit int) (*SurveyResult, error) {
	ids, err := p.search.TakeOrphans(ctx, limit, true)
	if err != nil {
		if ids == nil {
			return nil, err
		}
		return &SurveyResult{ExecutionIDs: ids}, err
	}
	found := &SurveyResult{ExecutionIDs: ids}
	due, err := p.search.DueTimers(ctx, p.Now(), limit)
	for _, t := range due {
		p.fire(Timer{ExecutionID: t.ExecutionID})
	}
	return found, err
}

// Turns remembers which runs were looked at in vain, and when, so that many of them do not keep others from their turn.
type Turns struct {
	mu     sync.Mutex
	round  uint64
	looked map[string]uint64 // by execution id: the last round
}

// Turn is a run to look at; Again says that it was looked at before.
type Turn struct {
	ExecutionID string
	Again       bool
}

// Len returns the number of runs that were looked at.
func (t *Turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.looked)
}

// Choose returns those of the runs to look at now, at most n: those not yet looked at in the given order, then the others,
// that of the longest ago first. Runs that are not among the given ones any more are forgotten.
func (t *Turns) Choose(ids []string, n int) []Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(t.looked[a], t.looked[b]) })
	t.round++
	looked := make(map[string]uint64, len(ids))
	var chosen []Turn
	for i, id := range ids {
		last, again := t.looked[id]
		if i < n {
			chosen = append(chosen, Turn{id, again})
			last, again = t.round, true
		}
		if again {
			looked[id] = last
		}
	}
	t.looked = looked
	return chosen
}

// maxBeat is longer than a search takes from one round to the next, unless the host sleeps.
const maxBeat = 3 * searchInterval

// Presence is since when a process has been running without a break. When a host that slept wakes up, everything is overdue, and
// who is first to look may be anybody.
type Presence struct {
	mu    sync.Mutex
	begun time.Time
	last  time.Time // when the process was last seen running, zero before the first round of a search
}

// Begin notes when the process began.
func (p *Presence) Begin(now time.Time) { p.begun = now }

// beat notes a round of a search.
func (p *Presence) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	p.last = now
}

// Since returns since when the process has been running.
func (p *Presence) Since(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	return p.begun
}

func (p *Presence) notice(now time.Time) {
	if p.last.IsZero() {
		return // without rounds it cannot be told
	}
	if now.Sub(p.last) > maxBeat {
		p.begun = now
	}
	p.last = now
}
