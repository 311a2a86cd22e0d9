package cli

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestGraphFits: on a terminal the lines of a drawing are broken where they are too long, and nothing is left out.
func TestGraphFits(t *testing.T) {
	t.Parallel()
	long := ""
	for _, columns := range []int{0, 60, 120} {
		a, stdout, stderr := newTestApp(t, nil, noon)
		a.columns = func() int { return columns }
		if got := a.execute(t.Context(), []string{"graph", "../../examples/document-review/document-review.workflow.yaml"}); got != exitOK {
			t.Fatalf("exit status %d: %s", got, stderr)
		}
		words := strings.Join(strings.Fields(stdout.String()), " ")
		if columns == 0 {
			long = words
			continue
		}
		if words != long {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, words, long)
		}
		for line := range strings.Lines(stdout.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%d characters of %d: %s", n, columns, line)
			}
		}
		requireGolden(t, fmt.Sprintf("graph_%d", columns), stdout.String())
	}
}
