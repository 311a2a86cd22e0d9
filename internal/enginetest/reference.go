package enginetest

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// RequireReference compares the generated page docs/reference/NAME with its text. `make docs` runs the tests of these pages with -update,
// which rewrites them.
func RequireReference(t *testing.T, name, text string, update bool) {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "..", "..", "docs", "reference", name)
	if update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := regularfile.Read(path, 1<<22); err != nil || string(page) != text {
		t.Errorf("docs/reference/%s differs (%v): run make docs", name, err)
	}
}
