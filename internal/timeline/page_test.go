package timeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestThePageShowsATree: what docs/observe.md shows of a run is the recorded one, a terminal's width wide.
func TestThePageShowsATree(t *testing.T) {
	t.Parallel()
	tree, now := read(t, "trip").at(2500 * time.Millisecond)
	var b strings.Builder
	for _, line := range tree.Lines(now, 117, 40) {
		for _, part := range line.Parts {
			b.WriteString(part.Text)
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "observe.md"))
	if err != nil || strings.Count(string(page), "\n```text\n") != 1 || !strings.Contains(string(page), "\n```text\n"+b.String()+"```\n") {
		t.Errorf("docs/observe.md shows another tree (%v) than\n%s", err, b.String())
	}
}
