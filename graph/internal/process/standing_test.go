package process_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

func TestGoesOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	soon, late := now.Add(time.Second), now.Add(time.Hour)
	for _, c := range []struct {
		s    process.Standing
		want bool
	}{
		{process.Standing{Status: machine.Running}, true},
		{process.Standing{Status: machine.AwaitingChild}, true},
		{process.Standing{Status: machine.AwaitingTimer, Due: soon}, true},
		{process.Standing{Status: machine.AwaitingTimer, Due: late}, false},
		{process.Standing{Status: machine.AwaitingTimer}, false},
		{process.Standing{Status: machine.Interrupted}, false},
		{process.Standing{Status: machine.Completed}, false},
	} {
		if got := c.s.GoesOn(now, time.Minute); got != c.want {
			t.Errorf("%s, due %v: %v", c.s.Status, c.s.Due, got)
		}
	}
}
