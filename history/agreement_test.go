package history_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestProjectionAgreesWithMachine folds the records in the machine's scripts and compares the phase with the status
// that the machine had there: what status and list say is what the calls have answered.
func TestProjectionAgreesWithMachine(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("../graph/machine/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	phases := map[string]history.Phase{"awaiting_timer": history.PhaseRunning, "awaiting_child": history.PhaseRunning}
	for _, p := range history.Phases() {
		phases[string(p)] = p
	}
	node := regexp.MustCompile(`^([CE]) (\w+)\((.*?)\)`)
	compared := 0
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		var e history.Execution
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimSpace(line)
			status, isStatus := strings.CutPrefix(line, "status ")
			switch {
			case strings.HasPrefix(line, "start "):
				e = history.Execution{ID: "x"}
			case strings.HasPrefix(line, "C "), strings.HasPrefix(line, "E "):
				r, err := historytest.ParseRecord(node.ReplaceAllString(line, "$1 $2 $3"))
				if err != nil {
					t.Fatalf("%s:%d: %v", script, number, err)
				}
				r.CreatedAt = historytest.Begin
				e.Apply(r)
			case isStatus && e.Seq > 0:
				compared++
				if want := phases[strings.Fields(status)[0]]; e.Phase != want {
					t.Errorf("%s:%d: the machine is %s, the projection %s", script, number, status, describe(&e))
				}
			}
		}
	}
	if compared < 50 {
		t.Errorf("only %d statuses compared", compared)
	}
}
