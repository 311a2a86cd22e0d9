package graph

// KeepIdle changes how many rested runs a Runner keeps at hand.
func KeepIdle(r *Runner, runs int) { r.runs.maxIdle = runs }

// InUse is the number of runs that a Runner knows, idle ones included.
func InUse(r *Runner) int {
	r.runs.mu.Lock()
	defer r.runs.mu.Unlock()
	return len(r.runs.byID)
}
