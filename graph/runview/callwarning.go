package runview

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// ModeKept adds a warning to the answer of a call that asked for a mode which the run does not have: the call could not change it.
func ModeKept(run *Run, asked machine.Mode) {
	if run == nil || asked == "" || asked == run.Mode || run.Status.Terminal() {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.ModeKept,
		Message: problem.Format("the call asked for mode %q; the run keeps its mode %q", string(asked), string(run.Mode)),
		Hint:    "A submit, resume or signal that the run takes changes its mode, for what is requested from then on.",
	})
}
