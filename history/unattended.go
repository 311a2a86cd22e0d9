package history

import (
	"context"
	"slices"
	"time"
)

// Unattended is an open run that cannot continue because no live process drives it.
type Unattended struct {
	ExecutionID string
	// Due is the time of its earliest overdue timer or deadline, zero for a run whose process has ended in the middle of its work.
	Due time.Time
}

// UnattendedGrace is how long a timer has to be overdue before its run counts as unattended: processes that watch the store fire
// another's timer within two seconds.
const UnattendedGrace = 3 * time.Second

// FindUnattended returns the runs that cannot continue because no live process drives them, subworkflows as runs of their own: first
// those with an overdue timer, earliest first, then those that Store.Unowned returns. Only runs that match keeps are looked at; nil keeps all.
func FindUnattended(ctx context.Context, s Store, now time.Time, keeps func(executionID string) bool) ([]Unattended, error) {
	timers, err := s.DueTimers(ctx, now.Add(-UnattendedGrace), 0)
	if err != nil {
		return nil, err
	}
	orphans, err := s.Unowned(ctx, 0)
	if err != nil {
		return nil, err
	}
	var found []Unattended
	seen := map[string]bool{}
	for _, t := range timers {
		if seen[t.ExecutionID] || keeps != nil && !keeps(t.ExecutionID) {
			continue
		}
		seen[t.ExecutionID] = true
		owner, err := s.Owner(ctx, t.ExecutionID)
		if err != nil {
			return nil, err
		}
		if !owner.Live() {
			found = append(found, Unattended{t.ExecutionID, t.Due})
		}
	}
	for _, id := range orphans {
		if !slices.ContainsFunc(found, func(u Unattended) bool { return u.ExecutionID == id }) && (keeps == nil || keeps(id)) {
			found = append(found, Unattended{ExecutionID: id})
		}
	}
	return found, nil
}
