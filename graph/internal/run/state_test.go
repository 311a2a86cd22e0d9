package run

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
)

// owning notes how often a run became this process's, and how often it ceased to be.
type owning struct {
	Process
	began, ended int
}

func (o *owning) Owns(_ *Run, _ string, owns bool) {
	if owns {
		o.began++
	} else {
		o.ended++
	}
}

// TestStates goes through every change of state: those in the table happen without a word, any other is logged, and the owner's
// set of runs follows exactly the states in which the run is owned.
func TestStates(t *testing.T) {
	t.Parallel()
	states := []DriveState{Unloaded, Following, Claimed, Driving, Ended}
	for _, from := range states {
		for _, to := range states {
			var log strings.Builder
			lease := &owning{}
			x := &Run{env: &Environment{Process: lease, Env: work.Env{Log: slog.New(slog.NewTextHandler(&log, nil))}}, state: from}
			x.become(to)
			allowed := CanFollow(from, to)
			if complained := log.Len() > 0; complained == (allowed || from == to) {
				t.Errorf("%s to %s: allowed %v, and logged %q", from, to, allowed, log.String())
			}
			if x.state != to {
				t.Errorf("%s to %s: is %s", from, to, x.state)
			}
			if began := lease.began == 1; began != (!from.Owned() && to.Owned()) {
				t.Errorf("%s to %s: became the owner %d times", from, to, lease.began)
			}
			if ended := lease.ended == 1; ended != (from.Owned() && !to.Owned()) {
				t.Errorf("%s to %s: ceased to be the owner %d times", from, to, lease.ended)
			}
		}
	}
}
