package history

import (
	"context"
	"slices"
	"time"
)

// Owner is the process that owns a run, with the remaining time of its lease by the store's clock.
type Owner struct {
	// Process is "" for a run without an owner.
	Process string
	// Left is positive until the process's lease ends. If it is negative, the lease ended, or the run was disowned (Process ""), that long
	// ago. It is 0 if the time is unknown.
	Left time.Duration
}

// OwnerUntil returns the owner of a run. end is the end of the lease, or the time when the run was disowned.
func OwnerUntil(process string, end, now time.Time) Owner {
	left := end.Sub(now)
	if left == 0 {
		left = -1 // 0 means unknown
	}
	return Owner{Process: process, Left: left}
}

// Live reports whether a process owns the run and its lease has not ended.
func (o Owner) Live() bool { return o.Process != "" && o.Left > 0 }

// NeedsDriver reports whether a process may have to drive the run: it performs an activity in process, waits for a subworkflow, was
// interrupted between two waits, or is a subworkflow, which ends with its parent. A run that waits for a host, a person, a signal or a timer
// needs no driver. Neither does a run that only the reference engine has written to.
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

// Orphaned reports whether a run without a live owner cannot continue without a driver. It refines NeedsDriver. A subworkflow wakes its
// parent when it ends, so the parent needs a driver only if the subworkflow has ended or never began. A parent cancels its subworkflows when
// it ends, so a subworkflow with an external wait needs a driver only if a crash prevented that. phase returns another run's phase; ok is
// false for an unknown run.
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
	// Due is the time of the run's earliest overdue timer or deadline, zero for a run whose process ended during its work.
	Due time.Time
}

// UnattendedGrace is the minimum delay of an overdue timer for its run to count as unattended. Processes that watch the store fire the timers
// of other processes within two seconds.
const UnattendedGrace = 3 * time.Second

// Unserved returns the ready runs in lanes that no live process serves, except for one with the given name: those that have waited longest
// first, lane by lane, at most limit (0: all). It omits the lanes for which skip, unless nil, returns true.
func Unserved(ctx context.Context, s Store, except string, skip func(Lane) bool, limit int) (ids []string, err error) {
	queue, ok := As[Queue](s)
	if !ok {
		return nil, nil
	}
	lanes, err := queue.Lanes(ctx)
	if err != nil || len(lanes) == 0 {
		return nil, err
	}
	var live []Process
	if roster, ok := As[Roster](s); ok {
		if live, err = roster.Processes(ctx); err != nil {
			return nil, err
		}
	}
	for _, l := range lanes {
		if skip != nil && skip(l.Lane) {
			continue
		}
		if slices.ContainsFunc(live, func(p Process) bool { return p.Name != except && p.Serves(l.Lane) }) {
			continue
		}
		in, err := queue.ReadyIn(ctx, l.Lane, max(limit-len(ids), 0))
		if err != nil {
			return nil, err
		}
		if ids = append(ids, in...); limit > 0 && len(ids) >= limit {
			break
		}
	}
	return ids, nil
}

// FindUnattended returns the runs that cannot continue because no live process drives them; subworkflows are separate runs. Runs with an
// overdue timer come first, earliest first, then the runs from Store.Unowned, then those of Unserved. keeps selects the runs to examine; nil selects all.
func FindUnattended(ctx context.Context, s Store, now time.Time, keeps func(executionID string) bool) ([]Unattended, error) {
	timers, err := s.DueTimers(ctx, now.Add(-UnattendedGrace), 0)
	if err != nil {
		return nil, err
	}
	orphans, err := s.Unowned(ctx, 0)
	if err != nil {
		return nil, err
	}
	unserved, err := Unserved(ctx, s, "", nil, 0)
	if err != nil {
		return nil, err
	}
	orphans = append(orphans, unserved...)
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
