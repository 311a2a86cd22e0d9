package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Work lists the consequences of inputs. The holder dispatches them after unlocking the run; see also Run.Tell.
type Work struct {
	// Begin are attempts to perform.
	Begin []*work.Attempt
	// CancelChildren are subworkflows that are not awaited any more.
	CancelChildren []string
	// DropTasks are tasks at remote agents that are not awaited any more.
	DropTasks []*machine.DelegateEffect
	// NotifyParent is the parent to notify of the run's end, "" without one.
	NotifyParent string
	// Changed reports a change that waiting calls may want to see.
	Changed bool
	// preview, unless nil, makes a takeover dry; see Run.Preview.
	preview *Preview
}

// Inherit gives the new attempts the context values of the call that led to them.
func (w *Work) Inherit(call context.Context) {
	for _, a := range w.Begin {
		a.Context = work.InheritTrace(a.Context, call)
	}
}
