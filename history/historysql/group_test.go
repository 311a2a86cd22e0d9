package historysql_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// together makes calls that wait for the same turn, and gives their errors. Each is waiting before the next begins.
func together(s *historysql.Store, calls ...func() error) []error {
	release := s.Hold()
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
		untilQueued(s, i+1)
	}
	release()
	wg.Wait()
	return errs
}

func untilQueued(s *historysql.Store, n int) {
	for s.Queued() != n {
		runtime.Gosched()
	}
}

// countCommits counts the commits of a store from now on.
func countCommits(t *testing.T, s *historysql.Store) *atomic.Int64 {
	var n atomic.Int64
	onCommit(t, s, func() int32 { n.Add(1); return 0 })
	return &n
}

func onCommit(t *testing.T, s *historysql.Store, call func() int32) {
	t.Helper()
	if err := s.OnCommit(call); err != nil {
		t.Fatal(err)
	}
}

// begun makes stores' runs x0, x1, … and gives their traces.
func begun(t *testing.T, s history.Store, n int) []*historytest.Trace {
	traces := make([]*historytest.Trace, n)
	for i := range traces {
		traces[i] = historytest.NewTrace(t, fmt.Sprintf("x%d", i))
		traces[i].Append(s, historytest.Start("w", "host_mediated")...)
	}
	return traces
}

// locked makes a store with n runs whose file another process keeps locked, for as long as the store would wait.
func locked(t *testing.T, n int) (*historysql.Store, []*historytest.Trace, *reference) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{BusyTimeout: time.Hour})
	traces := begun(t, s, n)
	other := &reference{t, plain(t, path)}
	other.exec("BEGIN IMMEDIATE")
	return s, traces, other
}

func wantRecords(t *testing.T, s history.Store, id string, want int) {
	t.Helper()
	records := mustRead(t, s, id)
	if len(records) != want {
		t.Errorf("run %s has %d records, want %d", id, len(records), want)
	}
	e, err := s.Execution(t.Context(), id)
	if p := history.Project(id, records); err != nil || string(e.AppendText(nil)) != string(p.AppendText(nil)) {
		t.Errorf("run %s: projection %s, %v", id, e.AppendText(nil), err)
	}
}

// TestGroupSharesACommit: what waits for one turn is committed at once.
func TestGroupSharesACommit(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 20)
	commits := countCommits(t, s)
	calls := []func() error{func() error { return s.Renew(t.Context(), "o", time.Hour) }}
	for _, x := range traces {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	if err := errors.Join(together(s, calls...)...); err != nil {
		t.Fatal(err)
	}
	if n := commits.Load(); n != 1 {
		t.Errorf("%d commits", n)
	}
	for i := range traces {
		wantRecords(t, s, fmt.Sprintf("x%d", i), 11)
	}
	if claimed, err := s.Claim(t.Context(), "o", "x0"); len(claimed) != 1 || err != nil {
		t.Fatal(claimed, err)
	}
	if o, err := s.Owner(t.Context(), "x0"); !o.Live() || err != nil {
		t.Errorf("the lease was lost: %+v, %v", o, err)
	}
}

