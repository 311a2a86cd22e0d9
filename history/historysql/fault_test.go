package historysql_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestW61_BusyTimeout: a writer waits for others as long as it is told, no longer than its caller, and goes on after.
// The bubble's clock makes the waiting short.
func TestW61_BusyTimeout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	openFile(t, path, historysql.Options{})
	other := &reference{t, plain(t, path)}
	other.exec("BEGIN IMMEDIATE")
	synctest.Test(t, func(t *testing.T) {
		s := openFile(t, path, historysql.Options{BusyTimeout: 40 * time.Second})
		x := historytest.NewTrace(t, "x")
		b := x.Batch("E ExecutionStarted")
		start := time.Now()
		err := s.Append(t.Context(), b)
		if e, ok := problem.As(err); !ok || e.Code != problem.StoreLocked || !strings.Contains(e.Hint, "locked") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited < 40*time.Second || waited > 41*time.Second {
			t.Errorf("waited %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start = time.Now()
		if err := s.Append(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		go func() {
			time.Sleep(5 * time.Second)
			other.exec("COMMIT")
		}()
		if err := s.Append(t.Context(), b); err != nil {
			t.Errorf("the lock was given back, got %v", err)
		}
	})
}

// TestFullDisk: a batch that does not fit leaves nothing behind, and the store goes on when there is room again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, historytest.Start("w", "in_process")...)
	if err := s.Script("PRAGMA max_page_count = 1"); err != nil { // which SQLite makes the present size
		t.Fatal(err)
	}
	before := x.Execution
	big := x.Batch(`E StateUpdated a {"state":{"s":"`+strings.Repeat("long ", 40_000)+`"}}`, "C ScheduleNode a")
	err := s.Append(t.Context(), big)
	if e, ok := problem.As(err); !ok || e.Code != problem.StoreFull || !strings.Contains(e.Hint, "full") {
		t.Fatalf("got %v", err)
	}
	if e, err := s.Execution(t.Context(), "x"); err != nil || e.Seq != before.Seq || len(mustRead(t, s, "x")) != int(before.Seq) {
		t.Errorf("the batch left seq %d, %v", e.Seq, err)
	}
	if err := s.Script("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), big); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

// TestUnsoundConnection: a connection in a state that it should not be in is given up, and the store goes on.
func TestUnsoundConnection(t *testing.T) {
	t.Parallel()
	for _, spoil := range []string{"BEGIN", "BEGIN IMMEDIATE", "PRAGMA query_only = 1"} {
		s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
		x := historytest.NewTrace(t, "x")
		x.Append(s, "E ExecutionStarted")
		if err := s.Script(spoil); err != nil {
			t.Fatal(err)
		}
		b := x.Batch("C ScheduleNode a")
		if err := s.Append(t.Context(), b); !errors.Is(err, problem.Internal) && !errors.Is(err, problem.StoreReadOnly) {
			t.Errorf("%s: got %v", spoil, err)
		}
		if spoil == "PRAGMA query_only = 1" {
			if err := s.Script("PRAGMA query_only = 0"); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Append(t.Context(), b); err != nil {
			t.Errorf("after %s: %v", spoil, err)
		}
		if rs := mustRead(t, s, "x"); len(rs) != 2 {
			t.Errorf("after %s: %d records", spoil, len(rs))
		}
	}
}

// TestCancelIsAllOrNothing cancels appends at all sorts of moments: each is there whole or not at all, the error says
// which, and the connection stays sound.
func TestCancelIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	appended := 0
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		before := x.Execution
		b := x.Batch("C ScheduleNode a", "E NodeScheduled a")
		done := make(chan struct{})
		go func() {
			for range i * 100 {
				_ = ctx.Err()
			}
			cancel()
			close(done)
		}()
		err := s.Append(ctx, b)
		<-done
		switch {
		case err == nil:
			appended++
		case errors.Is(err, context.Canceled):
			x.Execution = before
		default:
			t.Fatalf("append %d: %v", i, err)
		}
		if e, err := s.Execution(t.Context(), "x"); err != nil || e.Seq != x.Execution.Seq {
			t.Fatalf("append %d: the run stands at %d, want %d, %v", i, e.Seq, x.Execution.Seq, err)
		}
	}
	if rs := mustRead(t, s, "x"); len(rs) != 1+2*appended {
		t.Errorf("%d appends left %d records", appended, len(rs))
	}
}

// TestReadersSurviveCancel: an interrupted query does not harm the ones after it.
func TestReadersSurviveCancel(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Readers: 1})
	x := historytest.NewTrace(t, "x")
	for range 20 {
		x.Append(s, historytest.Node("a", "b")...)
	}
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if rs, err := s.Read(ctx, "x", 1, 0); err == nil && len(rs) != 120 || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("read %d records, %v", len(rs), err)
		}
		cancel()
		if _, err := s.Execution(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneReader: no call needs two reading connections at once.
func TestOneReader(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{Readers: 1})
	historytest.NewTrace(t, "parent").Append(s, append(historytest.Start("w", "in_process"),
		`E SubworkflowStarted v {"workflowRef":"w","parentExecutionId":"parent","childExecutionId":"child"}`)...)
	historytest.NewTrace(t, "child").Append(s, "E ExecutionStarted", `E ExecutionCompleted {"result":null}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if page, err := s.List(ctx, history.ListQuery{}); err != nil || len(page.Executions) != 2 {
		t.Errorf("listed %+v, %v", page, err)
	}
	if ids, err := s.Unowned(ctx, 0); err != nil || len(ids) != 1 {
		t.Errorf("orphans %v, %v", ids, err)
	}
}

// TestReadOnlyWithoutSharedMemory: a file that is not being written to can be read where no lock file can be made.
func TestReadOnlyWithoutSharedMemory(t *testing.T) {
	t.Parallel()
	path := atRest(t)
	if err := os.Mkdir(path+"-shm", 0o700); err != nil { // which takes the name of the lock file
		t.Fatal(err)
	}
	ro := openFile(t, path, historysql.Options{ReadOnly: true})
	if rs := mustRead(t, ro, "x"); len(rs) != 1 {
		t.Errorf("read %d records", len(rs))
	}
}

// TestReadOnlyLogWithoutSharedMemory: the steps in a log are not left out where no lock file can be made.
func TestReadOnlyLogWithoutSharedMemory(t *testing.T) {
	t.Parallel()
	path, left := filepath.Join(t.TempDir(), "runs.db"), filepath.Join(t.TempDir(), "left.db")
	s := openFile(t, path, historysql.Options{})
	historytest.NewTrace(t, "x").Append(s, "E ExecutionStarted")
	leave(t, path, left)
	for _, suffix := range []string{"", "-wal"} {
		if err := os.Chmod(left+suffix, 0o444); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(left), 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(left), 0o700) }) // so that it can be removed
	asOrdinaryUser(t, filepath.Dir(left), func() {
		_, err := historysql.Open(t.Context(), left, historysql.Options{ReadOnly: true})
		if e, ok := problem.As(err); !ok || !strings.Contains(e.Hint, "-wal") {
			t.Errorf("got %v", err)
		}
	})
}

// TestOutcomeOfAFailedCommit: a commit that failed may have stored the batch. It is looked for before it is made again.
func TestOutcomeOfAFailedCommit(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	x := historytest.NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	failed := errors.New("the disk failed")
	b := x.Batch("C ScheduleNode a", "E NodeScheduled a")
	for range 2 { // it is not there, and it is
		if err := s.Settle(t.Context(), b, failed); err != nil {
			t.Error(err)
		}
		if rs := mustRead(t, s, "x"); len(rs) != 3 {
			t.Errorf("%d records", len(rs))
		}
	}
	other := b
	other.Records = slices.Clone(b.Records)
	other.Records[1].CreatedAt = other.Records[1].CreatedAt.Add(time.Second)
	if err := s.Settle(t.Context(), other, failed); !errors.Is(err, problem.HistoryConflict) {
		t.Errorf("another process wrote first: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), b, failed); !errors.Is(err, problem.StoreOutcomeUnknown) || !errors.Is(err, failed) {
		t.Errorf("nobody can look: %v", err)
	}
}
