package graph_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// BenchmarkAttemptsInFlight measures what a process keeps for each of 10,000 runs that wait for an executor, over a file: heap and
// stacks in bytes, and goroutines.
func BenchmarkAttemptsInFlight(b *testing.B) {
	const attempts = 10_000
	for b.Loop() {
		store, err := historysql.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), historysql.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var begun sync.WaitGroup
		begun.Add(attempts)
		work := activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
			begun.Done()
			<-ctx.Done()
			return activities.Result{}, context.Cause(ctx)
		})
		r, err := graph.New(store, graph.Options{Activities: work, Capacity: attempts})
		if err != nil {
			b.Fatal(err)
		}
		d := linear(b, "one", "a")
		before, goroutines := inUse(), runtime.NumGoroutine()
		for i := range attempts {
			if _, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", i), Definition: d, Wait: waitFor(0)}); err != nil {
				b.Fatal(err)
			}
		}
		begun.Wait()
		b.ReportMetric(float64(inUse()-before)/attempts, "B/attempt")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/attempts, "goroutines/attempt")
		if err := r.Close(); err != nil {
			b.Error(err)
		}
		store.Close()
	}
}

// inUse is what the heap and the stacks of the process take.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
