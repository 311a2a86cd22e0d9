package view

import (
	"fmt"
	"maps"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Warning says that a run nears one of its limits or can only fail, or that a call had another effect than it asked for, and what to do
// about it.
type Warning struct {
	// Code is that with which the run fails when it reaches the limit; of a call's effect MODE_NOT_CHANGED; of a run that can only fail RUN_WILL_FAIL;
	// of a node whose output is less than was asked for AGENT_PARTIAL_ANSWER.
	Code problem.Code
	// NodeID is the node that it is about, "" for the run.
	NodeID string
	// Used of Limit; for bytes, bytes. Both are 0 if it is not about a limit.
	Used, Limit int64
	Message     string
	Hint        string
}

// WarnPercent is the share of a limit, in percent, from which on Warnings speaks of it.
const WarnPercent = 80

// Usage is how much of one limit a run has used.
type Usage struct {
	Code        problem.Code
	Used, Limit int64
	// Of is set for a limit that the run shares with its tree.
	Of TreeLimit
}

// TreeLimit names what a tree of runs is limited in, and the option that sets the limit.
type TreeLimit struct{ What, Option string }

// advice is what a warning says of each limit.
var advice = map[problem.Code]struct{ what, hint string }{
	problem.StepBudgetExceeded: {
		"node visits",
		"A loop may never end: check its switch. If the run needs more, raise the limit (Options.MaxVisits) before it is reached.",
	},
	problem.RecordLimitExceeded: {
		"records",
		"Cancel the run, or let it end soon; split long work into subworkflows. If it needs more, raise the limit (Options.MaxRecords) before it is reached.",
	},
	problem.ByteLimitExceeded: {
		"bytes of history",
		"Keep large values outside and pass references. If the run needs more, raise the limit (Options.MaxBytes) before it is reached.",
	},
	problem.PendingLimitExceeded: {
		"activities awaited at the same time",
		"Fork fewer branches at the same time. If the run needs more, raise the limit (Options.MaxPending) before it is reached.",
	},
}

// Warnings returns one warning for each limit that is nearly used up.
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
		if u.Of.What != "" {
			who, a.what = "the tree of runs to which it belongs", u.Of.What
			a.hint = fmt.Sprintf("A workflow may start itself without end: check the subworkflows. If the tree needs more, raise the limit (%s) before it is reached.", u.Of.Option)
		}
		out = append(out, Warning{
			Code: u.Code, Used: u.Used, Limit: u.Limit, Hint: a.hint,
			Message: fmt.Sprintf("%s has used %d %% of its limit of %d %s: %d", who, share, u.Limit, a.what, u.Used),
		})
	}
	return out
}

// partialAnswers warns of outputs that are less than was asked for, by node.
func partialAnswers(partials map[string]string) (list []Warning) {
	for _, id := range slices.Sorted(maps.Keys(partials)) {
		why := ""
		if reason := partials[id]; reason != "" {
			why = " (" + reason + ")"
		}
		list = append(list, Warning{
			Code: problem.AgentPartialAnswer, NodeID: id,
			Message: problem.Format("node %q has answered with what it had when its budget ended%s: the answer may be half of one", id, why),
			Hint:    "Read the node's output before you rely on it, and raise the budget for the next run.",
		})
	}
	return list
}
