package cli

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// TestWhatAnAttemptWaitsFor: an agent whose question was answered where it cannot go on need not be limited by --limits.
func TestWhatAnAttemptWaitsFor(t *testing.T) {
	t.Parallel()
	if text := waitText(&view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, Queued: true, Attempt: 1}}); text != "the turn of attempt 1 (queued by --capacity or --limits, or for a worker)" {
		t.Error(text)
	}
	if text := waitText(&view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitDelegate, Queued: true, Attempt: 1}, Steps: 9}); !strings.HasPrefix(text, "a process that continues attempt 1") {
		t.Error(text)
	}
}
