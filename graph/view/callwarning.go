package view

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
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

// CancelGoesOn adds a warning to the answer of a cancel that does not wait for the subworkflows any longer.
func CancelGoesOn(run *Run) {
	if run == nil {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.CancelGoesOn,
		Message: "not all of its subworkflows have been cancelled yet; that goes on",
		Hint:    "They take no input any more. What their activities do meanwhile may still happen; the status of a subworkflow says when it has ended.",
	})
}

// OtherVersion reports whether a definition is another version of the workflow that a run follows.
func OtherVersion(e *history.Execution, given *definition.Document) bool {
	return given != nil && e.DefinitionHash != "" && given.Hash() != e.DefinitionHash && given.Name() == e.DefinitionName
}

// DefinitionKept adds a warning to the answer of a start that found its run there, under another version of the definition.
func DefinitionKept(run *Run, e *history.Execution, given *definition.Document) {
	if run == nil || !OtherVersion(e, given) {
		return
	}
	run.Warnings = append(run.Warnings, Warning{
		Code:    problem.DefinitionKept,
		Message: problem.Format("the run exists and keeps the definition %s %s that it began with (hash %s)", e.DefinitionName, e.DefinitionVersion, e.DefinitionHash),
		Hint:    "Start under another execution id to run the version that was given, or fork the run with it.",
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
