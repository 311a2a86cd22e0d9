package lint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

type finding = problem.Finding

// golden compares a text with testdata/<name>, or writes it there with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./graph/lint -update writes it", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test ./graph/lint -update rewrites it): got\n%s", path, got)
	}
}
