package standing_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/standing"
)

func TestGoesOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	soon, late := now.Add(time.Second), now.Add(time.Hour)
	for _, c := range []struct {
		s      standing.Standing
		asking bool
		want   bool
	}{
		{standing.Standing{Status: machine.Running}, false, true},
		{standing.Standing{Status: machine.AwaitingChild}, false, true},
		{standing.Standing{Status: machine.AwaitingTimer, Due: soon}, false, true},
		{standing.Standing{Status: machine.AwaitingTimer, Due: late}, false, false},
		{standing.Standing{Status: machine.AwaitingTimer, Due: late}, true, true},
		{standing.Standing{Status: machine.AwaitingTimer}, false, false},
		{standing.Standing{Status: machine.Interrupted}, true, false},
		{standing.Standing{Status: machine.Completed}, true, false},
	} {
		if got := c.s.GoesOn(now, time.Minute, c.asking); got != c.want {
			t.Errorf("%s, due %v, asking %v: %v", c.s.Status, c.s.Due, c.asking, got)
		}
	}
}
