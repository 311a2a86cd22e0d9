package cli

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/config"
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

// TestNarrowTerminal: at a terminal, words of a pause, a status and an error are not cut at the edge, and commands have lines of their own.
func TestNarrowTerminal(t *testing.T) {
	t.Parallel()
	const columns = 60
	folder := t.TempDir()
	for _, args := range [][]string{
		{"run", definitionOf(t, "approval-loop"), "--id", "a1", "--input", `{"topic":"moving day"}`, "--title", strings.Repeat("a long title ", 9), "--profile", "demo"},
		{"status", "a1"}, {"recover", "--dry-run"}, {"status", "another run whose id is so long that its error fits no line"},
		{"resume", "a1", "--payload", `{"approve":7}`},
	} {
		a, stdout, stderr := newTestApp(t, nil, noon)
		a.env = config.Environment{Directory: folder, GOOS: "linux", Home: folder}
		a.now = time.Now
		a.columns, a.terminal = func() int { return columns }, func() int { return columns }
		a.execute(t.Context(), append(args, "--db", "runs.db"))
		for line := range strings.Lines(stderr.String() + stdout.String()) {
			line = strings.TrimRight(line, "\n")
			words := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "✓ "), strings.HasPrefix(line, "? "): // the live view has widths of its own
			case strings.Contains(line, program+" ") && strings.HasPrefix(strings.TrimSpace(line), program):
			case utf8.RuneCountInString(line) > columns && len(words) > 1:
				t.Errorf("%v: %d characters of %d: %s", args, utf8.RuneCountInString(line), columns, line)
			}
		}
	}
	const command = "  workflows-engine resume a1 --payload '{\"text\":\"one two three four five six seven\"}'\n"
	if got := wrapped("continue with:\n"+command, 30); got != "continue with:\n"+command {
		t.Errorf("a command is cut: %q", got)
	}
	if got := wrapped(palette{on: true}.bad("error:")+" a b", 20); strings.Contains(got, "\n") {
		t.Errorf("colours count as characters: %q", got)
	}
}
