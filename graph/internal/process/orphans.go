package process

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// The intervals and bounds of a search.
const (
	// searchDelay leaves the embedder time to register its workflows before the first round.
	searchDelay = 250 * time.Millisecond
	// searchInterval is the interval of searches for orphans and for timers of other processes.
	searchInterval = 10 * time.Second
	// OverdueGrace is how long another process's timer is overdue before it fires here.
	OverdueGrace = time.Second
	// searchLimit bounds the runs that a round checks.
	searchLimit = 500
	// glanceInterval is the interval of overviews. Between two rounds they show departed processes and overdue timers.
	glanceInterval = time.Second
)

// Search finds orphaned runs and due timers in the store.
type Search struct {
	work.Env
	// TTL is that of the process's lease: a short one shortens the rounds.
	TTL      time.Duration
	Presence *Presence
	// Admit returns an error while there is no room for further runs; nil admits all.
	Admit func() error
	// Free returns the number of attempts that still fit.
	Free func() int
	// Skip reports whether the search leaves the ready runs of a lane to claims.
	Skip func(history.Lane) bool
	// Queue receives the timers found.
	Queue *Queue
	// Overview reads the store's overview.
	Overview func() (history.Overview, error)
	runs     driver

	orphans, due Turns
	// owed reports that the last search left orphans unchecked because there was no room for them.
	owed     atomic.Bool
	departed []string // departed processes whose runs were checked
	// here and there are this process's and the store's time at the last check; quiet is the time until which it claims no runs.
	here, there, quiet time.Time
}

// interval is the pause between two rounds.
func (s *Search) interval() time.Duration { return min(searchInterval, s.TTL/2) }

// look reads the overview. Without an answer, known is false and everything is possible.
func (s *Search) look() (o history.Overview, known bool) {
	o, err := s.Overview()
	return o, err == nil
}

// hostSlept reports whether the store's clock has moved much faster than this process's, as it does while the host sleeps. Leases have
// run out then whose owners are alive and about to renew them. there is the store's time, just read.
func (s *Search) hostSlept(there time.Time) bool {
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
			o, known := s.look()
			if known && !s.hostSlept(o.Now) && (s.newlyDeparted(o.Departed) || s.owed.Load()) {
				s.takeAll()
			}
			seen = s.glance(o.NextTimer, seen)
		}
	}
}

// newlyDeparted reports whether one of the departed processes was not among them when runs were last checked.
func (s *Search) newlyDeparted(gone []string) bool {
	left := slices.ContainsFunc(gone, func(process string) bool { return !slices.Contains(s.departed, process) })
	s.departed = gone
	return left
}

// glance fires the timers that have become overdue since another check: no live process has fired them. next is the earliest timer; zero without
// one. Timers that were overdue before may be left to others; only rounds check them, and all timers if there are very many.
func (s *Search) glance(next, since time.Time) (now time.Time) {
	now = s.Now()
	overdue := now.Add(-OverdueGrace)
	if next.IsZero() || next.After(overdue) {
		return now
	}
	timers, err := s.Store.DueTimers(s.Context, overdue, searchLimit)
	if err != nil {
		return now // the next round reports it
	}
	for _, t := range timers {
		if t.Due.After(since.Add(-OverdueGrace)) {
			s.Queue.Offer(t.ExecutionID, t.Due.Add(OverdueGrace))
		}
	}
	return now
}

// round looks for orphans and for timers that are due before the next round. It asks for them only if the overview shows that there may be some.
func (s *Search) round() {
	o, known := s.look()
	switch orphans := !known || o.Unowned || o.Ready || len(o.Departed) > 0; {
	case known && s.hostSlept(o.Now):
	case !orphans:
		s.orphans.Choose(nil, 0)
		s.owed.Store(false)
		s.runs.reconsider(s.Context)
	case !s.takeAll():
		return
	}
	by := s.Now().Add(s.interval())
	if known && (o.NextTimer.IsZero() || o.NextTimer.After(by)) {
		s.due.Choose(nil, 0)
		return
	}
	timers, err := s.DueTimers(s.Context, by, searchLimit)
	if err != nil {
		s.Log.Warn("due timers not found", run.LogError, err)
		return
	}
	for _, t := range timers {
		s.Queue.Offer(t.ExecutionID, t.Due.Add(OverdueGrace))
	}
}

