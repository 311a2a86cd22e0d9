package work_test

import (
	"context"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

func TestTheFirstCauseCounts(t *testing.T) {
	t.Parallel()
	turns := 0
	a := work.NewAttempt(t.Context(), &machine.ActivityEffect{}, machine.Config{}, false)
	a.Done = func() { turns++ }
	if a.Context.Err() != nil || a.Repeated() {
		t.Errorf("a new attempt: %v, repeated %v", context.Cause(a.Context), a.Repeated())
	}
	a.Cancel(work.ErrLeaseLost)
	a.Release()
	if cause := context.Cause(a.Context); cause != work.ErrLeaseLost || turns != 1 {
		t.Errorf("%v, and %d turns given back", cause, turns)
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	deadline := time.Unix(1000, 0)
	for _, c := range []struct {
		deadline, now time.Time
		late          bool
	}{
		{deadline, deadline.Add(-1), false},
		{deadline, deadline, true},
		{time.Time{}, deadline, false},
	} {
		e := &machine.ActivityEffect{}
		e.Deadline = c.deadline
		if a := work.NewAttempt(t.Context(), e, machine.Config{}, false); a.Late(c.now) != c.late {
			t.Errorf("deadline %v at %v: late %v", c.deadline, c.now, !c.late)
		}
	}
}
