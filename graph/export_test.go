package graph

// KeepIdle changes how many rested runs a Runner keeps at hand.
func KeepIdle(r *Runner, runs int) { r.runs.maxIdle = runs }

// InUse is the number of runs that a Runner knows, idle ones included.
func InUse(r *Runner) int {
	r.runs.mu.Lock()
	defer r.runs.mu.Unlock()
	return len(r.runs.byID)
}

// DoNotKnow lets a Runner remember that it does not know a workflow, and gives how many it remembers.
func DoNotKnow(r *Runner, ref string) int {
	name := workflowName{ref: ref}
	r.unknown.note(name, errAgain)
	if r.unknown.why(name) == nil {
		return 0
	}
	r.unknown.mu.Lock()
	defer r.unknown.mu.Unlock()
	return len(r.unknown.byName)
}