// takeAll claims the orphaned runs that it can and has room for. It is false when the search is to end.
func (s *Search) takeAll() bool {
	room := min(searchLimit, s.Free())
	if room == 0 {
		s.owed.Store(true)
		return true
	}
	if s.Admit != nil {
		if err := s.Admit(); err != nil {
			s.Log.Warn("no runs claimed for now", run.LogError, err)
			return true
		}
	}
	_, more, err := s.TakeOrphans(s.Context, room, false)
	s.owed.Store(more)
	if s.Context.Err() != nil {
		return false
	}
	if err != nil {
		s.Log.Warn("orphans not found", run.LogError, err)
	}
	return true
}

// TakeOrphans checks at most limit runs without a live owner, claims those that it can, and returns their ids. more reports that there are others
// that were never checked. A patient call waits for the lookup of unknown workflows, and claims the runs that were left because of them;
// otherwise the next call does.
func (s *Search) TakeOrphans(ctx context.Context, limit int, patient bool) (taken []string, more bool, err error) {
	n := limit + s.orphans.Len() + 1
	ids, err := s.Store.Unowned(ctx, n)
	if err != nil {
		return nil, false, err
	}
	unserved, err := history.Unserved(ctx, s.Store, "", s.Skip, n)
	if err != nil {
		return nil, false, err
	}
	chosen, more := s.orphans.Choose(append(ids, unserved...), limit)
	taken, left, err := s.takeEach(ctx, chosen)
	if err != nil {
		return taken, more, err
	}
	if learned := s.runs.reconsider(ctx); patient && learned() {
		again, _, err := s.takeEach(ctx, left)
		return append(taken, again...), more, err
	}
	return taken, more, context.Cause(ctx)
}

// takeEach claims the runs that it can, and returns the others for a second try.
func (s *Search) takeEach(ctx context.Context, runs []Turn) (taken []string, left []Turn, err error) {
	for _, t := range runs {
		if ctx.Err() != nil {
			return taken, left, context.Cause(ctx)
		}
		took, err := s.runs.takeOrphan(ctx, t.ExecutionID)
		switch {
		case took:
			s.Log.Info("run claimed", run.LogRun, t.ExecutionID)
			taken = append(taken, t.ExecutionID)
			continue
		case err != nil && !t.Again:
			s.Log.Warn("run not claimed", run.LogRun, t.ExecutionID, run.LogError, err)
		}
		left = append(left, Turn{t.ExecutionID, true})
	}
	return taken, left, nil
}

// DueTimers returns the earliest timer of each run with a timer due by a time. It reads until it has limit runs besides those that were
// checked before, so the timers of runs left to others bound the reads.
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
	chosen, _ := s.due.Choose(ids, limit)
	for _, t := range chosen {
		due = append(due, first[t.ExecutionID])
	}
	return due, nil
}

// Recover claims the runs that a survey finds, and fires the due timers.
func (p *Process) Recover(ctx context.Context, limit int) (*SurveyResult, error) {
	ids, _, err := p.search.TakeOrphans(ctx, limit, true)
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

// Turns remembers the runs that were checked in vain, so that they do not delay the others.
type Turns struct {
	mu     sync.Mutex
	round  uint64
	looked map[string]uint64 // by execution id: the round of the last check
}

// Turn is a run to check. Again is set if it was checked before.
type Turn struct {
	ExecutionID string
	Again       bool
}

// Len returns the number of runs that were checked.
func (t *Turns) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.looked)
}

// Choose returns at most n of the runs to check now: first the new ones, in order, then the others, the oldest check first. more reports that
// there are further new ones. It forgets runs that are not given.
func (t *Turns) Choose(ids []string, n int) (chosen []Turn, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(t.looked[a], t.looked[b]) })
	t.round++
	looked := make(map[string]uint64, len(ids))
	for i, id := range ids {
		last, again := t.looked[id]
		if i < n {
			chosen = append(chosen, Turn{id, again})
			last, again = t.round, true
		}
		if again {
			looked[id] = last
		} else {
			more = true
		}
	}
	t.looked = looked
	return chosen, more
}

// maxBeat is longer than the interval of two rounds, unless the host sleeps.
const maxBeat = 3 * searchInterval

// Presence is the time since which a process has run without a break. When a host wakes up, everything is overdue, and any process may be
// the first to check.
type Presence struct {
	mu    sync.Mutex
	begun time.Time
	last  time.Time // the last round of a search, zero before the first one
}

// Begin sets the start of the process.
func (p *Presence) Begin(now time.Time) { p.begun = now }

// beat is called in each round of a search.
func (p *Presence) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	p.last = now
}

// Since returns the time since which the process has run.
func (p *Presence) Since(now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notice(now)
	return p.begun
}

func (p *Presence) notice(now time.Time) {
	if p.last.IsZero() {
		return // without rounds it is unknown
	}
	if now.Sub(p.last) > maxBeat {
		p.begun = now
	}
	p.last = now
}
