package doctor_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/doctor"
)

// settings are those of a user with a home folder, and with XDG_DATA_HOME unless it is "".
func settings(t *testing.T, home, xdg string, args ...string) *config.Config {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := config.Register(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	c, err := flags.Load(config.Environment{GOOS: "linux", Home: home, Directory: home, ReadFile: os.ReadFile, Variables: []string{"XDG_DATA_HOME=" + xdg}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start begins a run in the database of the settings.
func start(t *testing.T, c *config.Config, id string) {
	t.Helper()
	store, err := c.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	runner, err := graph.New(store, graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	doc, err := definition.Parse([]byte(`{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"z","type":"end"}],"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: doc}); err != nil {
		t.Fatal(err)
	}
}

// found returns the findings with a code.
func found(r doctor.Report, code doctor.Code) (list []doctor.Finding) {
	for _, f := range r.Findings {
		if f.Code == code {
			list = append(list, f)
		}
	}
	return list
}

// TestMissingDirectory: a database in a directory that does not exist is a problem, as it is for the commands that would use it. The directory of
// the default database is created.
func TestMissingDirectory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	gone := filepath.Join(home, "gone")
	for _, c := range []*config.Config{settings(t, home, "", "--db", filepath.Join(gone, "runs.db")), settings(t, home, "")} {
		var r doctor.Report
		r.Store(t.Context(), c, time.Now())
		want := 0
		if c.StorePathGiven {
			want = 1
			if _, err := c.OpenStore(t.Context()); err == nil || len(r.Findings) != 1 || r.Findings[0].Message != err.Error() || r.Findings[0].Fix == "" {
				t.Errorf("found %+v; opened with %v", r.Findings, err)
			}
		}
		if r.Problems() != want {
			t.Errorf("%s: %+v", c.StorePath, r.Findings)
		}
	}
}

// TestTwoDatabases shows both with their runs, and the commands that bring them together.
func TestTwoDatabases(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	xdg := filepath.Join(home, "xdg")
	start(t, settings(t, home, ""), "h1")
	other := filepath.Join(xdg, "workflows-engine", "runs.db")
	if err := os.MkdirAll(filepath.Dir(other), 0o700); err != nil {
		t.Fatal(err)
	}
	start(t, settings(t, home, "", "--db", other), "x1")
	start(t, settings(t, home, "", "--db", other), "x2")
	c := settings(t, home, xdg)
	var r doctor.Report
	r.Store(t.Context(), c, time.Now())
	two := found(r, doctor.DatabaseTwo)
	if len(two) != 1 || two[0].Level != doctor.Warning || r.Problems() > 0 {
		t.Fatalf("%+v", r.Findings)
	}
	for _, said := range []string{c.StorePath + " is used (1 run, newest change 20", other + " is not (2 runs, newest change 20"} {
		if !strings.Contains(two[0].Message, said) {
			t.Errorf("no %q in %s", said, two[0].Message)
		}
	}
	for _, said := range []string{"export \"$id\" --db '" + other + "'", "import - --db '" + c.StorePath + "'", "mv '" + other} {
		if !strings.Contains(two[0].Fix, said) {
			t.Errorf("no %q in %s", said, two[0].Fix)
		}
	}
}

// TestDatabasesInTrouble: what keeps a database from being used, each with its fix.
func TestDatabasesInTrouble(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		code  doctor.Code
		asAny bool // root may do what others may not
	}{
		"not a database": {func(t *testing.T, path string) { write(t, path, "to be, or not to be") }, doctor.Database, true},
		"a folder":       {func(t *testing.T, path string) { mkdir(t, path, 0o700) }, doctor.DatabaseReadOnly, true},
		"read-only": {func(t *testing.T, path string) {
			write(t, path, "")
			if err := os.Chmod(path, 0o400); err != nil {
				t.Fatal(err)
			}
		}, doctor.DatabaseReadOnly, false},
		"read-only folder": {func(t *testing.T, path string) {
			if err := os.Chmod(filepath.Dir(path), 0o500); err != nil {
				t.Fatal(err)
			}
		}, doctor.DatabaseReadOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !c.asAny && (os.Getuid() == 0 || runtime.GOOS == "windows") {
				t.Skip("root and users of Windows can write to any folder here; run the test as an ordinary user of a Unix")
			}
			home := t.TempDir()
			folder := filepath.Join(home, "data")
			mkdir(t, folder, 0o700)
			t.Cleanup(func() { os.Chmod(folder, 0o700) })
			path := filepath.Join(folder, "runs.db")
			c.spoil(t, path)
			var r doctor.Report
			r.Store(t.Context(), settings(t, home, "", "--db", path), time.Now())
			bad := found(r, c.code)
			if len(bad) == 0 || bad[0].Level != doctor.Problem || bad[0].Fix == "" {
				t.Errorf("%+v", r.Findings)
			}
		})
	}
}

func TestDatabaseThatIsNotThere(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	var r doctor.Report
	r.Store(t.Context(), settings(t, home, ""), time.Now())
	if facts := found(r, doctor.Database); len(facts) != 1 || facts[0].Level != doctor.OK || r.Problems() > 0 {
		t.Errorf("%+v", r.Findings)
	}
	if _, err := os.Stat(filepath.Join(home, ".local")); err == nil {
		t.Error("looking made a folder")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestUnattendedRuns: the doctor counts the runs that no process drives.
func TestUnattendedRuns(t *testing.T) {
	t.Parallel()
	c := settings(t, t.TempDir(), "")
	start(t, c, "ended")
	store, err := c.OpenStore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	begun := time.Now()
	for id, timer := range map[string]time.Duration{"n1": time.Hour, "n2": 2 * time.Hour, "n3": 72 * time.Hour} {
		x := historytest.NewTrace(t, id)
		b := x.Batch(append(historytest.Start("w", "in_process"), `E TimerStarted nap {}`)...)
		b.SetTimers, b.Timers = true, []history.Timer{{Key: "nap#1", Due: begun.Add(timer)}}
		if err := store.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for now, want := range map[time.Time]string{
		begun:                       "",
		begun.Add(90 * time.Minute): "without an owner: 1 run with an overdue timer, the first since " + begun.Add(time.Hour).UTC().Format("2006-01-02T15:"),
		begun.Add(3 * time.Hour):    "without an owner: 2 runs with an overdue timer",
	} {
		var r doctor.Report
		r.Store(t.Context(), c, now)
		left := found(r, doctor.RunsUnattended)
		if want == "" && len(left) == 0 && r.Problems() == 0 {
			continue
		}
		if len(left) != 1 || want == "" || left[0].Level != doctor.Warning || !strings.HasPrefix(left[0].Message, want) ||
			!strings.Contains(left[0].Fix, "workflows-engine recover --dry-run --db "+c.StorePath) {
			t.Errorf("after %v: %+v, want %q", now.Sub(begun), left, want)
		}
	}
}
