package historysql_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// someRuns makes a file with a few runs of every kind and a log that was not written back, as a killed process leaves
// them. It gives the contents of both.
func someRuns(t *testing.T) (file, log []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	for i := range 8 {
		x := historytest.NewTrace(t, fmt.Sprintf("run-%d", i))
		x.Append(s, historytest.Start("w", "in_process")...)
		for range 5 {
			x.Append(s, historytest.Node("a", "b")...)
		}
		if i == 5 { // the rest stays in the log
			r := &reference{t, plain(t, path)}
			r.exec("PRAGMA wal_checkpoint(TRUNCATE)")
		}
	}
	d := history.StoredDefinition{Hash: "h", Name: "w", Version: "1", Text: []byte(`{"a":1}`)}
	if err := s.PutDefinition(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		suffix string
		to     *[]byte
	}{{"", &file}, {"-wal", &log}} {
		data, err := os.ReadFile(path + f.suffix)
		if err != nil {
			t.Fatal(err)
		}
		*f.to = data
	}
	if len(log) < 10_000 {
		t.Fatalf("the log has %d bytes", len(log))
	}
	return file, log
}

// TestDamage flips bytes all over a file and its log, and cuts both off at all sorts of places. Whatever is asked then is
// answered, or refused with a code: nothing panics, and nothing passes a damaged file off as an empty one.
func TestDamage(t *testing.T) {
	t.Parallel()
	file, log := someRuns(t)
	samples := soak.Size(15, 4, 5000)
	dir := t.TempDir()
	refused := map[problem.Code]int{}
	rng := rand.New(rand.NewPCG(1, 2))
	try := func(name string, file, log []byte) {
		path := filepath.Join(dir, "runs.db")
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(path + suffix)
		}
		for suffix, content := range map[string][]byte{"": file, "-wal": log} {
			if err := os.WriteFile(path+suffix, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range useAll(t, path) {
			if p, ok := problem.As(err); ok && p.Code != problem.Internal {
				refused[p.Code]++
			} else {
				t.Errorf("%s: an error without a code that helps: %v", name, err)
			}
		}
	}
	flip := func(content []byte, at int) []byte {
		c := slices.Clone(content)
		c[at] ^= byte(1 + rng.IntN(255))
		return c
	}
	try("as it was", file, log)
	if len(refused) > 0 {
		t.Fatalf("the sound file is refused: %v", refused)
	}
	try("file cut off at 0", nil, log)
	try("file cut off at 0, without its log", nil, nil)
	if refused[problem.HistoryCorrupt] != 2 {
		t.Errorf("the emptied file is refused with %v", refused)
	}
	for range samples {
		at := rng.IntN(len(file))
		if rng.IntN(2) == 0 {
			at = at / 4096 * 4096 // the heads of pages, where the structure is
			at += rng.IntN(12)
		}
		try(fmt.Sprintf("file, byte %d", at), flip(file, at), log)
		at = rng.IntN(len(log))
		try(fmt.Sprintf("log, byte %d", at), file, flip(log, at))
		at = rng.IntN(len(file)-1) + 1
		try(fmt.Sprintf("file cut off at %d", at), file[:at], nil)
		try(fmt.Sprintf("log cut off at %d", at%len(log)), file, log[:at%len(log)])
	}
	t.Logf("%d damages, refused with %v", 4*samples, refused)
	if refused[problem.HistoryCorrupt] < samples/2 {
		t.Errorf("little damage was seen: %v", refused)
	}
}

// A column of another type than is ever stored in it is damage, which SQLite does not see.
func TestDamagedColumns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		damage string
		use    func(s *historysql.Store) error
	}{
		"bytes of a run that is listed": {"UPDATE executions SET bytes = 'x'", func(s *historysql.Store) error {
			_, err := s.List(t.Context(), history.ListQuery{})
			return err
		}},
		"bytes of a run": {"UPDATE executions SET bytes = 'x'", func(s *historysql.Store) error {
			_, err := s.Execution(t.Context(), "x")
			return err
		}},
		"a position's record": {"UPDATE executions SET position_seq = 'x'", func(s *historysql.Store) error {
			_, _, err := s.Position(t.Context(), "x")
			return err
		}},
		"a timer's time": {"UPDATE timers SET due = -0.5", func(s *historysql.Store) error {
			_, err := s.DueTimers(t.Context(), historytest.Begin, 0)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			s := openFile(t, path, historysql.Options{})
			b := historytest.NewTrace(t, "x").Batch("E ExecutionStarted")
			b.SetTimers, b.Timers = true, []history.Timer{{Key: "t#1", Due: historytest.Begin}}
			if err := s.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			(&reference{t, plain(t, path)}).exec(test.damage)
			wantRefusal(t, name, test.use(s), problem.HistoryCorrupt)
		})
	}
}

