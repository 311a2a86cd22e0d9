package view

import (
	"fmt"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Warning reports a limit that is nearly reached, a run that will fail, or a part of a call that had no effect, with a hint.
type Warning struct {
	// Code is the error code of the limit, such as STEP_BUDGET_EXCEEDED, or MODE_NOT_CHANGED, DEFINITION_NOT_CHANGED, CANCEL_GOES_ON,
	// RUN_WILL_FAIL or AGENT_PARTIAL_ANSWER.
	Code problem.Code
	// NodeID is the node of the warning, "" for the run.
	NodeID string
	// Used and Limit are the use and the limit, in its unit; 0 for other warnings.
	Used, Limit int64
	Message     string
	Hint        string
}

// WarnPercent is the use of a limit, in percent, at which Warnings reports it.
const WarnPercent = 80

// Usage is a run's use of one limit.
type Usage struct {
	Code        problem.Code
	Used, Limit int64
	// Of is set for a limit that the run shares with its tree.
	Of TreeLimit
}

// TreeLimit names a limit of a tree of runs and its option.
type TreeLimit struct{ Name, Option string }

// advice holds the name and the hint of each limit.
var advice = map[problem.Code]struct{ name, hint string }{
	problem.StepBudgetExceeded: {
		"node visits",
		"Check the switch of its loops: one may never end. If the run needs more, raise the limit (Options.MaxVisits) in time.",
	},
	problem.RecordLimitExceeded: {
		"records",
		"End the run soon, and split long work into subworkflows. If the run needs more, raise the limit (Options.MaxRecords) in time.",
	},
	problem.ByteLimitExceeded: {
		"bytes of history",
		"Store large values elsewhere and pass references. If the run needs more, raise the limit (Options.MaxBytes) in time.",
	},
	problem.PendingLimitExceeded: {
		"pending activities",
		"Start fewer branches at the same time. If the run needs more, raise the limit (Options.MaxPending) in time.",
	},
}

// Warnings returns a warning for each limit that is nearly reached.
func Warnings(usages ...Usage) []Warning {
	var out []Warning
	for _, u := range usages {
		if u.Limit <= 0 {
			continue
		}
		share := int64(float64(u.Used) / float64(u.Limit) * 100)
		if share < WarnPercent {
			continue
		}
		who, a := "the run", advice[u.Code]
		if u.Of.Name != "" {
			who, a.name = "the run's tree", u.Of.Name
			a.hint = fmt.Sprintf("Check the subworkflows: one may start itself without end. If the tree needs more, raise the limit (%s) in time.", u.Of.Option)
		}
		out = append(out, Warning{
			Code: u.Code, Used: u.Used, Limit: u.Limit, Hint: a.hint,
			Message: fmt.Sprintf("%s has used %d %% of its limit of %d %s: %d", who, share, u.Limit, a.name, u.Used),
		})
	}
	return out
}

// partialAnswers returns a warning for each node with a partial output.
func partialAnswers(partials map[string]string) (list []Warning) {
	for _, id := range slices.Sorted(maps.Keys(partials)) {
		why := ""
		if reason := partials[id]; reason != "" {
			why = " (" + reason + ")"
		}
		list = append(list, Warning{
			Code: problem.AgentPartialAnswer, NodeID: id,
			Message: problem.Format("node %q has a partial output because its budget was used up%s", id, why),
			Hint:    "Check the node's output before you rely on it, and raise the budget for the next run.",
		})
	}
	return list
}
