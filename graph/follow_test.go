package graph_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// unwatched is a store that does not report the writes of other processes.
type unwatched struct{ history.Store }

// watchedStore counts watches. The watches fail after fail is closed.
type watchedStore struct {
	history.Store
	watcher history.Watcher
	watches atomic.Int64
	fail    chan struct{}
}

func watchedMemory() *watchedStore {
	m := historymem.New()
	return &watchedStore{Store: m, watcher: m, fail: make(chan struct{})}
}

func (s *watchedStore) Watch(ctx context.Context, changed func(executionID string, seq int64)) error {
	s.watches.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-s.fail:
			cancel(errors.New("the watch failed"))
		case <-ctx.Done():
		}
	}()
	err := s.watcher.Watch(ctx, changed)
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// following is a call of Follow.
type following struct {
	mu   sync.Mutex
	seqs map[string]int64
	end  context.CancelFunc
	// ended receives the result.
	ended chan error
}

func follow(t *testing.T, r *graph.Runner) *following {
	t.Helper()
	f := &following{seqs: map[string]int64{}, ended: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	f.end = cancel
	follower, err := graph.Need[graph.Follower](r, "Follow")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		f.ended <- follower.Follow(ctx, func(id string, seq int64) {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.seqs[id] = seq
		})
	}()
	synctest.Wait()
	return f
}

// wants compares the newest reported seq of a run.
func (f *following) wants(t *testing.T, id string, seq int64) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seqs[id] != seq {
		t.Errorf("run %q was reported at %d, it is at %d", id, f.seqs[id], seq)
	}
}

// ends ends the call and compares its result.
func (f *following) ends(t *testing.T, code problem.Code) {
	t.Helper()
	f.end()
	if err := <-f.ended; code == "" && err != nil || code != "" && !errors.Is(err, code) {
		t.Errorf("Follow returned %v, want %q", err, code)
	}
}

// TestFollow: every follower gets the changes of this process at once, and those of others from the one watch of the store.
func TestFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := watchedMemory()
		own, other := newRunner(t, store, graph.Options{}), newRunner(t, store, graph.Options{})
		a, b := follow(t, own), follow(t, own)
		question := workflow(t, "w", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e")
		began := time.Now()
		for _, r := range []*graph.Runner{own, other} {
			id := map[*graph.Runner]string{own: "own", other: "other"}[r]
			run := start(t, r, id, question, nil)
			a.wants(t, id, run.Seq)
			b.wants(t, id, run.Seq)
			resumed, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, Payload: object{"ok": true}})
			if err != nil {
				t.Fatal(err)
			}
			a.wants(t, id, resumed.Seq)
			b.wants(t, id, resumed.Seq)
		}
		if time.Since(began) != 0 || store.watches.Load() != 1 {
			t.Errorf("after %v, with %d watches", time.Since(began), store.watches.Load())
		}
		a.ends(t, "")
		last := start(t, other, "last", question, nil)
		a.wants(t, "last", 0)
		b.wants(t, "last", last.Seq)
		again := follow(t, own)
		if store.watches.Load() != 1 {
			t.Errorf("%d watches", store.watches.Load())
		}
		again.ends(t, "")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := own.Follow(ended, func(string, int64) { t.Error("reported") }); err != nil {
			t.Errorf("with an ended context: %v", err)
		}
		if err := own.Close(); err != nil {
			t.Error(err)
		}
		b.ends(t, problem.RunnerClosed)
		if err := own.Follow(t.Context(), func(string, int64) {}); !errors.Is(err, problem.RunnerClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestFollowWithoutAWatch: a store that is not watched, or not any more, is listed once a second.
func TestFollowWithoutAWatch(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]bool{"no watcher": false, "failed watch": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				watched := watchedMemory()
				store := history.Store(unwatched{watched.Store})
				if broken {
					store = watched
				}
				own, other := newRunner(t, store, graph.Options{}), newRunner(t, watched.Store, graph.Options{})
				question := workflow(t, "w", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e")
				start(t, other, "old", question, nil)
				time.Sleep(time.Minute)
				f := follow(t, own)
				if broken {
					close(watched.fail)
					synctest.Wait()
				}
				f.wants(t, "old", 0)
				f.wants(t, "own", 0)
				f.wants(t, "own", start(t, own, "own", question, nil).Seq) // at once
				for i := range 250 {                                       // more than two pages
					start(t, other, string(rune('ā'+i)), question, nil)
				}
				run := start(t, other, "a", question, nil)
				time.Sleep(time.Second)
				f.wants(t, "a", run.Seq)
				f.wants(t, string(rune('ā'+249)), run.Seq)
				resumed, err := other.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "a", Payload: object{"ok": true}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				f.wants(t, "a", resumed.Seq)
				f.wants(t, "old", 0)
				f.ends(t, "")
			})
		})
	}
}

// TestFollowOfAStoreThatIsGone ends with the store's error: the caller would not hear of changes. A lock passes.
func TestFollowOfAStoreThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &unlistedStore{watchedStore: watchedMemory()}
		own, other := newRunner(t, store, graph.Options{}), newRunner(t, store.Store, graph.Options{})
		f := follow(t, own)
		locked, gone := error(problem.New(problem.StoreLocked, "locked")), error(problem.New(problem.StoreReplaced, "gone"))
		store.err.Store(&locked)
		close(store.fail)
		time.Sleep(3 * time.Second)
		store.err.Store(nil)
		run := start(t, other, "a", workflow(t, "w", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e"), nil)
		time.Sleep(time.Second)
		f.wants(t, "a", run.Seq)
		store.err.Store(&gone)
		for range 2 { // again, until the store is there again
			time.Sleep(time.Second)
			synctest.Wait()
			select {
			case err := <-f.ended:
				if !errors.Is(err, problem.StoreReplaced) {
					t.Errorf("ended with %v", err)
				}
			default:
				t.Fatal("it goes on")
			}
			f.end()
			f = follow(t, own)
		}
		<-f.ended
		store.err.Store(nil)
		f = follow(t, own)
		f.wants(t, "a", run.Seq)
		f.ends(t, "")
	})
}

