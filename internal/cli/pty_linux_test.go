package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// openTerminal opens a pseudo-terminal of some size; what is written to its slave is shown on the model.
func openTerminal(t *testing.T, columns, rows int) (master, slave *os.File, shown *terminal) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	master = os.NewFile(uintptr(fd), "ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	shown = &terminal{columns: columns, rows: rows}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(shown, master) // ends with the error of a slave that is closed
	}()
	t.Cleanup(func() {
		slave.Close()
		<-read
		master.Close()
	})
	return master, slave, shown
}

var (
	durations = regexp.MustCompile(` *\b[0-9.]+m?s\b`)
	blanks    = regexp.MustCompile(` +`)
)

// steady is what was shown without durations and the widths of columns, which differ from time to time.
func steady(text string) string {
	return blanks.ReplaceAllString(durations.ReplaceAllString(text, " T"), " ")
}

// when calls do once the terminal shows a text.
func (t *terminal) when(tb testing.TB, ctx context.Context, text string, do func()) {
	tb.Helper()
	for ctx.Err() == nil {
		if strings.Contains(t.text(), text) {
			do()
			return
		}
		time.Sleep(5 * time.Millisecond) // another goroutine writes
	}
}

// TestOnATerminal runs and watches an example on a real terminal, where a person answers; what is left on it is kept in golden files.
func TestOnATerminal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	db := filepath.Join(t.TempDir(), "runs.db")
	master, slave, shown := openTerminal(t, 120, 24)
	go shown.when(t, ctx, "\n>", func() { fmt.Fprintln(master, `{"accepted":true}`) })
	got := Main(ctx, []string{
		"run", filepath.Join("..", "..", "examples", "document-review", "document-review.workflow.yaml"), "--id", "d1", "--profile", "demo", "--db", db,
		"--input", `{"topic":"the contract","documents":["a","b","c","d","e"]}`,
	}, slave, slave, slave)
	if got != exitOK {
		t.Errorf("exit status %d", got)
	}
	shown.when(t, ctx, `"unread": 0`, func() {})
	text := strings.ReplaceAll(shown.text(), db, "runs.db")
	requireGolden(t, "terminal_run", steady(text[strings.Index(text, "\ndocument-review")+1:]))

	_, slave, shown = openTerminal(t, 120, 24)
	var result bytes.Buffer
	if got := Main(ctx, []string{"watch", "d1", "--db", db}, slave, &result, slave); got != exitOK || !strings.Contains(result.String(), `"accepted": true`) {
		t.Errorf("watch: exit status %d, result %s", got, &result)
	}
	shown.when(t, ctx, "completed run d1", func() {})
	requireGolden(t, "terminal_watch", steady(shown.text()))
}

// TestPager: what does not fit a terminal is shown by $PAGER; what fits, or is for no terminal, is not.
func TestPager(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pager := filepath.Join(t.TempDir(), "pager")
	if err := os.WriteFile(pager, []byte("#!/bin/sh\nwc -l\necho end of $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(shown, unshown string, args ...string) {
		t.Helper()
		_, slave, screen := openTerminal(t, 80, 24)
		a := &app{stdin: slave, stdout: slave, stderr: slave, terminalOut: slave, columns: func() int { return 80 }, env: config.Environment{Variables: []string{"PAGER=" + pager + " it"}}}
		if got := a.execute(ctx, args); got != exitOK {
			t.Errorf("%v: exit status %d", args, got)
		}
		screen.when(t, ctx, shown, func() {})
		if text := screen.text(); !strings.Contains(text, shown) || strings.Contains(text, unshown) {
			t.Errorf("%v:\n%s", args, text)
		}
	}
	run("end of it", "# map", "guide", "map")
	run("What to do:", "end of it", "explain", "EXECUTION_NOT_FOUND")
	run("end of it", "VALIDATION_ERROR", "explain")
}
