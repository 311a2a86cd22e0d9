package cli

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// failing takes some bytes and then fails.
type failing struct {
	room int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.room {
		n := f.room
		f.room = 0
		return n, f.err
	}
	f.room -= len(p)
	return len(p), nil
}

// TestLostOutput: a result that cannot be written ends a command with an error, said once; a reader that has gone away
// ends it without a word.
func TestLostOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, definition := filepath.Join(dir, "runs.db"), filepath.Join("..", "..", "examples", "lighthouse", "lighthouse.workflow.json")
	definition, err := filepath.Abs(definition)
	if err != nil {
		t.Fatal(err)
	}
	run := []string{"run", definition, "--profile", "demo", "--input", `{"ticket_text":"x"}`, "--db", db}
	if status, _, stderr := call(t, 0, append(run, "--id", "r1")...); status != exitOK {
		t.Fatalf("status %d\n%s", status, stderr)
	}
	full := errors.New("no space left on the device")
	for _, args := range [][]string{
		{"list", "--db", db},
		{"list", "--json", "--db", db},
		{"status", "r1", "--db", db},
		{"history", "r1", "--db", db},
		{"history", "r1", "--activities", "--json", "--db", db},
		{"verify", "--db", db},
		{"verify", "--json", "--db", db},
		{"export", "r1", "--db", db},
		{"gc", "--older-than", "1000d", "--db", db},
		{"gc", "--older-than", "0", "--dry-run", "--json", "--db", db},
		{"validate", definition},
		{"version"}, {"--version"}, {"--help"},
		append(run, "--json"),
	} {
		for _, room := range []int{0, 3} {
			a, _, stderr := newTestApp(t, strings.NewReader(""), time.Now())
			a.stdout = &failing{room, full}
			if status := a.execute(t.Context(), args); status != exitFailed {
				t.Errorf("%v, room for %d: exit status %d", args, room, status)
			}
			if said := strings.Count(stderr.String(), full.Error()); said != 1 || !strings.Contains(stderr.String(), "error: write output: ") {
				t.Errorf("%v, room for %d: said %d times:\n%s", args, room, said, stderr)
			}
		}
		a, _, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.stdout = &failing{0, syscall.EPIPE}
		if status := a.execute(t.Context(), args); status != exitFailed || strings.Contains(stderr.String(), "error") {
			t.Errorf("%v to nobody: exit status %d\n%s", args, status, stderr)
		}
	}
	// The error of the command itself counts more.
	a, _, stderr := newTestApp(t, strings.NewReader(""), time.Now())
	a.stdout = &failing{0, full}
	if status := a.execute(t.Context(), []string{"status", "nobody", "--db", db}); status != exitFailed || !strings.Contains(stderr.String(), "EXECUTION_NOT_FOUND") {
		t.Errorf("an unknown run: exit status %d\n%s", status, stderr)
	}
}

// What packages print with package log goes where the log of a command goes, in its form.
func TestThePackagesLogIsTheCommands(t *testing.T) {
	t.Parallel()
	a, _, errs := newTestApp(t, strings.NewReader(""), time.Now())
	a.now = time.Now
	var given *slog.Logger
	a.standardLog = func(l *slog.Logger) { given = l }
	if status := a.execute(t.Context(), []string{"list", "--store", "memory", "--log-format", "json", "--log-level", "info"}); status != exitOK || given == nil {
		t.Fatalf("status %d, %v\n%s", status, given, errs.String())
	}
	slog.NewLogLogger(given.Handler(), slog.LevelInfo).Print("Unsolicited response")
	if got := errs.String(); !strings.Contains(got, `"msg":"Unsolicited response"`) {
		t.Errorf("%q", got)
	}
}
