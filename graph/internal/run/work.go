package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Work is what inputs have led to, to be dispatched after the run's lock has been given back.
type Work struct {
	// Begin are attempts to perform.
	Begin []*work.Attempt
	// CancelChildren are subworkflows that nobody waits for any more.
	CancelChildren []string
	// DropTasks are tasks at remote agents that nobody waits for any more.
	DropTasks []*machine.DelegateEffect
	// NotifyParent is the run that is to be notified of this one's end, "" if none is.
	NotifyParent string
	// Changed says that something that others may wait for has changed.
	Changed bool
	// preview, unless nil, makes a takeover dry; see Run.Preview.
	preview *Preview
}

// Inherit gives the attempts that are to begin the values of the context of the call that has led to them.
func (w *Work) Inherit(call context.Context) {
	for _, a := range w.Begin {
		a.Context = work.InheritTrace(a.Context, call)
	}
}
