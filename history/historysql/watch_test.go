package historysql_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestWatchingAnotherProcess: a watch hears of what another store appends, also after the newest rows were deleted.
func TestWatchingAnotherProcess(t *testing.T) {
	t.Parallel()
	for _, follow := range []bool{false, true} {
		t.Run(fmt.Sprintf("follow=%t", follow), func(t *testing.T) {
			t.Parallel()
			watchAnotherProcess(t, historysql.Options{FollowWrites: follow})
		})
	}
}

func watchAnotherProcess(t *testing.T, o historysql.Options) {
	path := filepath.Join(t.TempDir(), "runs.db")
	here, there := openFile(t, path, o), openFile(t, path, historysql.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	heard := make(chan string, 1000)
	ended := make(chan error, 1)
	go func() {
		ended <- here.Watch(ctx, func(id string, seq int64) {
			select {
			case heard <- fmt.Sprint(id, seq):
			default:
			}
		})
	}()
	x := historytest.NewTrace(t, "x")
	// hear waits for the news of the last record. A watch that has only begun may have missed it, and hears of one of the next.
	hear := func() {
		t.Helper()
		from, deadline := x.Execution.Seq, time.After(time.Minute)
		for {
			select {
			case got := <-heard:
				for seq := from; seq <= x.Execution.Seq; seq++ {
					if got == fmt.Sprint("x", seq) {
						return
					}
				}
			case <-time.After(300 * time.Millisecond):
				x.Append(there, "C ScheduleNode a")
			case <-deadline:
				t.Fatal("nobody was told of x")
			}
		}
	}
	x.Append(there, "E ExecutionStarted")
	hear()
	historytest.NewTrace(t, "gone").Append(there, append(historytest.Start("w", "in_process"), historytest.End()...)...)
	page, err := there.Prune(ctx, history.PruneQuery{Phases: []history.Phase{history.PhaseCompleted}, Limit: 10})
	if err != nil || len(page.Trees) != 1 {
		t.Fatalf("pruned %v, %v", page.Trees, err)
	}
	time.Sleep(100 * time.Millisecond)
	x.Append(there, "C ScheduleNode b")
	hear()
	if err := there.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	x.Append(there, "C ScheduleNode c")
	hear()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// BenchmarkWatch measures a look of a watch at a file that has not changed, and at one with a node of six records more.
func BenchmarkWatch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	s := openFile(b, path, historysql.Options{Synchronous: historysql.Normal})
	x := historytest.NewTrace(b, "x")
	x.Append(s, historytest.Start("w", "in_process")...)
	look, end, err := s.Look(func(string, int64) {})
	if err != nil {
		b.Fatal(err)
	}
	defer end()
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			if err := look(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			x.Append(s, historytest.Node("a", "b")...)
			b.StartTimer()
			if err := look(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
