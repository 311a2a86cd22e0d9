package cli

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnstoredDefinition: a run whose definition is not stored is continued with its file.
func TestUnstoredDefinition(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	file, err := filepath.Abs(filepath.Join("..", "..", "examples", "release-gate", "release-gate.workflow.json"))
	if err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := call(t, 0, "run", file, "--id", "r", "--db", path, "--profile", "demo", "--input", `{"service":"shop","version":"2"}`); status != exitPaused {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	db, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = db.Exec("DELETE FROM definitions")
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := call(t, 0, "status", "r", "--db", path); !strings.Contains(stdout, "--definition FILE\n") {
		t.Errorf("status:\n%s", stdout)
	}
	status, _, stderr := call(t, 0, "recover", "r", "--db", path)
	if status != exitFailed || !strings.Contains(stderr, "--definition FILE") {
		t.Errorf("recover: status %d\n%s", status, stderr)
	}
}
