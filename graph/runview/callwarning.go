package runview

import (
	"strings"

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

// willFail warns of a failed branch without which the run cannot complete: what else the run asks for is of no use.
func willFail(f machine.BranchFailure) Warning {
	dropped := ""
	if len(f.Dropped) > 0 {
		dropped = problem.Format(" The branches after it were dropped: %s.", problem.Excerpt(strings.Join(f.Dropped, ", "), problem.MaxText))
	}
	return Warning{
		Code: problem.RunWillFail,
		Message: problem.Format("branch %q of %q has failed at node %q, so the run can only fail, once the branches before it have ended: %s",
			f.Branch, f.ParallelID, f.NodeID, problem.Excerpt(f.Message, problem.MaxText)),
		Hint: problem.Format("Do no more for this run: cancel it, and fork it before node %q. The fork keeps what was recorded before the failure.", f.NodeID) + dropped,
	}
}
