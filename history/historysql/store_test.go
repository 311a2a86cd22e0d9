package historysql_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// open makes a store in a new file.
func open(t testing.TB, now func() time.Time) history.Store {
	return openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Now: now})
}

func openFile(t testing.TB, path string, o historysql.Options) *historysql.Store {
	t.Helper()
	s, err := historysql.Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// atRest makes a file with a run of one record, "x", that nobody has open.
func atRest(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// leave makes a copy of a file and its log as a process leaves them that is killed.
func leave(t testing.TB, path, left string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err == nil {
			err = os.WriteFile(left+suffix, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	historytest.Run(t, open)
}

func TestStoreKeepsWhatIsWritten(t *testing.T) {
	t.Parallel()
	historytest.RunPersistent(t, func(t testing.TB, dir string, now func() time.Time) history.Store {
		return openFile(t, filepath.Join(dir, "runs.db"), historysql.Options{Now: now})
	})
}

func TestClockSteps(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	paths := map[*historytest.SteppedClock]string{}
	historytest.ClockSteps(t, func(t testing.TB, c *historytest.SteppedClock) history.Store {
		mu.Lock()
		defer mu.Unlock()
		if paths[c] == "" {
			paths[c] = filepath.Join(t.TempDir(), "runs.db")
		}
		return openFile(t, paths[c], historysql.Options{Now: c.Now, Uptime: c.Uptime})
	})
}

// TestClockStepsBackBetweenProcesses: where the uptime is not known, a process that is opened after the step goes on from the newest
// time that another one has stored.
func TestClockStepsBackBetweenProcesses(t *testing.T) {
	t.Parallel()
	c := historytest.NewSteppedClock()
	path := filepath.Join(t.TempDir(), "runs.db")
	first := openFile(t, path, historysql.Options{Now: c.Now})
	historytest.NewTrace(t, "x").Append(first, historytest.Start("w", "in_process")...)
	if err := first.Renew(t.Context(), "p", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Claim(t.Context(), "p", "x"); err != nil {
		t.Fatal(err)
	}
	c.Step(-time.Hour)
	next := openFile(t, path, historysql.Options{Now: c.Now})
	for _, passed := range []time.Duration{0, 9 * time.Second, 10 * time.Second} {
		c.Pass(passed)
		owner, err := next.Owner(t.Context(), "x")
		if want := passed < 10*time.Second; err != nil || owner.Live() != want {
			t.Errorf("after %v: %+v, %v", passed, owner, err)
		}
	}
	if now, err := next.Now(t.Context()); err != nil || now.Before(historytest.Begin) {
		t.Errorf("the store's time is %v, %v", now, err)
	}
}

// TestKeysAreShared: two processes that have a file open, and one that opens it later, have the same key; one that only reads gets it
// too, and makes none.
func TestKeysAreShared(t *testing.T) {
	t.Parallel()
	path := atRest(t)
	if _, err := openFile(t, path, historysql.Options{ReadOnly: true}).Key(t.Context(), "k"); !errors.Is(err, problem.StoreReadOnly) {
		t.Errorf("a store that only reads: %v", err)
	}
	one, two := openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{})
	var first []byte
	for i, s := range []*historysql.Store{one, two, openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{ReadOnly: true})} {
		key, err := s.Key(t.Context(), "k")
		if first == nil {
			first = key
		}
		if err != nil || len(key) != history.KeyBytes || !bytes.Equal(key, first) {
			t.Errorf("store %d has %x, %v; want %x", i, key, err, first)
		}
	}
}
