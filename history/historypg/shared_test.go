package historypg_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// several opens one store in several processes, as far as the server can tell.
func several(t *testing.T, n int) (stores []history.Store, schema string) {
	t.Helper()
	schema = emptySchema(t)
	for range n {
		stores = append(stores, openWith(t, historypg.Options{Schema: schema}))
	}
	return stores, schema
}

func TestProcessesShareAStore(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(t *testing.T, stores []history.Store){
		"one run":     func(t *testing.T, stores []history.Store) { historytest.Contend(t, 9, 8, stores...) },
		"claims":      func(t *testing.T, stores []history.Store) { historytest.ContendForRuns(t, 8, 40, stores...) },
		"ready runs":  func(t *testing.T, stores []history.Store) { historytest.ContendForReady(t, 8, 60, stores...) },
		"a ready run": func(t *testing.T, stores []history.Store) { historytest.WatchReady(t, stores[0], stores[1]) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores, _ := several(t, 4)
			test(t, stores)
		})
	}
}

// TestClaimsAndCancelsDoNotWaitForEachOther: a claim that locks the place of a run and then the run would wait for a cancel that has the run and wants
// the place, for ever.
func TestClaimsAndCancelsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	const runs, claimers = 150, 3
	server := pgtest.Shared(t)
	stores, _ := several(t, claimers+1)
	ctx := t.Context()
	var ids []string
	for i := range runs {
		id := fmt.Sprintf("r%03d", i)
		x := historytest.NewTrace(t, id)
		b := x.Batch(historytest.Start("w", "in_process")...)
		b.Ready = &history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:a"}, Tenant: "t"}
		if err := stores[0].Append(ctx, b); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	before := deadlocks(t, server)
	var wg sync.WaitGroup
	claimed := make([]map[string]bool, claimers)
	for i := range claimers {
		q := stores[i+1].(history.Queue)
		process := fmt.Sprint("p", i)
		claimed[i] = map[string]bool{}
		if err := q.Renew(ctx, process, time.Hour); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for {
				got, err := q.ClaimReady(ctx, history.ReadyClaim{Process: process, Serves: func(history.Lane) bool { return true }, Limit: 5, Oldest: i == 0})
				if err != nil {
					t.Error(err)
				}
				for _, id := range got {
					claimed[i][id] = true
				}
				lanes, err := q.Lanes(ctx)
				if err != nil || len(lanes) == 0 {
					return
				}
			}
		})
	}
	wg.Go(func() {
		for _, id := range ids {
			e, err := stores[0].Execution(ctx, id)
			if err != nil {
				t.Error(err)
				return
			}
			x := historytest.NewTrace(t, id)
			x.Execution = e
			if err := stores[0].Append(ctx, x.Batch("C CancelExecution", "E ExecutionCancelled")); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if n := deadlocks(t, server) - before; n > 0 {
		t.Errorf("%d deadlocks", n)
	}
	for i, of := range claimed {
		for id := range of {
			for _, other := range claimed[i+1:] {
				if other[id] {
					t.Errorf("%s was claimed twice", id)
				}
			}
		}
	}
	for _, id := range ids {
		if e, err := stores[0].Execution(ctx, id); err != nil || e.Phase != history.PhaseCancelled {
			t.Errorf("%s is %s, %v", id, e.Phase, err)
		}
		if o, err := stores[0].Owner(ctx, id); err != nil || o != (history.Owner{}) {
			t.Errorf("%s is owned by %+v, %v", id, o, err)
		}
	}
}

// query returns the only value of a query.
func query[T any](t *testing.T, server *pgtest.Server, text string, args ...any) (v T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	c, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if err := c.QueryRow(ctx, text, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// deadlocks returns how many the server has found.
func deadlocks(t *testing.T, server *pgtest.Server) int64 {
	t.Helper()
	return query[int64](t, server, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
}

// TestAClaimSkipsWhatOthersLock: a claim takes the runs behind those that other transactions hold, and waits for none.
func TestAClaimSkipsWhatOthersLock(t *testing.T) {
	t.Parallel()
	stores, schema := several(t, 1)
	ctx, q := t.Context(), stores[0].(history.Queue)
	for _, id := range []string{"a", "b", "c", "d"} {
		b := historytest.NewTrace(t, id).Batch(historytest.Start("w", "in_process")...)
		b.Ready = &history.Ready{Lane: history.Lane{Queue: "default", Needs: "step:a"}, Tenant: "t"}
		if err := q.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Renew(ctx, "p", time.Hour); err != nil {
		t.Fatal(err)
	}
	c, err := pgx.Connect(ctx, pgtest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }()
	tx, err := c.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"SELECT 1 FROM " + schema + ".runs WHERE execution_id = 'a' FOR UPDATE",
		"SELECT 1 FROM " + schema + ".ready JOIN " + schema + ".runs USING (run) WHERE execution_id = 'b' FOR UPDATE OF ready",
	} {
		if _, err := tx.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	claim := history.ReadyClaim{Process: "p", Serves: func(history.Lane) bool { return true }, Limit: 2}
	if ids, err := q.ClaimReady(ctx, claim); err != nil || fmt.Sprint(ids) != "[c d]" {
		t.Errorf("claimed %v, %v", ids, err)
	}
	if ids, err := q.ClaimReady(ctx, claim); err != nil || len(ids) != 0 {
		t.Errorf("claimed %v, %v", ids, err)
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if ids, err := q.ClaimReady(ctx, claim); err != nil || fmt.Sprint(ids) != "[a b]" {
		t.Errorf("claimed %v, %v", ids, err)
	}
}

// TestALeftoverPlaceIsDropped: a row of ready whose run has an owner, has ended or does not exist is nobody's, and goes with the next claim.
func TestALeftoverPlaceIsDropped(t *testing.T) {
	t.Parallel()
	stores, schema := several(t, 1)
	ctx, q := t.Context(), stores[0].(history.Queue)
	if err := q.Renew(ctx, "p", time.Hour); err != nil {
		t.Fatal(err)
	}
	b := historytest.NewTrace(t, "owned").Batch(historytest.Start("w", "in_process")...)
	b.Owner = "p"
	if err := q.Append(ctx, b); err != nil {
		t.Fatal(err)
	}
	pgtest.Shared(t).Exec(t, fmt.Sprintf(`INSERT INTO %[1]s.ready SELECT run, 'default/step:a', 0, 0, '', 0 FROM %[1]s.runs;
INSERT INTO %[1]s.ready VALUES (-5, 'default/step:a', 0, 0, '', 0)`, schema))
	if lanes, err := q.Lanes(ctx); err != nil || len(lanes) != 1 {
		t.Fatal(lanes, err)
	}
	if ids, err := q.ClaimReady(ctx, history.ReadyClaim{Process: "q", Serves: func(history.Lane) bool { return true }, Limit: 2}); err != nil || len(ids) != 0 {
		t.Errorf("claimed %v, %v", ids, err)
	}
	if lanes, err := q.Lanes(ctx); err != nil || len(lanes) != 0 {
		t.Errorf("left: %v, %v", lanes, err)
	}
}

// TestAGroupFailsForNobodyElse: appends that share a transaction do not fail because of one of them.
func TestAGroupFailsForNobodyElse(t *testing.T) {
	t.Parallel()
	s := openWith(t, historypg.Options{Conns: 2})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			x := historytest.NewTrace(t, fmt.Sprint("r", i))
			b := x.Batch("E ExecutionStarted", "E ExecutionCompleted")
			if i%10 == 0 { // the id of a delivery is unique
				b.Deliveries = historytest.Delivers("same", "{}", historytest.Begin, "ops")
			}
			if err := s.Append(t.Context(), b); err != nil && (i%10 != 0 || !errors.Is(err, problem.Internal)) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range 60 {
		_, err := s.Execution(t.Context(), fmt.Sprint("r", i))
		if i%10 != 0 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	page, err := s.ListDeliveries(t.Context(), history.DeliveryQuery{})
	if err != nil || len(page.Deliveries) != 1 {
		t.Errorf("%d deliveries with one id, %v", len(page.Deliveries), err)
	}
}

// TestALeadOfTheTimeIsWorkedOff: the store's time goes on when the server's clock is set back, and comes back to it slowly.
func TestALeadOfTheTimeIsWorkedOff(t *testing.T) {
	t.Parallel()
	c := historytest.NewSteppedClock()
	s := openWith(t, historypg.Options{Now: c.Now})
	ctx := t.Context()
	renew := func() {
		t.Helper()
		if err := s.Renew(ctx, "p", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	ahead := func() time.Duration {
		t.Helper()
		now, err := s.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return now.Sub(c.Now())
	}
	renew()
	c.Step(-time.Minute)
	if a := ahead(); a != time.Minute {
		t.Errorf("%v ahead after the step", a)
	}
	renew()
	last, err := s.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 700 {
		c.Pass(10 * time.Second)
		if i%3 != 2 {
			continue
		}
		renew()
		now, err := s.Now(ctx)
		if passed := now.Sub(last); err != nil || passed < 29*time.Second || passed > 31*time.Second {
			t.Fatalf("in 30 s, %v pass, %v", passed, err)
		}
		last = now
	}
	if a := ahead(); a > 0 {
		t.Errorf("%v ahead after two hours", a)
	}
}

// TestTextsWithNull: U+0000 and U+0001 come back in every text, and their order is that of the bytes.
func TestTextsWithNull(t *testing.T) {
	t.Parallel()
	s := openWith(t, historypg.Options{})
	ctx := t.Context()
	ids := []string{"\x00", "\x00\x00", "\x00\x01", "\x00a", "\x01", "\x01\x00", "\x01\x01", "\x01\x02", "\x02", "a", "a\x00", "a\x00b", "a\x01", "a\x02"}
	for _, id := range ids {
		x := historytest.NewTrace(t, id)
		b := x.Batch(historytest.Start("w", "in_process")...)
		b.Owner = "p\x00q"
		b.SetTimers, b.Timers = true, []history.Timer{{Key: id, Due: historytest.Begin}}
		if err := s.Append(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	page, err := s.List(ctx, history.ListQuery{})
	if err != nil || len(page.Executions) != len(ids) {
		t.Fatal(len(page.Executions), err)
	}
	timers, err := s.DueTimers(ctx, historytest.Begin, 0)
	if err != nil || len(timers) != len(ids) {
		t.Fatal(len(timers), err)
	}
	for i, id := range ids {
		if page.Executions[i].ID != id || timers[i].ExecutionID != id || timers[i].Key != id {
			t.Errorf("at %d: %q and %+v, want %q", i, page.Executions[i].ID, timers[i], id)
		}
		if o, err := s.Owner(ctx, id); o.Process != "p\x00q" || err != nil {
			t.Errorf("%q is owned by %+v, %v", id, o, err)
		}
	}
}

// TestAReadOnlyStoreChangesNothing: all writes are refused, and reads work.
func TestAReadOnlyStoreChangesNothing(t *testing.T) {
	t.Parallel()
	schema := emptySchema(t)
	url := pgtest.Shared(t).URL()
	if _, err := historypg.Open(t.Context(), url, historypg.Options{Schema: pgtest.Schema(t), ReadOnly: true}); !errors.Is(err, problem.StoreUnavailable) {
		t.Errorf("a missing store: %v", err)
	}
	writer := openWith(t, historypg.Options{Schema: schema})
	x := historytest.NewTrace(t, "x")
	x.Append(writer, historytest.Start("w", "in_process")...)
	s := openWith(t, historypg.Options{Schema: schema, ReadOnly: true})
	ctx := t.Context()
	any := func(history.Lane) bool { return true }
	for name, call := range map[string]func() error{
		"Append":        func() error { return s.Append(ctx, x.Batch("C ScheduleNode a")) },
		"PutDefinition": func() error { return s.PutDefinition(ctx, history.StoredDefinition{Hash: "h"}) },
		"Renew":         func() error { return s.Renew(ctx, "p", time.Hour) },
		"Release":       func() error { return s.Release(ctx, "p") },
		"Claim":         func() error { _, err := s.Claim(ctx, "p", "x"); return err },
		"Disown":        func() error { return s.Disown(ctx, "p", "x") },
		"Unhandle":      func() error { return s.Unhandle(ctx, "x") },
		"ClaimReady": func() error {
			_, err := s.ClaimReady(ctx, history.ReadyClaim{Process: "p", Serves: any, Limit: 1})
			return err
		},
		"Offer":     func() error { return s.Offer(ctx, "p") },
		"Describe":  func() error { return s.Describe(ctx, "p", history.About{}) },
		"SetLimits": func() error { return s.SetLimits(ctx, history.SharedLimit{Class: "c", Concurrent: 1}) },
		"Grant":     func() error { _, err := s.Grant(ctx, "p", history.Want{Class: "c"}); return err },
		"Key":       func() error { _, err := s.Key(ctx, "new"); return err },
		"Prune":     func() error { _, err := s.Prune(ctx, history.PruneQuery{}); return err },
		"Probe":     func() error { return s.Probe(ctx) },
		"Import":    func() error { return s.Import(ctx, history.Import{}) },
		"Requeue":   func() error { return s.RequeueDelivery(ctx, "d", historytest.Begin) },
	} {
		if err := call(); !errors.Is(err, problem.StoreReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e, err := s.Execution(ctx, "x"); err != nil || e.Seq != 5 || !s.ReadOnly() {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := s.Prune(ctx, history.PruneQuery{DryRun: true}); err != nil {
		t.Error(err)
	}
}
