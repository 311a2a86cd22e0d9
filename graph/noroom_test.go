package graph_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestNoRoomForRunsOfOthers: a process without room leaves the runs of one that has died, and takes them over once there is room. What it
// is asked to do itself is not held up.
func TestNoRoomForRunsOfOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		dying := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": hang}}})
		if _, err := dying.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: linear(t, "lin", "a"), Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		closeRunner(t, dying)

		var room atomic.Bool
		r := newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll, Admit: func() error {
			if room.Load() {
				return nil
			}
			return errors.New("no room")
		}})
		wantStatus(t, start(t, r, "own", linear(t, "lin", "a"), nil), machine.Completed)
		time.Sleep(5 * time.Minute)
		wantStatus(t, status(t, r, "r"), machine.Running)
		room.Store(true)
		time.Sleep(time.Minute)
		wantStatus(t, status(t, r, "r"), machine.Completed)
	})
}
