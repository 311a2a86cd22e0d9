package historymem

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// live reports whether a process has a lease that has not run out.
func (s *Store) live(process string) bool { return s.processes[process].After(milli(s.now())) }

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
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	if err := s.enter(ctx); err != nil {
		return time.Time{}, err
	}
	defer s.mu.Unlock()
	return s.now(), nil
}

// Renew makes the lease of a process last for ttl from now; see history.Store. It forgets the processes that are gone
// and own nothing.
func (s *Store) Renew(ctx context.Context, process string, ttl time.Duration) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.processes[process] = time.UnixMilli(history.CeilMillis(s.now().Add(ttl)))
	s.forgetProcesses()
	return nil
}

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, process string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.live(process) {
		s.processes[process] = milli(s.now())
	}
	s.forgetProcesses()
	return nil
}

func (s *Store) forgetProcesses() {
	owning := s.owning()
	maps.DeleteFunc(s.processes, func(process string, _ time.Time) bool { return !s.live(process) && !owning[process] })
}

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, id := range executionIDs {
		if x := s.runs[id]; x != nil && !x.execution.Phase.Terminal() && !s.ownedElsewhere(x, process) {
			x.owner, x.disowned = process, time.Time{}
			claimed = append(claimed, id)
		}
	}
	return claimed, nil
}

// Disown gives up runs that a process owns; see history.Store.
func (s *Store) Disown(ctx context.Context, process string, executionIDs ...string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for _, id := range executionIDs {
		if x := s.runs[id]; x != nil && x.owner == process {
			x.owner, x.disowned = "", milli(s.now())
		}
	}
	return nil
}

// ownedElsewhere reports whether another process whose lease has not run out owns a run.
func (s *Store) ownedElsewhere(x *run, process string) bool {
	return x.owner != "" && x.owner != process && s.live(x.owner)
}

// keepOwner stores who owns the run after a batch that was not refused.
func (s *Store) keepOwner(x *run, b *history.Batch) {
	switch {
	case b.Execution.Phase.Terminal():
		x.owner, x.disowned = "", time.Time{}
	case b.Disown:
		x.owner, x.disowned = "", milli(s.now())
	case b.Owner != "":
		x.owner, x.disowned = b.Owner, time.Time{}
	}
}

// Owner returns who owns a run; see history.Store.
func (s *Store) Owner(ctx context.Context, executionID string) (history.Owner, error) {
	if err := s.enter(ctx); err != nil {
		return history.Owner{}, err
	}
	defer s.mu.Unlock()
	x := s.runs[executionID]
	if x == nil {
		return history.Owner{}, nil
	}
	end := x.disowned
	if x.owner != "" {
		end = s.processes[x.owner]
	}
	if end.IsZero() {
		return history.Owner{Process: x.owner}, nil
	}
	return history.OwnerUntil(x.owner, end, milli(s.now())), nil
}

// Owned returns the runs that a process owns; see history.Store.
func (s *Store) Owned(ctx context.Context, process string) (map[string]int64, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	owned := map[string]int64{}
	for id, x := range s.runs {
		if x.owner == process {
			owned[id] = int64(len(x.rows))
		}
	}
	return owned, nil
}

// Departed returns the processes without a lease that own runs; see history.Store.
func (s *Store) Departed(ctx context.Context) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	departed := slices.Sorted(maps.Keys(s.owning()))
	return slices.DeleteFunc(departed, s.live), nil
}

// Unowned returns runs that need a driver and have none; see history.Store.
func (s *Store) Unowned(ctx context.Context, limit int) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	phase := func(id string) (history.Phase, bool) {
		if x := s.runs[id]; x != nil {
			return x.execution.Phase, true
		}
		return "", false
	}
	type orphan struct {
		id    string
		since time.Time
	}
	var found []orphan
	for id, x := range s.runs {
		if s.ownedElsewhere(x, "") || !x.execution.Orphaned(phase) {
			continue
		}
		found = append(found, orphan{id, cmp.Or(s.processes[x.owner], x.disowned, x.execution.UpdatedAt)})
	}
	slices.SortFunc(found, func(a, b orphan) int { return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.id, b.id)) })
	if limit > 0 {
		found = found[:min(limit, len(found))]
	}
	var ids []string
	for _, o := range found {
		ids = append(ids, o.id)
	}
	return ids, nil
}
