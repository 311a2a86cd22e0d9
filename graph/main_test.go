package graph_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often: the runs of tests leave little else, and it saves a fifth of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
