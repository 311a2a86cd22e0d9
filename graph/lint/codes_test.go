package lint_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/lint"
)

// TestFailuresAreDocumented: the codes that the lint knows are those of runs and activities in docs/reference/codes.md.
func TestFailuresAreDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/docs/reference/codes.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, section := range []string{"Runs", "Activities"} {
		_, part, _ := strings.Cut(string(text), "\n## "+section+"\n")
		part, _, _ = strings.Cut(part, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|").FindAllStringSubmatch(part, -1) {
			want = append(want, row[1])
		}
	}
	for _, code := range lint.Failures() {
		got = append(got, string(code))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
