package leaktest_test

import (
	"fmt"
	"os"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/internal/leaktest"
)

// recorder takes down failures instead of failing.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func leaving(stop chan struct{}) { <-stop }

// TestNoGoroutines: a goroutine that stays is told of, one that has ended is not.
func TestNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		go leaving(stop)
		synctest.Wait() // one that has not begun has no stack yet
		r := &recorder{TB: t}
		leaktest.NoGoroutines(r, "leaktest_test.leaving")
		if len(r.failures) != 1 {
			t.Errorf("told of %q", r.failures)
		}
		close(stop)
		leaktest.NoGoroutines(t, "leaktest_test.leaving")
	})
}

func TestRunning(t *testing.T) {
	if !leaktest.Running(os.Getpid()) && os.PathSeparator == '/' {
		t.Error("this process is not there")
	}
}
