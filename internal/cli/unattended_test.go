package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

const (
	dayText = `{"document":{"schema":"s","name":"day","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"nap","type":"wait","config":{"kind":"duration","duration":"2h"}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"nap"},{"source":"nap","target":"z"}]}`
	asksText = `{"document":{"schema":"s","name":"asks","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"v","type":"subworkflow","config":{"workflow_ref":"ask","input_mapping":{}}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"v"},{"source":"v","target":"z"}]}`
	askText = `{"document":{"schema":"s","name":"ask","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"ask","type":"interrupt","config":{"prompt":"Open the gate?","resume_schema":{"type":"object"}}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"ask"},{"source":"ask","target":"z"}]}`
)

// commands runs commands in a folder at a time of its choice.
type commands struct {
	t      *testing.T
	folder string
}

func newCommands(t *testing.T, files map[string]string) *commands {
	c := &commands{t, t.TempDir()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(c.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *commands) at(now time.Time, want int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errs, now: func() time.Time { return now }, env: config.Environment{
		GOOS: "linux", Home: c.folder, Directory: c.folder, ReadFile: os.ReadFile,
	}}
	if got := a.execute(c.t.Context(), args); got != want {
		c.t.Fatalf("%v: exit status %d, want %d\n%s%s", args, got, want, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

func wantMatch(t *testing.T, text, pattern string, want bool) {
	t.Helper()
	if regexp.MustCompile("(?m)"+pattern).MatchString(text) != want {
		t.Errorf("matches %q: %t, want %t:\n%s", pattern, !want, want, text)
	}
}

// wantCell checks the cell of a run in a column of a printed list, whatever the other columns are.
func wantCell(t *testing.T, list, id, column, pattern string) {
	t.Helper()
	lines := strings.Split(list, "\n")
	from := strings.Index(lines[0], column)
	for _, line := range lines[1:] {
		if first, _, _ := strings.Cut(line, " "); first != id || from < 0 {
			continue
		}
		cell, _, _ := strings.Cut(string([]rune(line)[from:]), "  ")
		if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(cell) {
			t.Errorf("%s of %s is %q, want %s", column, id, cell, pattern)
		}
		return
	}
	t.Errorf("no cell %s of %s in\n%s", column, id, list)
}

// TestAnOverdueTimerIsSaid: that no process is there to fire a timer is said where somebody looks, with the command that helps.
func TestAnOverdueTimerIsSaid(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{"day.workflow.json": dayText, "ask.workflow.json": askText})
	file := func(name string) string { return filepath.Join(c.folder, name) }
	db := file("runs.db")
	begun := time.Now()
	c.at(begun, exitPaused, "run", file("day.workflow.json"), "--id", "n1", "--wait", "0", "--db", db)
	c.at(begun, exitPaused, "run", file("ask.workflow.json"), "--id", "q1", "--db", db)

	const overdue, due = `timer overdue since 20[0-9-]+ [0-9:]+Z; no owner`, `until 20[0-9-]+ [0-9:]+Z`
	soon, late := begun.Add(time.Hour), begun.Add(3*time.Hour)
	stdout, stderr := c.at(soon, exitOK, "list", "--db", db)
	wantCell(t, stdout, "n1", "WAITS FOR", due)
	wantCell(t, stdout, "q1", "WAITS FOR", `asks: Open the gate\?`)
	wantMatch(t, stdout+stderr, "overdue|no process", false)
	stdout, _ = c.at(soon, exitOK, "status", "n1", "--db", db)
	wantMatch(t, stdout, "overdue|no process", false)

	stdout, stderr = c.at(late, exitOK, "list", "--db", db)
	wantCell(t, stdout, "n1", "WAITS FOR", overdue)
	wantMatch(t, stderr, `^run n1 has no owner; recover it with:\n  workflows-engine recover n1 --db `, true)
	stdout, _ = c.at(late, exitOK, "status", "n1", "--db", db)
	wantMatch(t, stdout, `^process +`+overdue+`\n(.*\n)*continue with:\n  workflows-engine recover n1 --db `, true)
	stdout, stderr = c.at(late, exitOK, "list", "--phase", "interrupted", "--db", db)
	wantMatch(t, stdout+stderr, "overdue|no process", false)

	// a live process fires it
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := store.Renew(t.Context(), "worker", 12*time.Hour); err != nil {
		t.Fatal(err)
	}
	if claimed, err := store.Claim(t.Context(), "worker", "n1"); err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	stdout, stderr = c.at(late, exitOK, "list", "--db", db)
	wantMatch(t, stdout+stderr, "overdue|no process", false)
	stdout, _ = c.at(late, exitOK, "status", "n1", "--db", db)
	wantMatch(t, stdout, "overdue", false)
}

// TestAnOverdueDeadlineOfASubworkflow is said of the run that a person knows, which is the one to recover.
func TestAnOverdueDeadlineOfASubworkflow(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{
		"asks.workflow.json": asksText, "ask.workflow.json": strings.Replace(askText, `"config":{`, `"config":{"timeout":"2h",`, 1),
	})
	db := filepath.Join(c.folder, "runs.db")
	begun := time.Now()
	for _, id := range []string{"p1", "p2"} {
		c.at(begun, exitPaused, "run", filepath.Join(c.folder, "asks.workflow.json"), "--workflow-dir", c.folder, "--id", id, "--db", db)
	}
	late := begun.Add(3 * time.Hour)
	stdout, stderr := c.at(late, exitOK, "list", "--roots", "--db", db)
	wantCell(t, stdout, "p1", "WAITS FOR", `timer overdue since .*`)
	wantMatch(t, stderr, `^no owner for 2 of these runs; recover them with:\n  workflows-engine recover --db `, true)
	stdout, _ = c.at(late, exitOK, "status", "p1", "--db", db)
	wantMatch(t, stdout, `^process +timer overdue since .*\n(.*\n)*continue with:\n  workflows-engine recover p1 --db `, true)
}

// TestPhasesAgree: list and status show one phase of a run, which is one that list --phase takes.
func TestPhasesAgree(t *testing.T) {
	t.Parallel()
	c := newCommands(t, map[string]string{"day.workflow.json": dayText, "ask.workflow.json": askText, "asks.workflow.json": asksText})
	db := filepath.Join(c.folder, "runs.db")
	now := time.Now()
	for id, name := range map[string]string{"timer": "day", "question": "ask", "below": "asks", "cancelled": "asks"} {
		c.at(now, exitPaused, "run", filepath.Join(c.folder, name+".workflow.json"), "--workflow-dir", c.folder, "--id", id, "--wait", "0", "--db", db)
	}
	c.at(now, exitOK, "cancel", "cancelled", "--db", db)
	shown := map[string]history.Phase{}
	for _, phase := range history.Phases() {
		stdout, _ := c.at(now, exitOK, "list", "--phase", string(phase), "--db", db)
		for line := range strings.Lines(stdout) {
			id := strings.Fields(line)[0]
			if id == "ID" {
				continue
			}
			shown[id] = phase
			status, _ := c.at(now, exitOK, "status", id, "--db", db)
			wantCell(t, stdout, id, "PHASE", string(phase))
			wantMatch(t, status, `^phase +`+string(phase)+`$`, true)
		}
	}
	for id, want := range map[string]history.Phase{
		"timer": history.PhaseRunning, "question": history.PhaseInterrupted, "below": history.PhaseRunning, "cancelled": history.PhaseCancelled,
	} {
		if shown[id] != want {
			t.Errorf("%s is shown as %q, want %q", id, shown[id], want)
		}
	}
}
