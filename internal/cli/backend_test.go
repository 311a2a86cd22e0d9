package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
)

// onlyEngine is a graph.Engine and nothing more.
type onlyEngine struct{ graph.Engine }

// TestUnsupportedByBackend: a command that needs what its engine lacks says so and does nothing; the others go on.
func TestUnsupportedByBackend(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, file, exported := filepath.Join(folder, "runs.db"), filepath.Join(folder, "step.workflow.json"), filepath.Join(folder, "run.jsonl")
	if err := os.WriteFile(file, []byte(stepText), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, 0, "run", file, "--id", "r", "--db", path, "--profile", "demo"); status != exitOK {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	_, text, _ := call(t, 0, "export", "r", "--db", path)
	if err := os.WriteFile(exported, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(args ...string) (status int, output string) {
		a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.newEngine = func(s history.Store, o graph.Options) (graph.Engine, error) {
			r, err := graph.New(s, o)
			return onlyEngine{r}, err
		}
		status = a.execute(t.Context(), append(args, "--db", path))
		return status, stdout.String() + stderr.String()
	}
	for _, args := range [][]string{
		{"run", file, "--id", "new", "--profile", "demo"}, {"resume", "r"}, {"signal", "r", "go"}, {"submit", "r", "do", "--result", "{}"},
		{"recover"}, {"recover", "r"}, {"recover", "--dry-run"}, {"fork", "r", "--at", "2"}, {"export", "r"}, {"import", exported},
		{"verify"}, {"gc", "--older-than", "0"},
	} {
		if status, output := with(args...); status != exitFailed || !strings.Contains(output, "UNSUPPORTED_BY_BACKEND") {
			t.Errorf("%v: status %d\n%s", args, status, output)
		}
	}
	for _, args := range [][]string{{"status", "r"}, {"list"}, {"history", "r"}} {
		if status, output := with(args...); status != exitOK {
			t.Errorf("%v: status %d\n%s", args, status, output)
		}
	}
	if _, output := with("list"); strings.Count(output, "\n") != 2 || !strings.Contains(output, "completed") {
		t.Errorf("afterwards:\n%s", output)
	}
}

// TestCommandsUseTheStoresClock: the engine of a command has no clock of its own, so that it agrees with leases on the time.
func TestCommandsUseTheStoresClock(t *testing.T) {
	t.Parallel()
	a, _, stderr := newTestApp(t, strings.NewReader(""), time.Now())
	a.newEngine = func(s history.Store, o graph.Options) (graph.Engine, error) {
		if o.Now != nil {
			t.Error("a clock besides the store's")
		}
		return graph.New(s, o)
	}
	if status := a.execute(t.Context(), []string{"recover", "--store", "memory"}); status != exitOK {
		t.Errorf("status %d\n%s", status, stderr)
	}
}
