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
		s    standing.Standing
		want bool
	}{
		{standing.Standing{Status: machine.Running}, true},
		{standing.Standing{Status: machine.AwaitingChild}, true},
		{standing.Standing{Status: machine.AwaitingTimer, Due: soon}, true},
		{standing.Standing{Status: machine.AwaitingTimer, Due: late}, false},
		{standing.Standing{Status: machine.AwaitingTimer}, false},
		{standing.Standing{Status: machine.Interrupted}, false},
		{standing.Standing{Status: machine.Completed}, false},
	} {
		if got := c.s.GoesOn(now, time.Minute); got != c.want {
			t.Errorf("%s, due %v: %v", c.s.Status, c.s.Due, got)
		}
	}
}
