package enginetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// RequireReference compares the generated page docs/reference/NAME with its text. `make docs` runs the tests of these pages with -update,
// which rewrites them.
func RequireReference(t *testing.T, name, text string, update bool) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "reference", name) // the test's package is two folders below the root
	if update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := regularfile.Read(path, 1<<22); err != nil || string(page) != text {
		t.Errorf("docs/reference/%s differs (%v): run make docs", name, err)
	}
}
