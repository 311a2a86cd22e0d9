package historytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// watching: a watch reports appended records.
func watching(t *testing.T, s history.Store, _ *clock) {
	watcher, ok := s.(history.Watcher)
	if !ok {
		t.Skipf("%T does not watch", s)
	}
	type change struct {
		id  string
		seq int64
	}
	changes := make(chan change, 1000)
	watch := func(ctx context.Context) chan error {
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
	var ended chan error
	hear := func(x *Trace) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		for again := time.Tick(200 * time.Millisecond); ; { // the watch begins at an unknown time
			select {
			case c := <-changes:
				if c == (change{x.Execution.ID, x.Execution.Seq}) {
					return
				}
			case <-again:
				x.Append(s, "C ScheduleNode a")
			case err := <-ended:
				if errors.Is(err, problem.Unsupported) {
					t.Skip(err)
				}
				t.Fatalf("the watch ended: %v", err)
			case <-deadline:
				t.Fatalf("no watch reported %s", x.Execution.ID)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = watch(ctx)
	x, y := NewTrace(t, "x"), NewTrace(t, "y")
	x.Append(s, "E ExecutionStarted")
	hear(x)
	y.Append(s, "E ExecutionStarted", "C ScheduleNode a")
	hear(y)
	x.Append(s, "C ScheduleNode b")
	hear(x)
	cancel()
	must(t, <-ended)
	ended = watch(t.Context())
	x.Append(s, "C ScheduleNode c")
	hear(x)
	must(t, s.Close())
	wantCode(t, <-ended, problem.Internal)
}