// unlistedStore is a store whose lists fail with err, unless it is nil.
type unlistedStore struct {
	*watchedStore
	err atomic.Pointer[error]
}

func (s *unlistedStore) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := s.err.Load(); err != nil {
		return history.ListPage{}, *err
	}
	return s.watchedStore.List(ctx, q)
}

// TestASlowFollower: it gets the newest seq of a run once, and delays no commit.
func TestASlowFollower(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRunner(t, historymem.New(), graph.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var calls []int64
		ended := make(chan error, 1)
		go func() {
			ended <- r.Follow(ctx, func(_ string, seq int64) {
				calls = append(calls, seq)
				time.Sleep(time.Hour)
			})
		}()
		synctest.Wait()
		w := workflow(t, "w", []string{startNode(), signalWait("one", "go"), signalWait("two", "go"), interrupt("q"), endNode()}, "s one", "one two", "two q", "q e")
		began := time.Now()
		run := start(t, r, "x", w, nil)
		first := run.Seq
		synctest.Wait() // the first call has begun
		for range 2 {
			var err error
			if run, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "x", Name: "go"}); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) != 0 {
			t.Errorf("the calls took %v", time.Since(began))
		}
		time.Sleep(3 * time.Hour)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(calls) != 2 || calls[0] > first || calls[1] != run.Seq {
			t.Errorf("reported %v; the run was at %d, then at %d", calls, first, run.Seq)
		}
	})
}

// TestPeekAndCount: a row is that of a list, and a count that of all pages, up to its bound.
func TestPeekAndCount(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	ctx := t.Context()
	question := workflow(t, "w", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e")
	for _, id := range []string{"a", "b", "c"} {
		start(t, r, id, question, nil)
	}
	if _, err := r.Cancel(ctx, graph.CancelRequest{ExecutionID: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(ctx, graph.HandleRequest{ExecutionID: "b", Note: "done by hand"}); err != nil {
		t.Fatal(err)
	}
	e, err := r.Peek(ctx, "b")
	if err != nil || e.Phase != history.PhaseCancelled || e.Lineage.Handled == nil || e.Lineage.Handled.Note != "done by hand" {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := r.Peek(ctx, "none"); !errors.Is(err, problem.ExecutionNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
	for _, c := range []struct {
		q    history.ListQuery
		most int
		want int
	}{
		{history.ListQuery{}, 10, 3},
		{history.ListQuery{}, 2, 2},
		{history.ListQuery{Limit: 1000, Cursor: "ignored"}, 3, 3},
		{history.ListQuery{Phase: history.PhaseInterrupted}, 1000, 2},
		{history.ListQuery{Unhandled: true}, 1000, 2},
	} {
		if n, err := r.Count(ctx, c.q, c.most); n != c.want || err != nil {
			t.Errorf("%+v, at most %d: %d, %v, want %d", c.q, c.most, n, err, c.want)
		}
	}
	if _, err := r.Count(ctx, history.ListQuery{Phase: "bogus"}, 1); !errors.Is(err, problem.ValidationError) {
		t.Errorf("an unknown phase: %v", err)
	}
	page, err := r.List(ctx, history.ListQuery{Oldest: true, Limit: 1, Phase: history.PhaseInterrupted})
	if err != nil || len(page.Executions) != 1 || page.Executions[0].ID != "a" || page.NextCursor == "" {
		t.Errorf("got %+v, %v", page, err)
	}
}

// TestDefinitionsOfTheStore: stored definitions are listed, and read whether this process trusts them or not.
func TestDefinitionsOfTheStore(t *testing.T) {
	t.Parallel()
	r, store := host(t, graph.Options{})
	ctx := t.Context()
	one := workflow(t, "one", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e")
	two := workflow(t, "two", []string{startNode(), interrupt("q"), endNode()}, "s q", "q e")
	start(t, r, "a", one, nil)
	start(t, r, "b", two, nil)
	page, err := r.Definitions(ctx, "", 1)
	if err != nil || len(page.Definitions) != 1 || page.Definitions[0].Name != "two" || page.Definitions[0].Hash != two.Hash() || page.Definitions[0].StoredAt.IsZero() {
		t.Errorf("got %+v, %v", page, err)
	}
	next, err := r.Definitions(ctx, page.NextCursor, 0)
	if err != nil || len(next.Definitions) != 1 || next.Definitions[0].Hash != one.Hash() || next.NextCursor != "" {
		t.Errorf("got %+v, %v", next, err)
	}
	suspicious := newRunner(t, store, graph.Options{VerifyDefinition: func(*definition.Document) error { return errors.New("not trusted") }})
	d, err := suspicious.Definition(ctx, one.Hash())
	if err != nil || d.Hash() != one.Hash() || string(d.Canonical()) != string(one.Canonical()) {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := r.Definition(ctx, "none"); !errors.Is(err, problem.DefinitionNotFound) {
		t.Errorf("an unknown hash: %v", err)
	}
	if err := store.PutDefinition(ctx, history.StoredDefinition{Hash: "forged", Name: "one", Version: "1", Text: []byte(`{"a":1}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Definition(ctx, "forged"); !errors.Is(err, problem.HistoryCorrupt) {
		t.Errorf("an altered text: %v", err)
	}
}
