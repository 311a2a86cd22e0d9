package historymem

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// owners are the leases of processes and the runs that they own.
type owners struct {
	// ends is when the lease of a process runs out or was released, in whole milliseconds.
	ends map[string]time.Time
	// runs are the ids of the runs that a process owns.
	runs map[string]map[string]bool
}

// live reports whether the lease of a process has not run out at now.
func (o *owners) live(process string, now time.Time) bool { return o.ends[process].After(now) }

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
	now := s.now()
	s.owners.ends[process] = time.UnixMilli(history.CeilMillis(now.Add(ttl)))
	s.forgetProcesses(milli(now))
	return nil
}

// Release ends the lease of a process; see history.Store.
func (s *Store) Release(ctx context.Context, process string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := milli(s.now())
	if s.owners.live(process, now) {
		s.owners.ends[process] = now
	}
	s.forgetProcesses(now)
	return nil
}

func (s *Store) forgetProcesses(now time.Time) {
	maps.DeleteFunc(s.owners.ends, func(process string, _ time.Time) bool {
		return !s.owners.live(process, now) && len(s.owners.runs[process]) == 0
	})
}

// Claim makes a process the owner of runs; see history.Store.
func (s *Store) Claim(ctx context.Context, process string, executionIDs ...string) (claimed []string, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, id := range executionIDs {
		if x := s.runs[id]; x != nil && !x.execution.Phase.Terminal() && !s.ownedElsewhere(x, process) {
			s.setOwner(x, process, time.Time{})
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
			s.setOwner(x, "", milli(s.now()))
		}
	}
	return nil
}

// ownedElsewhere reports whether another process whose lease has not run out owns a run.
func (s *Store) ownedElsewhere(x *run, process string) bool {
	return x.owner != "" && x.owner != process && s.owners.live(x.owner, milli(s.now()))
}

// setOwner makes a process the owner of a run, or with "" lets nobody own it.
func (s *Store) setOwner(x *run, process string, disowned time.Time) {
	id := x.execution.ID
	if runs := s.owners.runs[x.owner]; runs != nil {
		if delete(runs, id); len(runs) == 0 {
			delete(s.owners.runs, x.owner)
		}
	}
	if x.owner, x.disowned = process, disowned; process == "" {
		return
	}
	if s.owners.runs[process] == nil {
		s.owners.runs[process] = map[string]bool{}
	}
	s.owners.runs[process][id] = true
}

// keepOwner stores who owns the run after a batch that was not refused.
func (s *Store) keepOwner(x *run, b *history.Batch) {
	switch {
	case b.Execution.Phase.Terminal():
		s.setOwner(x, "", time.Time{})
	case b.Disown:
		s.setOwner(x, "", milli(s.now()))
	case b.Owner != "" && b.Owner != x.owner:
		s.setOwner(x, b.Owner, time.Time{})
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
		end = s.owners.ends[x.owner]
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
	for id := range s.owners.runs[process] {
		owned[id] = int64(len(s.runs[id].rows))
	}
	return owned, nil
}

// Departed returns the processes without a lease that own runs; see history.Store.
func (s *Store) Departed(ctx context.Context) ([]string, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	now := milli(s.now())
	var departed []string
	for process := range s.owners.runs {
		if !s.owners.live(process, now) {
			departed = append(departed, process)
		}
	}
	slices.Sort(departed)
	return departed, nil
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
		found = append(found, orphan{id, cmp.Or(s.owners.ends[x.owner], x.disowned, x.execution.UpdatedAt)})
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
