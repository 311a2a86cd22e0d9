package history

import (
	"context"
	"slices"
	"time"
)

// Owner says which process owns a run and how long its lease has left, by the store's clock.
type Owner struct {
	// Process is "" for a run that nobody owns.
	Process string
	// Left is positive until the lease of the process runs out. If it is negative, the lease ended, or the run was disowned
	// (Process ""), so long ago; 0 if that is not known.
	Left time.Duration
}

// OwnerUntil returns the owner of a run whose lease ends, or which was disowned, at a time.
func OwnerUntil(process string, end, now time.Time) Owner {
	left := end.Sub(now)
	if left == 0 {
		left = -1 // it is known
	}
	return Owner{Process: process, Left: left}
}

// Live reports whether a process owns the run and its lease has not run out.
func (o Owner) Live() bool { return o.Process != "" && o.Left > 0 }

// NeedsDriver reports whether a process may have to drive the run: it performs an activity in process, waits for a
// subworkflow, stopped in the middle of its walk, or is a subworkflow, which ends with its parent. A run that waits for a host,
// a person, a signal or a timer needs no driver; neither does a run that only the reference engine has written to.
func (e *Execution) NeedsDriver() bool {
	if e.Phase.Terminal() {
		return false
	}
	if e.Parent != "" {
		return true
	}
	for i := range e.Waits {
		if e.Waits[i].InProcess() || e.Waits[i].Kind == WaitSubworkflow {
			return true
		}
	}
	return len(e.Waits) == 0 && e.Mode != ""
}

// Orphaned reports whether a run that no live process owns cannot continue without a driver. It refines NeedsDriver. A
// subworkflow wakes its parent when it ends: the parent needs a driver only if the subworkflow has ended, or never began. A
// parent cancels its subworkflows when it ends: a subworkflow that waits for somebody else needs a driver only if a crash came
// between the two. phase returns another run's phase; ok is false if there is no such run.
func (e *Execution) Orphaned(phase func(executionID string) (p Phase, ok bool)) bool {
	if !e.NeedsDriver() {
		return false
	}
	if e.Parent != "" {
		if p, ok := phase(e.Parent); ok && p.Terminal() {
			return true
		}
	}
	for i := range e.Waits {
		w := &e.Waits[i]
		if w.InProcess() {
			return true
		}
		if w.Kind == WaitSubworkflow {
			if p, ok := phase(w.ChildExecutionID); !ok || p.Terminal() {
				return true
			}
		}
	}
	return len(e.Waits) == 0 && e.Mode != ""
}

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
