package main

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/agentdemo/demotest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// TestLive: the agent lists the files and looks a term up, reads two of them side by side, and names them.
func TestLive(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Live(t, nil)
	if status != 0 {
		t.Errorf("exit status %d\n%s", status, stderr)
	}
	demotest.Wants(t, "standard output", stdout, `^  "answer": "Yes, down to -20 °C`, `^    "heat-pumps\.md",$`, `files__list_files returned: .*minutes\.md`, `^--- t2 reply$`, `files__read_file returned: .*field test`)
	for _, result := range []string{`files__read_file returned: .*14,000`, `search_knowledge returned: .*about 2`} { // whichever comes first
		demotest.Wants(t, "standard output", stdout, result)
	}
}
