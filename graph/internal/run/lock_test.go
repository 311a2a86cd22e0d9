package run_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/internal/run"
)

// TestQuestionsDoNotWaitForAComputation asks for the lock while a computation holds it.
func TestQuestionsDoNotWaitForAComputation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := run.NewLock()
		l.Lock()
		begun := time.Now()
		if l.LockWithin(run.LockGrace) || time.Since(begun) != run.LockGrace {
			t.Errorf("refused after %s", time.Since(begun))
		}
		time.AfterFunc(run.LockGrace/2, l.Unlock)
		if !l.LockWithin(run.LockGrace) {
			t.Error("refused although the lock was given back")
		}
		if l.TryLock() {
			t.Error("two holders")
		}
		l.Unlock()
	})
}

// TestWhoHurriesIsServedFirst abandons a computation for one who hurries, and not before the grace is over.
func TestWhoHurriesIsServedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := run.NewLock()
		var order []string
		l.Lock()
		_ = l.Compute(slog.New(slog.DiscardHandler), 0, func() error {
			if l.Abandon(t.Context()) {
				t.Error("abandoned for nobody")
			}
			go func() {
				l.Lock()
				order = append(order, "waited")
				l.Unlock()
			}()
			synctest.Wait()
			go func() {
				l.LockFirst()
				order = append(order, "hurried")
				l.Unlock()
			}()
			synctest.Wait()
			if l.Abandon(t.Context()) {
				t.Error("abandoned at once")
			}
			time.Sleep(2 * run.LockGrace)
			if !l.Abandon(t.Context()) {
				t.Error("not abandoned")
			}
			return nil
		})
		l.Yield()
		order = append(order, "computed")
		l.Unlock()
		if strings.Join(order, " ") != "hurried waited computed" {
			t.Error(order)
		}
	})
}

// TestTheLogTellsOfALongComputation computes for longer than anything should take.
func TestTheLogTellsOfALongComputation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		l := run.NewLock()
		for _, d := range []time.Duration{time.Second, 3 * time.Second} {
			_ = l.Compute(slog.New(slog.NewTextHandler(&log, nil)), 0, func() error { time.Sleep(d); return nil }, "run", "r")
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "a computation takes long"); n != 1 || !strings.Contains(log.String(), "run=r") {
			t.Errorf("%d lines: %s", n, log.String())
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(time.Minute)
		if !l.Abandon(ended) {
			t.Error("the end of the process abandons nothing")
		}
	})
}
