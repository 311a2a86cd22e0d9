package execution

import "github.com/workflows-engine/workflows-engine/graph/machine"

// Work is what inputs have led to, to be dispatched after the run's lock has been given back.
type Work struct {
	// Begin are attempts to perform.
	Begin []*Attempt
	// CancelChildren are subworkflows that nobody waits for any more.
	CancelChildren []string
	// DropTasks are tasks at remote agents that nobody waits for any more.
	DropTasks []*machine.DelegateEffect
	// NotifyParent is the run that is to be notified of this one's end, "" if none is.
	NotifyParent string
	// Changed says that something that others may wait for has changed.
	Changed bool
}
