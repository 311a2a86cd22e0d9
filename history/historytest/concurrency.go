package historytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// oneAppenderWins lets several writers append to one run until each has succeeded a number of times. A writer that gets a conflict
// reads the run again.
func oneAppenderWins(t *testing.T, s history.Store) { Contend(t, 4, 10, s) }

// Contend lets writers append to one run concurrently until each has done so rounds times. The writers are spread over the stores. It
// then checks that nothing was lost or interleaved.
func Contend(t *testing.T, writers, rounds int, stores ...history.Store) {
	ctx := t.Context()
	const id = "contended"
	var wg sync.WaitGroup
	for w := range writers {
		s := stores[w%len(stores)]
		wg.Go(func() {
			for round := range rounds {
				for {
					err := appendOnce(t, s, id, fmt.Sprintf("w%d.%d", w, round))
					if err == nil {
						break
					}
					if !errors.Is(err, problem.HistoryConflict) {
						t.Errorf("writer %d: %v", w, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	next := make([]int, writers)
	rs, err := stores[0].Read(ctx, id, 1, 0)
	must(t, err)
	if len(rs) != 2*writers*rounds {
		t.Fatalf("got %d records, want %d", len(rs), 2*writers*rounds)
	}
	for i := 0; i < len(rs); i += 2 {
		if a, b := rs[i].Payload.NodeID, rs[i+1].Payload.NodeID; a != b || rs[i].Name != history.ScheduleNode {
			t.Fatalf("records %d and %d are torn apart: %s, %s", i+1, i+2, a, b)
		}
		var w, round int
		if _, err := fmt.Sscanf(rs[i].Payload.NodeID, "w%d.%d", &w, &round); err != nil || round != next[w] {
			t.Fatalf("record %d is %s, want round %d", i+1, rs[i].Payload.NodeID, next[w])
		}
		next[w]++
	}
	for _, s := range stores {
		checkProjection(t, s, id)
	}
}

// appendOnce appends two records after the run's last one.
func appendOnce(t testing.TB, s history.Store, id, node string) error {
	e, err := s.Execution(t.Context(), id)
	if errors.Is(err, problem.ExecutionNotFound) {
		e, err = history.Execution{ID: id}, nil
	}
	if err != nil {
		return err
	}
	x := Trace{t: t, Execution: e, Now: Begin.Add(time.Duration(e.Seq) * time.Millisecond)}
	return s.Append(t.Context(), x.Batch("C ScheduleNode "+node, "E NodeScheduled "+node))
}

func oneClaimerWins(t *testing.T, s history.Store, _ *clock) { ContendForRuns(t, 4, 25, s) }

// ContendForRuns lets processes claim the same runs concurrently, spread over the stores, and checks that each run has exactly one
// owner, the same in every store.
func ContendForRuns(t *testing.T, processes, runs int, stores ...history.Store) {
	ctx := t.Context()
	var ids []string
	for i := range runs {
		ids = append(ids, fmt.Sprintf("claimed%d", i))
		NewTrace(t, ids[i]).Append(stores[0], Start("w", "in_process")...)
	}
	claimed := make([][]string, processes)
	var wg sync.WaitGroup
	for p := range processes {
		s, process := stores[p%len(stores)], fmt.Sprintf("p%d", p)
		mine := append(slices.Clone(ids[p*runs/processes:]), ids[:p*runs/processes]...) // each begins elsewhere
		wg.Go(func() {
			if err := s.Renew(ctx, process, time.Hour); err != nil {
				t.Error(err)
			}
			for few := range slices.Chunk(mine, 3) {
				got, err := s.Claim(ctx, process, few...)
				if err != nil {
					t.Error(err)
				}
				claimed[p] = append(claimed[p], got...)
			}
		})
	}
	wg.Wait()
	owner := map[string]string{}
	for p := range claimed {
		for _, id := range claimed[p] {
			if other := owner[id]; other != "" {
				t.Errorf("%s went to %s and p%d", id, other, p)
			}
			owner[id] = fmt.Sprintf("p%d", p)
		}
	}
	for i, id := range ids {
		o := got[history.Owner](t)(stores[i%len(stores)].Owner(ctx, id))
		if o.Process != owner[id] || !o.Live() {
			t.Errorf("%s went to %q, and %+v owns it", id, owner[id], o)
		}
	}
}

func appendsToManyRuns(t *testing.T, s history.Store) {
	const runs, rounds = 8, 5
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			id := fmt.Sprintf("run%d", i)
			for round := range rounds {
				if err := appendOnce(t, s, id, fmt.Sprintf("n%d", round)); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				if _, err := s.List(t.Context(), history.ListQuery{Limit: 3}); err != nil {
					t.Errorf("list: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := range runs {
		if rs := read(t, s, fmt.Sprintf("run%d", i)); len(rs) != 2*rounds {
			t.Errorf("run %d has %d records", i, len(rs))
		}
	}
}

// calls returns one call of each method of a store, for a run "x" whose next batch is next.
func calls(s history.Store, next history.Batch) map[string]func(ctx context.Context) error {
	all := map[string]func(ctx context.Context) error{
		"Append":           func(ctx context.Context) error { return s.Append(ctx, next) },
		"Read":             func(ctx context.Context) error { _, err := s.Read(ctx, "x", 1, 0); return err },
		"Execution":        func(ctx context.Context) error { _, err := s.Execution(ctx, "x"); return err },
		"Position":         func(ctx context.Context) error { _, _, err := s.Position(ctx, "x"); return err },
		"List":             func(ctx context.Context) error { _, err := s.List(ctx, history.ListQuery{}); return err },
		"Definition":       func(ctx context.Context) error { _, err := s.Definition(ctx, "h"); return err },
		"DefinitionByName": func(ctx context.Context) error { _, err := s.DefinitionByName(ctx, "w", ""); return err },
		"PutDefinition":    func(ctx context.Context) error { return s.PutDefinition(ctx, history.StoredDefinition{Hash: "h"}) },
		"DueTimers":        func(ctx context.Context) error { _, err := s.DueTimers(ctx, Begin, 1); return err },
		"Now":              func(ctx context.Context) error { _, err := s.Now(ctx); return err },
		"Renew":            func(ctx context.Context) error { return s.Renew(ctx, "p", time.Hour) },
		"Release":          func(ctx context.Context) error { return s.Release(ctx, "p") },
		"Claim":            func(ctx context.Context) error { _, err := s.Claim(ctx, "p", "x"); return err },
		"Disown":           func(ctx context.Context) error { return s.Disown(ctx, "p", "x") },
		"Owner":            func(ctx context.Context) error { _, err := s.Owner(ctx, "x"); return err },
		"Owned":            func(ctx context.Context) error { _, err := s.Owned(ctx, "p"); return err },
		"Tree":             func(ctx context.Context) error { _, err := s.Tree(ctx, "r"); return err },
		"Overview":         func(ctx context.Context) error { _, err := s.Overview(ctx, "p"); return err },
		"Unowned":          func(ctx context.Context) error { _, err := s.Unowned(ctx, 1); return err },
	}
	if q, ok := history.As[history.Queue](s); ok {
		all["ClaimReady"] = func(ctx context.Context) error {
			_, err := q.ClaimReady(ctx, history.ReadyClaim{Process: "p", Serves: anyLane, Limit: 1})
			return err
		}
		all["Offer"] = func(ctx context.Context) error {
			return q.Offer(ctx, "p", history.Offer{ExecutionID: "x", Ready: ready("default/step:a", 0, "")})
		}
		all["Lanes"] = func(ctx context.Context) error { _, err := q.Lanes(ctx); return err }
		all["Place"] = func(ctx context.Context) error { _, _, err := q.Place(ctx, "x"); return err }
	}
	if r, ok := history.As[history.Roster](s); ok {
		all["Processes"] = func(ctx context.Context) error { _, err := r.Processes(ctx); return err }
		all["Describe"] = func(ctx context.Context) error { return r.Describe(ctx, "p", history.About{}) }
	}
	if l, ok := history.As[history.Limiter](s); ok {
		all["SetLimits"] = func(ctx context.Context) error {
			return l.SetLimits(ctx, history.SharedLimit{Class: "c", Concurrent: 1})
		}
		all["SharedLimits"] = func(ctx context.Context) error { _, err := l.SharedLimits(ctx); return err }
		all["Grant"] = func(ctx context.Context) error {
			_, err := l.Grant(ctx, "p", history.Want{Class: "c", Slots: 1})
			return err
		}
	}
	return all
}

// cancelledContexts: a call whose context has ended does nothing and returns the cause, and the store keeps working.
func cancelledContexts(t *testing.T, s history.Store) {
	why := errors.New("the caller has left")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	x := NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	next := x.Batch("C ScheduleNode a")
	for name, call := range calls(s, next) {
		err := call(ctx)
		if !errors.Is(err, problem.Internal) || !errors.Is(err, why) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	must(t, s.Append(t.Context(), next))
	if rs := read(t, s, "x"); len(rs) != 2 {
		t.Errorf("the run has %d records", len(rs))
	}
}

func closedStore(t *testing.T, s history.Store) {
	x := NewTrace(t, "x")
	x.Append(s, "E ExecutionStarted")
	must(t, s.Close())
	for name, call := range calls(s, x.Batch("C ScheduleNode a")) {
		if err := call(t.Context()); !errors.Is(err, problem.Internal) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	must(t, s.Close())
}
