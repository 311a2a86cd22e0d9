package historypg_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestFailover: the primary is lost while two processes start and perform runs, and its standby is promoted. A synchronous standby has every
// run whose start was acknowledged. One that lacks the last commits has fewer runs. In both cases all runs that are stored complete,
// with one outcome for each node.
func TestFailover(t *testing.T) {
	t.Parallel()
	if testing.Short() || soak.UnderRace && !soak.On() {
		t.Skip("the servers take their time")
	}
	t.Run("synchronous", func(t *testing.T) {
		t.Parallel()
		failover(t, true)
	})
	t.Run("behind", func(t *testing.T) {
		t.Parallel()
		failover(t, false)
	})
}

func failover(t *testing.T, synchronous bool) {
	primary := pgtest.New(t)
	standby := primary.Standby(t)
	if synchronous {
		primary.Synchronize(t)
	}
	open := func() *historypg.Store {
		return enginetest.Must(historypg.Open(t.Context(), primary.Failover(standby), historypg.Options{}))
	}
	perform := activities.ExecutorFunc(func(ctx context.Context, r activities.Request) (activities.Result, error) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return activities.Result{}, context.Cause(ctx)
		}
		return activities.Result{Output: map[string]any{"at": r.IdempotencyKey}}, nil
	})
	store := open()
	front := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{Work: graph.WorkNone})))
	for range 2 {
		enginetest.Closing(t, enginetest.Must(graph.New(open(), graph.Options{Activities: perform, Work: graph.WorkAll, LeaseTTL: chaosLease})))
	}
	d := chaosDefinition()
	var acknowledged []string
	start := func(lasts time.Duration) {
		for until := time.Now().Add(lasts); time.Now().Before(until); {
			id := "r" + strconv.Itoa(len(acknowledged))
			_, err := front.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.WaitAtMost(0), AllowExisting: true})
			switch {
			case err == nil:
				acknowledged = append(acknowledged, id)
			case errors.Is(err, problem.StoreUnavailable), errors.Is(err, problem.StoreOutcomeUnknown):
				time.Sleep(20 * time.Millisecond)
			default:
				t.Fatal(err)
			}
		}
	}
	start(time.Second)
	if !synchronous { // what follows is lost
		standby.Stop(t, false)
		start(500 * time.Millisecond)
	}
	primary.Stop(t, true)
	if !synchronous {
		standby.Start(t)
	}
	standby.Promote(t)
	start(time.Second)
	deadline := time.Now().Add(time.Minute)
	stored := 0
	for { // all runs, or those that the standby has
		n, err := store.Count(t.Context(), history.ListQuery{Phase: history.PhaseCompleted}, 1<<30)
		if err == nil {
			stored, err = store.Count(t.Context(), history.ListQuery{}, 1<<30)
		}
		if err == nil && n == stored {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d runs have completed (%v)", n, stored, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("%d runs were acknowledged, %d are stored", len(acknowledged), stored)
	lost := 0
	for _, id := range acknowledged {
		if _, err := store.Execution(t.Context(), id); errors.Is(err, problem.ExecutionNotFound) {
			lost++
			continue
		}
		wantOutcomesOnce(t, front, id)
	}
	if synchronous && lost > 0 || !synchronous && lost == 0 {
		t.Errorf("%d acknowledged runs are lost", lost)
	}
}
