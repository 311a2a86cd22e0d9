package history

// NeedsDriver reports whether a live process may have to look after the run: it performs an activity in process, waits
// for a subworkflow, stopped in the middle of its walk, or is a subworkflow, which ends with its parent. Any other run
// that rests on a host, a person, a signal or a timer needs none; neither does one that only the reference engine has
// written to.
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

// Orphaned reports whether a run that no live process owns stands still for want of a driver. It refines
// NeedsDriver: a subworkflow that is under way wakes its parent when it ends, so only one that has ended, or that was
// never begun, keeps the parent waiting in vain; and a parent that ends cancels its subworkflows, so only one whose
// parent has ended already was left over, by a crash between the two. phase returns another run's phase; ok is false if
// there is no such run.
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
