package cli

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// TestWhatAnAttemptWaitsFor: an agent whose question was answered where it cannot go on need not be limited by --limits.
func TestWhatAnAttemptWaitsFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		steps int
		ready bool
		want  string
	}{
		{want: "the turn of attempt 1 (queued by --capacity or --limits)"},
		{steps: 9, want: "a process that continues attempt 1, or for its turn (--capacity, --limits)"},
		{ready: true, want: "a worker, for attempt 1"},
		{steps: 9, ready: true, want: "a worker, for attempt 1"},
	} {
		p := view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, Queued: true, Attempt: 1}, Steps: c.steps}
		if text := waitText(&p, c.ready); text != c.want {
			t.Errorf("%d steps, ready: %t: %q, want %q", c.steps, c.ready, text, c.want)
		}
	}
}
