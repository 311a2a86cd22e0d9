//go:build unix

package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/catalog"
)

// TestAPipeThatTakesTheNameOfAFile: it does not keep the catalog waiting, even if it comes between the listing and the reading.
func TestAPipeThatTakesTheNameOfAFile(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	name := filepath.Join(f.path, "a.workflow.json")
	swapped := make(chan error)
	go func() {
		var err error
		for i := 0; i < 500 && err == nil; i++ {
			pipe, file := filepath.Join(f.path, "pipe"), filepath.Join(f.path, "file")
			err = errors.Join(
				syscall.Mkfifo(pipe, 0o600), os.Rename(pipe, name),
				os.WriteFile(file, []byte(definitionText("one", "1")), 0o600), os.Rename(file, name),
			)
		}
		swapped <- err
	}()
	c := catalog.New(f.path, catalog.Options{})
	for done := false; !done; c.Look() {
		select {
		case err := <-swapped:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
	}
	if now := c.Look(); refs(now) != "one=1" || len(now.Broken) != 0 {
		t.Errorf("workflows %s, broken %v", refs(now), now.Broken)
	}
}
