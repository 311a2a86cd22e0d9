package view

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// ModeKept warns that a call asked for a mode that the run does not have, and that it could not change.
func ModeKept(run *Run, asked machine.Mode) {
	if run == nil || asked == "" || asked == run.Mode || run.Status.Terminal() {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.ModeKept,
		Message: problem.Format("the call asked for mode %q, but the run keeps mode %q", string(asked), string(run.Mode)),
		Hint:    "A submit, resume or signal with another mode changes it for later activities.",
	})
}

// CancelGoesOn warns that a cancel has returned before all subworkflows were cancelled.
func CancelGoesOn(run *Run) {
	if run == nil {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.CancelGoesOn,
		Message: "not all subworkflows have been cancelled yet; cancellation continues",
		Hint:    "They no longer accept input, but their running activities may still have effects. Ask for the status of a subworkflow to see when it has ended.",
	})
}

// OtherVersion reports whether a definition is another version of the run's workflow.
func OtherVersion(e *history.Execution, given *definition.Document) bool {
	return given != nil && e.DefinitionHash != "" && given.Hash() != e.DefinitionHash && given.Name() == e.DefinitionName
}

// DefinitionKept warns that the run of a repeated start has another version of the definition.
func DefinitionKept(run *Run, e *history.Execution, given *definition.Document) {
	if run == nil || !OtherVersion(e, given) {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.DefinitionKept,
		Message: problem.Format("the run exists and keeps its definition %s %s (hash %s)", e.DefinitionName, e.DefinitionVersion, e.DefinitionHash),
		Hint:    "To run the given version, start under another execution id, or fork the run with it.",
	})
}

// willFail warns that the run cannot complete because a required branch has failed: work on other branches is wasted.
func willFail(f machine.BranchFailure) Warning {
	dropped := ""
	if len(f.Dropped) > 0 {
		dropped = problem.Format(" The branches after it were dropped: %s.", problem.Excerpt(strings.Join(f.Dropped, ", "), problem.MaxText))
	}
	return Warning{
		Code: problem.RunWillFail,
		Message: problem.Format("branch %q of %q has failed at node %q; the run will fail when the branches before it have ended: %s",
			f.Branch, f.ParallelID, f.NodeID, problem.Excerpt(f.Message, problem.MaxText)),
		Hint: problem.Format("Do no more work for this run: cancel it, and fork it before node %q. The fork keeps the results recorded before the failure.", f.NodeID) + dropped,
	}
}
