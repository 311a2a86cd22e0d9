package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestAnImportSaysHowToEndTheOldRun where a plain cancel would end what agents do for the new one.
func TestAnImportSaysHowToEndTheOldRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		res  graph.ImportResult
		said bool
	}{
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning, Tasks: 1}, true},
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning}, false},
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning, Tasks: 1, Existed: true}, false},
	} {
		var out, errs bytes.Buffer
		a := &app{stderr: &errs}
		root := &cobra.Command{}
		a.flags = config.Register(root.PersistentFlags())
		a.writeImported(&out, &tt.res)
		if got := strings.Contains(errs.String(), "cancel r --keep-tasks"); got != tt.said {
			t.Errorf("%+v: %q", tt.res, errs.String())
		}
	}
}

// TestAnImportSaysWhatWasNotReplayed: the runs with records of another engine, with their number.
func TestAnImportSaysWhatWasNotReplayed(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{"ask.workflow.json": askText})
	db, file := filepath.Join(c.folder, "runs.db"), filepath.Join(c.folder, "q1.jsonl")
	c.at(time.Now(), exitPaused, "run", filepath.Join(c.folder, "ask.workflow.json"), "--id", "q1", "--db", db)
	text, _ := c.at(time.Now(), exitOK, "export", "q1", "--db", db)
	for marked, warns := range map[string]bool{text: false, strings.Replace(text, `"kind":"command"`, `"foreign":true,"kind":"command"`, 1): true} {
		if err := os.WriteFile(file, []byte(summed(t, marked)), 0o600); err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "other.db")
		_, stderr := c.at(time.Now(), exitOK, "import", file, "--db", other)
		wantMatch(t, stderr, `^warning: run q1 has 1 record of another engine; they are not replayed`, warns)
		other = filepath.Join(t.TempDir(), "other.db")
		stdout, _ := c.at(time.Now(), exitOK, "import", file, "--json", "--db", other)
		if got := strings.Contains(stdout, `"not_replayed"`); got != warns || warns && !regexp.MustCompile(`"not_replayed": *\{\s*"q1": *1\s*\}`).MatchString(stdout) {
			t.Errorf("foreign %t: %s", warns, stdout)
		}
	}
}
