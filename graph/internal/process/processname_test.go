package process_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/internal/process"
)

// TestProcessName: the owner of a run tells which process on which host it is, and no other process has its name.
func TestProcessName(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Skipf("this system has no name of its own: %v", err)
	}
	for label, want := range map[string]string{
		"":       fmt.Sprintf("%s:%d/", host, os.Getpid()),
		"worker": fmt.Sprintf("worker/%s:%d/", host, os.Getpid()),
	} {
		one, other := process.ProcessName(label), process.ProcessName(label)
		if !strings.HasPrefix(one, want) || !strings.HasPrefix(other, want) || one == other {
			t.Errorf("%q and %q: want two names that begin with %q", one, other, want)
		}
	}
}
