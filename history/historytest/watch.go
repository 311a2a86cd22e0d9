package historytest

import (
	"context"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// watching: a watch reports what is appended.
func watching(t *testing.T, s history.Store, _ *clock) {
	watcher, ok := s.(history.Watcher)
	if !ok {
		t.Skipf("%T does not watch", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type change struct {
		id  string
		seq int64
	}
	changes := make(chan change, 1000)
	watch := func() chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- watcher.Watch(ctx, func(id string, seq int64) {
				select {
				case changes <- change{id, seq}:
				default:
				}
			})
		}()
		return ended
	}
	ended := watch()
	x, y := NewTrace(t, "x"), NewTrace(t, "y")
	hear := func(x *Trace) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for again := time.Tick(200 * time.Millisecond); ; { // nobody knows when the watch begins
			select {
			case c := <-changes:
				if c == (change{x.Execution.ID, x.Execution.Seq}) {
					return
				}
			case <-again:
				x.Append(s, "C ScheduleNode a")
			case <-deadline:
				t.Fatalf("no watch reported %s", x.Execution.ID)
			}
		}
	}
	x.Append(s, "E ExecutionStarted")
	hear(x)
	y.Append(s, "E ExecutionStarted", "C ScheduleNode a")
	hear(y)
	x.Append(s, "C ScheduleNode b")
	hear(x)
	end := func(ended chan error) error {
		t.Helper()
		select {
		case err := <-ended:
			return err
		case <-time.After(10 * time.Second):
			t.Fatal("the watch does not end")
			return nil
		}
	}
	cancel()
	if err := end(ended); err != nil {
		t.Errorf("a watch whose context has ended: %v", err)
	}
	ctx = t.Context()
	ended = watch()
	x.Append(s, "C ScheduleNode c")
	hear(x)
	must(t, s.Close())
	wantCode(t, end(ended), problem.Internal)
}
