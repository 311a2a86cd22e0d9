package history

import "time"

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
