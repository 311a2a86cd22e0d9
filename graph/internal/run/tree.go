package run

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Standing is where a run stands, together with the subworkflows that it waits for.
type Standing struct {
	// Status is the run's, or while it waits for a subworkflow the child's: a subworkflow that pauses pauses its parent.
	Status machine.Status
	// Due is the earliest timer, zero if there is none.
	Due time.Time
	// IDs are the runs that were looked at.
	IDs []string
	// Alive is the machine of the run that was looked at, as long as it has not ended. If that very machine has ended by the
	// next look, this process has ended the run meanwhile, and need not ask the store whether that still holds.
	Alive *machine.Machine
	// Elsewhere says that another process drives one of them: its progress is not reported here.
	Elsewhere bool
	// Busy says that one of them was at work and not looked at: it may have come to rest since.
	Busy bool
	// Seq is the run's last record, Sum the sum over the runs that were looked at: it changes when one of them does.
	Seq, Sum int64
	// At are the nodes where the run goes on by itself, if WantPlaces asks for them.
	WantPlaces bool
	At         []Place
}

// Place is a node where a run stands.
type Place struct {
	ExecutionID, NodeID string
	// Branch is the parallel branch of the node, "" outside.
	Branch              string
	NodeVisits, Attempt int
}

// GoesOn reports whether the run will go on by itself within the time left.
func (s *Standing) GoesOn(now time.Time, left time.Duration) bool {
	switch s.Status {
	case machine.Running, machine.AwaitingChild:
		return true
	case machine.AwaitingTimer:
		return !s.Due.IsZero() && s.Due.Sub(now) <= left
	default:
		return false
	}
}
