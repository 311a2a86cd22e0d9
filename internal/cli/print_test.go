package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 90 * time.Second: "1m", 3*time.Hour + time.Minute: "3h",
		47 * time.Hour: "47h", 49 * time.Hour: "2d",
	} {
		if got := age(now.Add(-d), now); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0ms", 12 * time.Millisecond: "12ms", 1440 * time.Millisecond: "1.4s", 125 * time.Second: "2m5s",
	} {
		if got := timeline.Elapsed(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// TestACellStaysInItsRow: a text with line ends and tabs begins no row of its own.
func TestACellStaysInItsRow(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := writeTable(&out, [][]string{{"a\npayroll  completed", "x\ty"}}); err != nil || out.String() != "a\\u000apayroll  completed  x\\u0009y\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short": "short", "exactly 10": "exactly 10", "more than ten": "more than…", "a\n\tb": "a b", "éééééééééééé": "ééééééééé…",
	} {
		if got := cut(text, 10); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	text := []byte("one\r\n\t\"two\": 2\n" + strings.Repeat("x", 300))
	tests := []struct {
		line, column int
		want         string
	}{
		{1, 1, "  1 | one\n    | ^\n"},
		{2, 2, "  2 |  \"two\": 2\n    |  ^\n"},
		{1, 99, "  1 | one\n    |    ^\n"},
		{0, 0, ""},
		{4, 1, ""},
		{3, 200, "  3 | " + strings.Repeat("x", 100) + "\n    | " + strings.Repeat(" ", 50) + "^\n"},
	}
	for _, tt := range tests {
		if got := excerpt(text, tt.line, tt.column); got != tt.want {
			t.Errorf("%d:%d: got\n%swant\n%s", tt.line, tt.column, got, tt.want)
		}
	}
}
