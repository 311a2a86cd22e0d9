package graph

import (
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/internal/library"
)

// KeepIdle changes how many runs at rest a Runner keeps in memory.
func KeepIdle(r *Runner, runs int) { r.p.Runs.KeepIdle(runs) }

// InUse is the number of runs that a Runner knows, idle ones included.
func InUse(r *Runner) int { return r.p.Runs.Len() }

// NoteUnknown lets a Runner remember that it does not know a workflow, and returns how many it remembers.
func NoteUnknown(r *Runner, ref string) int {
	name := library.WorkflowName{Ref: ref}
	r.p.Library.NoteUnknown(name, errors.New("unknown"))
	if r.p.Library.Lack("r", "n", name) == nil {
		return 0
	}
	return r.p.Library.Unknown()
}

// InStretches makes a Runner commit long walks after that many units.
func InStretches(o Options, units int) Options {
	o.stretchUnits = units
	return o
}
