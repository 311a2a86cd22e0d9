package run_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

func TestGoesOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	soon, late := now.Add(time.Second), now.Add(time.Hour)
	for _, c := range []struct {
		s    run.Standing
		want bool
	}{
		{run.Standing{Status: machine.Running}, true},
		{run.Standing{Status: machine.AwaitingChild}, true},
		{run.Standing{Status: machine.AwaitingTimer, Due: soon}, true},
		{run.Standing{Status: machine.AwaitingTimer, Due: late}, false},
		{run.Standing{Status: machine.AwaitingTimer}, false},
		{run.Standing{Status: machine.Interrupted}, false},
		{run.Standing{Status: machine.Completed}, false},
	} {
		if got := c.s.GoesOn(now, time.Minute); got != c.want {
			t.Errorf("%s, due %v: %v", c.s.Status, c.s.Due, got)
		}
	}
}