// useAll asks everything of a file that exists and gives the errors. A file that is opened has runs, since it is no new one.
func useAll(t *testing.T, path string) (errs []error) {
	t.Helper()
	ctx := t.Context()
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	s, err := historysql.Open(ctx, path, historysql.Options{Synchronous: historysql.Normal, Existing: true})
	if err != nil {
		return []error{err}
	}
	defer func() { note(s.Close()) }()
	page, err := s.List(ctx, history.ListQuery{})
	note(err)
	seen := len(page.Executions)
	for i := range 8 {
		id := fmt.Sprintf("run-%d", i)
		rs, err := s.Read(ctx, id, 1, 0)
		note(err)
		seen += len(rs)
		e, err := s.Execution(ctx, id)
		note(err)
		_, _, err = s.Position(ctx, id)
		note(err)
		if err == nil && e.Seq > 0 {
			x := historytest.NewTrace(t, id)
			x.Execution = e
			note(s.Append(ctx, x.Batch("C ScheduleNode z")))
		}
	}
	_, err = s.Definition(ctx, "h")
	note(err)
	_, err = s.DueTimers(ctx, time.Now(), 0)
	note(err)
	_, err = s.Unowned(ctx, 0)
	note(err)
	note(s.Renew(ctx, "o", time.Minute))
	_, err = s.Claim(ctx, "o", "run-1")
	note(err)
	note(s.Disown(ctx, "o", "run-1"))
	_, err = s.Owner(ctx, "run-1")
	note(err)
	if len(errs) == 0 && seen == 0 {
		t.Errorf("a damaged file of %s passes for an empty one", path)
	}
	return errs
}

// TestLockedElsewhere: what another program keeps to itself is refused with a code, by a store that is open as by one
// that is to be opened, and served once it has been given back.
func TestLockedElsewhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	o := historysql.Options{BusyTimeout: 50 * time.Millisecond}
	s := openFile(t, path, o)
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	other := &reference{t, plain(t, path)}
	other.exec("BEGIN EXCLUSIVE")
	b := x.Batch("C ScheduleNode a")
	for name, call := range map[string]func() error{
		"append": func() error { return s.Append(t.Context(), b) },
		"lease":  func() error { return s.Renew(t.Context(), "o", time.Minute) },
		"put definition": func() error {
			return s.PutDefinition(t.Context(), history.StoredDefinition{Hash: "h", Text: []byte("{}")})
		},
	} {
		wantRefusal(t, name, call(), problem.StoreLocked)
	}
	if rs := mustRead(t, s, "x"); len(rs) != 1 {
		t.Errorf("%d records", len(rs))
	}
	other.exec("COMMIT")
	if err := s.Append(t.Context(), b); err != nil {
		t.Errorf("the lock was given back: %v", err)
	}
	// A program that keeps the file to itself altogether.
	alone := filepath.Join(t.TempDir(), "runs.db")
	if err := openFile(t, alone, o).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", alone)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; CREATE TABLE t (x)"); err != nil {
		t.Fatal(err)
	}
	_, err = historysql.Open(t.Context(), alone, o)
	wantRefusal(t, "open", err, problem.StoreLocked)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := historysql.Open(t.Context(), alone, o)
	if err != nil {
		t.Fatalf("given back: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func wantRefusal(t *testing.T, what string, err error, code problem.Code) {
	t.Helper()
	if p, ok := problem.As(err); !ok || p.Code != code || p.Hint == "" {
		t.Errorf("%s: got %v, want %s and a hint", what, err, code)
	}
}