// TestGroupIsBounded: more than fit into one transaction take several, and none is forgotten.
func TestGroupIsBounded(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	commits := countCommits(t, s)
	var calls []func() error
	for i := range 150 {
		b := historytest.NewTrace(t, fmt.Sprintf("x%d", i)).Batch("E ExecutionStarted")
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	for i := range 5 {
		b := historytest.NewTrace(t, fmt.Sprintf("big%d", i)).Batch(`E StateUpdated a {"state":{"s":"` + strings.Repeat("x", 3<<20) + `"}}`)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	if err := errors.Join(together(s, calls...)...); err != nil {
		t.Fatal(err)
	}
	// 64, 64, 22 and a big one, and each of the other big ones alone.
	if n := commits.Load(); n != 7 {
		t.Errorf("%d commits", n)
	}
	for i := range 150 {
		wantRecords(t, s, fmt.Sprintf("x%d", i), 1)
	}
}

// TestGroupConflict: what fails does so for reasons of its own, and leaves the others of its group.
func TestGroupConflict(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 8)
	if err := s.Renew(t.Context(), "other", time.Hour); err != nil {
		t.Fatal(err)
	}
	if claimed, err := s.Claim(t.Context(), "other", "x3"); len(claimed) != 1 || err != nil {
		t.Fatal(claimed, err)
	}
	batches := make([]history.Batch, len(traces))
	for i, x := range traces {
		batches[i] = x.Batch(historytest.Node("begin", "t")...)
	}
	stale := historytest.NewTrace(t, "x1")
	batches[1] = stale.Batch("E ExecutionStarted", "C ScheduleNode a")
	batches[3].Owner = "me"
	batches[5].ExpectedSeq++
	batches[5].Execution.Seq++
	twin := batches[6]
	twin.Records = twin.Records[:1:1]
	twin.Execution.Seq = twin.ExpectedSeq + 1
	batches = append(batches, twin)
	commits := countCommits(t, s)
	var calls []func() error
	for _, b := range batches {
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	for i, err := range together(s, calls...) {
		want := map[int]problem.Code{1: problem.HistoryConflict, 3: problem.LeaseHeld, 5: problem.HistoryConflict, 8: problem.HistoryConflict}[i]
		if want == "" && err != nil || want != "" && !errors.Is(err, want) {
			t.Errorf("append %d: %v, want %q", i, err, want)
		}
	}
	if n := commits.Load(); n != 1 {
		t.Errorf("%d commits", n)
	}
	for i := range traces {
		want := 11
		if i == 1 || i == 3 || i == 5 {
			want = 5
		}
		wantRecords(t, s, fmt.Sprintf("x%d", i), want)
	}
}

// TestGroupCommitFails: a commit that fails reaches everybody, leaves nothing, and the store goes on.
func TestGroupCommitFails(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 6)
	var calls []func() error
	for _, x := range traces {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	onCommit(t, s, func() int32 { return 1 })
	for i, err := range together(s, calls...) {
		if !errors.Is(err, problem.Internal) {
			t.Errorf("append %d: %v", i, err)
		}
		wantRecords(t, s, fmt.Sprintf("x%d", i), 5)
	}
	commits := countCommits(t, s)
	if err := errors.Join(together(s, calls...)...); err != nil {
		t.Error(err)
	}
	for i := range traces {
		wantRecords(t, s, fmt.Sprintf("x%d", i), 11)
	}
	if n := commits.Load(); n != 1 {
		t.Errorf("%d commits", n)
	}
}

// TestGroupConnectionGivenUp: with a connection in a state that it should not be in, everybody who waits is still
// answered, and what was not refused is there.
func TestGroupConnectionGivenUp(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 6)
	if err := s.Script("BEGIN"); err != nil {
		t.Fatal(err)
	}
	var calls []func() error
	for _, x := range traces {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	refused := 0
	for i, err := range together(s, calls...) {
		want := 11
		if err != nil {
			refused++
			want = 5
		}
		wantRecords(t, s, fmt.Sprintf("x%d", i), want)
	}
	if refused != 1 {
		t.Errorf("%d appends were refused, want that of the first leader", refused)
	}
}

// TestGroupRolledBack: a batch whose failure makes SQLite roll back by itself, as a full disk does, does not keep the
// others from being stored.
func TestGroupRolledBack(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 5)
	if err := s.Script(`CREATE TRIGGER fails BEFORE INSERT ON history WHEN NEW.name = 'TimerStarted'
		BEGIN SELECT RAISE(ROLLBACK, 'no room'); END`); err != nil {
		t.Fatal(err)
	}
	var calls []func() error
	for i, x := range traces {
		node := historytest.Node("begin", "t")
		if i == 1 || i == 3 {
			node[5] = "E TimerStarted t"
		}
		b := x.Batch(node...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	for i, err := range together(s, calls...) {
		want := 11
		if i == 1 || i == 3 {
			want = 5
			if !errors.Is(err, problem.Internal) || !strings.Contains(fmt.Sprint(errors.Unwrap(err)), "no room") {
				t.Errorf("append %d: %v", i, err)
			}
		} else if err != nil {
			t.Errorf("append %d: %v", i, err)
		}
		wantRecords(t, s, fmt.Sprintf("x%d", i), want)
	}
}

// TestGroupPanic: a mistake in one write is that write's error; the others are stored and the store goes on.
func TestGroupPanic(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	var calls []func() error
	for i, x := range begun(t, s, 5) {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
		if i == 0 || i == 2 {
			calls = append(calls, func() error { return s.Panics(t.Context()) })
		}
	}
	for i, err := range together(s, calls...) {
		if mistake := i == 1 || i == 4; mistake != errors.Is(err, problem.Internal) || !mistake && err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	for i := range 5 {
		wantRecords(t, s, fmt.Sprintf("x%d", i), 11)
	}
}

// TestGroupCommitPanics: a mistake below the store, at the end of a transaction, is the error of those who share it. The
// store goes on, whoever led.
func TestGroupCommitPanics(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	var calls []func() error
	for _, x := range begun(t, s, 6) {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
	}
	answers := make([]chan error, len(calls))
	begin := func(i int) {
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- calls[i]() }()
	}
	want := func(i int, mistaken bool) {
		t.Helper()
		if err := <-answers[i]; mistaken != errors.Is(err, problem.Internal) || !mistaken && err != nil {
			t.Errorf("append %d: %v", i, err)
		}
	}
	onCommit(t, s, func() int32 { panic("a mistake in commit") })
	begin(0)
	want(0, true)
	commits, committing := 0, make(chan struct{})
	onCommit(t, s, func() int32 { // of the connection that has come in the other's place
		if commits++; commits > 1 {
			panic("a mistake in commit")
		}
		close(committing)
		untilQueued(s, 2) // nobody of those leads
		return 0
	})
	begin(1)
	<-committing
	begin(2)
	begin(3)
	want(1, false)
	want(2, true)
	want(3, true)
	begin(4)
	want(4, false)
	for i, records := range []int{5, 11, 5, 5, 11, 5} {
		wantRecords(t, s, fmt.Sprintf("x%d", i), records)
	}
}

// TestGroupAllLeave: when everybody has left who waited for another process's lock, nobody goes on waiting for it.
func TestGroupAllLeave(t *testing.T) {
	t.Parallel()
	s, traces, other := locked(t, 2)
	defer other.exec("ROLLBACK")
	ends := make([]context.CancelFunc, len(traces))
	answers := make([]chan error, len(traces))
	for i, x := range traces {
		ctx, cancel := context.WithCancel(t.Context())
		b := x.Batch(historytest.Node("begin", "t")...)
		ends[i], answers[i] = cancel, make(chan error, 1)
		go func() { answers[i] <- s.Append(ctx, b) }()
		untilQueued(s, i+1)
	}
	for i, end := range ends {
		end()
		if err := <-answers[i]; !errors.Is(err, context.Canceled) {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if err := s.Close(); err != nil { // it needs the turn
		t.Error(err)
	}
}

// TestGroupCancelledWaiter: who leaves while waiting is not appended; the others are.
func TestGroupCancelledWaiter(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	traces := begun(t, s, 4)
	why := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	release := s.Hold()
	errs := make([]error, len(traces))
	var wg sync.WaitGroup
	left := make(chan struct{})
	for i, x := range traces {
		b := x.Batch(historytest.Node("begin", "t")...)
		wg.Go(func() {
			if i != 1 {
				errs[i] = s.Append(t.Context(), b)
				return
			}
			errs[i] = s.Append(ctx, b)
			close(left)
		})
		untilQueued(s, i+1)
	}
	cancel(why)
	<-left
	release()
	wg.Wait()
	for i, err := range errs {
		want := 11
		if i == 1 {
			want = 5
			if !errors.Is(err, why) || !errors.Is(err, problem.Internal) {
				t.Errorf("the cancelled one: %v", err)
			}
		} else if err != nil {
			t.Errorf("append %d: %v", i, err)
		}
		wantRecords(t, s, fmt.Sprintf("x%d", i), want)
	}
}

// TestGroupLeaderLeaves: a leader that gives up waiting for another process's lock takes nobody with it.
func TestGroupLeaderLeaves(t *testing.T) {
	t.Parallel()
	s, traces, other := locked(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	leader := traces[0].Batch(historytest.Node("begin", "t")...)
	led := make(chan error, 1)
	go func() { led <- s.Append(ctx, leader) }()
	untilQueued(s, 1)
	answers := make(chan error, 2)
	for i, x := range traces[1:] {
		b := x.Batch(historytest.Node("begin", "t")...)
		go func() { answers <- s.Append(t.Context(), b) }()
		untilQueued(s, i+2)
	}
	cancel()
	if err := <-led; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader: %v", err)
	}
	other.exec("COMMIT")
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("an append behind it: %v", err)
		}
	}
	for i, want := range []int{5, 11, 11} {
		wantRecords(t, s, fmt.Sprintf("x%d", i), want)
	}
}

// TestGroupClose: whoever is waiting when the store closes is appended or told that it was closed.
func TestGroupClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	s := openFile(t, path, historysql.Options{})
	traces := begun(t, s, 6)
	closed := make(chan error, 1)
	var calls []func() error
	for i, x := range traces {
		b := x.Batch(historytest.Node("begin", "t")...)
		calls = append(calls, func() error { return s.Append(t.Context(), b) })
		if i == 2 {
			go func() { closed <- s.Close() }()
		}
	}
	errs := together(s, calls...)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	again := openFile(t, path, historysql.Options{})
	for i, err := range errs {
		want := 11
		if err != nil {
			want = 5
			if e, ok := problem.As(err); !ok || !strings.Contains(e.Message, "closed") {
				t.Errorf("append %d: %v", i, err)
			}
		}
		wantRecords(t, again, fmt.Sprintf("x%d", i), want)
	}
	if err := s.Append(t.Context(), traces[0].Batch("C ScheduleNode z")); !errors.Is(err, problem.Internal) {
		t.Errorf("after the end: %v", err)
	}
}

// TestGroupStress: many writers, conflicts and cancelled calls at once; what was acknowledged is there once, what was
// refused is not.
func TestGroupStress(t *testing.T) {
	t.Parallel()
	s := openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{})
	var wg sync.WaitGroup
	for w := range 12 {
		id := fmt.Sprintf("x%d", w)
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			x := historytest.NewTrace(t, id)
			x.Append(s, historytest.Start("w", "host_mediated")...)
			for range 25 {
				ctx, cancel := context.WithCancel(t.Context())
				before := x.Execution
				b := x.Batch("C ScheduleNode a", "E NodeScheduled a")
				want := problem.Code("")
				switch random.IntN(4) {
				case 0: // one behind
					b.ExpectedSeq--
					b.Execution.Seq--
					want = problem.HistoryConflict
				case 1:
					go cancel()
				}
				err := s.Append(ctx, b)
				cancel()
				switch {
				case err == nil && want == "":
					continue
				case want != "" && errors.Is(err, want), want == "" && errors.Is(err, context.Canceled):
					x.Execution = before
				default:
					t.Errorf("%s: %v, want %q", id, err, want)
					return
				}
			}
			wantRecords(t, s, id, int(x.Execution.Seq))
		})
	}
	wg.Wait()
}

// TestGroupsOfSeveralStores: groups of several handles of one file, as of several processes, with many who want the
// same run.
func TestGroupsOfSeveralStores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	historytest.Contend(t, 9, 4,
		openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}), openFile(t, path, historysql.Options{}))
}
