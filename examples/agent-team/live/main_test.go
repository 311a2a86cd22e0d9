package main

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/agentdemo/demotest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// TestLive: the engine is killed while the coder works. The coder goes on, the reviewer finds a fault, which is put right, and a person
// approves the merge.
func TestLive(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Live(t, nil)
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	demotest.Wants(t, "standard error", stderr, `kill -9`, `^\$ workflows-engine recover `, `repository__merge\. Approve\?`, `^completed run agent-team-`)
	demotest.Wants(t, "standard output", stdout, `^  "merged": true,$`, `sub-agent of t1\.c1`, `second argument`, `"passed":true`, `I am content\.`, `repository__merge returned: \{"merged":true\}`)
}
