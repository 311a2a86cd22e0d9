package run

import (
	"context"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Prospect is what TakeOrphan, or a timer that is due, would do.
type Prospect struct {
	// NotOurs: the run has ended, this process drives it already, or another one looks after what is due.
	NotOurs bool
	// Takes: there is something to do that this process can do. Otherwise Lack is what it lacks for what the run waits for.
	Takes bool
	Lack  *view.Lack
	// Children are the subworkflows that the run waits for; Parent and Depth are the run's.
	Children []*machine.ChildEffect
	Parent   string
	Depth    int
}

// Prospect says what this process would do for a run, and changes nothing. orphaned says that nobody with a live lease owns it.
func (x *Run) Prospect(ctx context.Context, orphaned bool) (p Prospect, err error) {
	err = x.Refresh(ctx)
	if err != nil || x.Owned() || x.Ended() || !orphaned && x.inFlightElsewhere() {
		return Prospect{NotOurs: true}, err
	}
	if orphaned && x.inFlightElsewhere() {
		if _, err := x.ownedElsewhere(ctx); err != nil { // what is due depends on it
			return p, err
		}
	}
	p.Takes = x.due() || orphaned && len(x.unrecorded.Records) > 0
	for _, e := range x.m.InFlight() {
		switch c, isChild := e.(*machine.ChildEffect); {
		case isChild:
			p.Children = append(p.Children, c)
		case orphaned && x.attempts[e.Key()] == nil && x.canPerform(e):
			p.Takes = true
		}
	}
	if l := x.Lacks(); l != nil && !l.Host {
		p.Lack = l
	}
	p.Parent, p.Depth = x.exec.Parent, x.m.Config().Depth
	return p, nil
}
