package historymem

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/internal/storeclock"
)

// live reports whether a process has an unexpired lease.
func (s *Store) live(process string) bool {
	return s.processes[process].end.After(milli(s.clock.Leases()))
}

// owning returns the processes that own runs.
func (s *Store) owning() map[string]bool {
	owning := map[string]bool{}
	for _, x := range s.runs {
		owning[x.owner] = true
	}
	delete(owning, "")
	return owning
}

// Now returns the store's time; see history.Store.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.do(ctx, func() { now = s.clock.Now() })
	return now, err
}

// Renew makes the lease of a process last for ttl from now; see history.Store.
func (s *Store) Renew(ctx context.Context, name string, ttl time.Duration) error {
	return s.do(ctx, func() {
		s.processes[name] = process{time.UnixMilli(history.CeilMillis(s.clock.Leases().Add(ttl))), s.processes[name].about}
		s.forgetProcesses()
	})
}

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, name string) error {
	return s.do(ctx, func() {
		if s.live(name) {
			s.processes[name] = process{milli(s.clock.Leases()), s.processes[name].about}
		}
		s.forgetProcesses()
	})
}

// forgetProcesses removes expired processes that own no runs, and processes whose lease was set by a wrong clock.
func (s *Store) forgetProcesses() {
	owning := s.owning()
	wrong := s.clock.Leases().Add(storeclock.MaxStep)
	maps.DeleteFunc(s.processes, func(name string, p process) bool {
		return !s.live(name) && !owning[name] || p.end.After(wrong)
	})
	s.forgetShares()
}

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error) {
	err = s.do(ctx, func() {
		for _, id := range executionIDs {
			if x := s.runs[id]; x != nil && !x.execution().Phase.Terminal() && !s.ownedElsewhere(x, process) {
				s.give(x, process)
				claimed = append(claimed, id)
			}
		}
	})
	return claimed, err
}

// Disown releases runs that a process owns; see history.Store.
func (s *Store) Disown(ctx context.Context, process string, executionIDs ...string) error {
	return s.do(ctx, func() {
		for _, id := range executionIDs {
			if x := s.runs[id]; x != nil && x.owner == process {
				x.owner, x.disowned = "", milli(s.clock.Leases())
			}
		}
	})
}

// give makes a process the owner of a run.
func (s *Store) give(x *run, process string) {
	x.owner, x.disowned = process, time.Time{}
	delete(s.ready, x)
}

// ownedElsewhere reports whether another process with an unexpired lease owns a run.
func (s *Store) ownedElsewhere(x *run, process string) bool {
	return x.owner != "" && x.owner != process && s.live(x.owner)
}

// keepOwner stores the owner of a run after an accepted batch.
func (s *Store) keepOwner(x *run, b *history.Batch) {
	switch {
	case b.Execution.Phase.Terminal():
		s.give(x, "")
		return
	case b.Disown:
		x.owner, x.disowned = "", milli(s.clock.Leases())
	case b.Owner != "":
		s.give(x, b.Owner)
	}
	if b.Ready != nil && x.owner == "" {
		s.makeReady(x, b.Ready)
	}
}

// Owner returns the owner of a run; see history.Store.
func (s *Store) Owner(ctx context.Context, executionID string) (o history.Owner, err error) {
	err = s.do(ctx, func() {
		x := s.runs[executionID]
		if x == nil {
			return
		}
		o.Process = x.owner
		end := x.disowned
		if x.owner != "" {
			end = s.processes[x.owner].end
		}
		if !end.IsZero() {
			o = history.OwnerUntil(x.owner, end, milli(s.clock.Leases()))
		}
	})
	return o, err
}

// Owned returns the runs that a process owns; see history.Store.
func (s *Store) Owned(ctx context.Context, process string) (map[string]int64, error) {
	owned := map[string]int64{}
	err := s.do(ctx, func() {
		for id, x := range s.runs {
			if x.owner == process {
				owned[id] = int64(len(x.rows))
			}
		}
	})
	return owned, err
}

// Processes returns the processes with a live lease; see history.Roster.
func (s *Store) Processes(ctx context.Context) (live []history.Process, err error) {
	err = s.do(ctx, func() {
		owned := map[string]int{}
		for _, x := range s.runs {
			owned[x.owner]++
		}
		now := milli(s.clock.Leases())
		for _, name := range slices.Sorted(maps.Keys(s.processes)) {
			if p := s.processes[name]; p.end.After(now) {
				live = append(live, history.Process{Name: name, Left: p.end.Sub(now), Runs: owned[name], About: history.ParseAbout(p.about)})
			}
		}
	})
	return live, err
}

// Describe replaces the description of a process; see history.Roster.
func (s *Store) Describe(ctx context.Context, process string, a history.About) error {
	text, err := a.AppendText(nil)
	if err != nil {
		return err
	}
	return s.do(ctx, func() {
		if p := s.processes[process]; s.live(process) {
			p.about = text
			s.processes[process] = p
		}
	})
}

// Overview answers the questions that a process repeats; see history.Store.
func (s *Store) Overview(ctx context.Context, process string) (o history.Overview, err error) {
	err = s.do(ctx, func() {
		owning := s.owning()
		o.Now, o.Ready, o.Limited = s.clock.Now(), len(s.ready) > 0, len(s.limits) > 0
		for _, name := range slices.Sorted(maps.Keys(s.processes)) {
			if s.live(name) {
				o.Live = append(o.Live, name)
			}
		}
		if gone := slices.DeleteFunc(slices.Sorted(maps.Keys(owning)), s.live); len(gone) > 0 {
			o.Departed = gone
		}
		o.Owns = owning[process]
		for _, x := range s.runs {
			o.Unowned = o.Unowned || x.owner == "" && !s.ready[x] && x.execution().NeedsDriver()
			for i := range x.timers {
				if due := x.timers[i].Due; o.NextTimer.IsZero() || due.Before(o.NextTimer) {
					o.NextTimer = due
				}
			}
		}
	})
	return o, err
}

// Unowned returns runs that need a driver and have no owner; see history.Store.
func (s *Store) Unowned(ctx context.Context, limit int) (ids []string, err error) {
	since := map[string]time.Time{}
	err = s.do(ctx, func() {
		phase := func(id string) (history.Phase, bool) {
			if x := s.runs[id]; x != nil {
				return x.execution().Phase, true
			}
			return "", false
		}
		for id, x := range s.runs {
			if !s.ready[x] && !s.ownedElsewhere(x, "") && x.execution().Orphaned(phase) {
				since[id] = cmp.Or(s.processes[x.owner].end, x.disowned, x.execution().UpdatedAt)
				ids = append(ids, id)
			}
		}
	})
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(since[a].Compare(since[b]), cmp.Compare(a, b)) })
	if limit > 0 {
		ids = ids[:min(limit, len(ids))]
	}
	return ids, err
}
