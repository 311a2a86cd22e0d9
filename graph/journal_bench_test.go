package graph_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// BenchmarkJournalSteps holds the steps that executors record, each once the one before is durable, against the disk; see
// BenchmarkDurableNodes. batches/step counts the batches that the store is handed; those of several runs may share a commit.
func BenchmarkJournalSteps(b *testing.B) {
	const steps = 200
	body := map[string]any{"text": strings.Repeat("x", 100)}
	for _, runs := range []int{1, 50} {
		b.Run(fmt.Sprintf("attempts=%d", runs), func(b *testing.B) {
			raw, store := openRaw(b), &counting{Store: disk(b)}
			r := newRunner(b, store, graph.Options{Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
				for i := range steps {
					if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made", Body: body}); err != nil {
						return activities.End{}, err
					}
				}
				return activities.End{Result: &activities.Result{}}, nil
			})})
			d := workflow(b, "journal", []string{startNode(), tool("work"), endNode()}, "s work", "work e")
			var rawTook, took time.Duration
			var commits, done int
			for b.Loop() {
				begun := time.Now()
				for range steps {
					raw.commit(b)
				}
				rawTook += time.Since(begun)
				commits += steps

				begun = time.Now()
				var all sync.WaitGroup
				for range runs {
					all.Go(func() {
						run, err := r.Start(b.Context(), graph.StartRequest{Definition: d, Wait: graph.Wait{Limit: time.Hour}})
						if err != nil || run.Status != machine.Completed {
							b.Errorf("%+v, %v", run, err)
						}
					})
				}
				all.Wait()
				took += time.Since(begun)
				done += runs * steps
			}
			rate, raws := float64(done)/took.Seconds(), float64(commits)/rawTook.Seconds()
			b.ReportMetric(rate, "steps/s")
			b.ReportMetric(raws, "raw-commits/s")
			b.ReportMetric(rate/raws, "x-raw")
			batches := float64(store.appends) / float64(done)
			if batches > 1+3.0/steps {
				b.Errorf("%v batches a step: a step takes one, a run two or three more", batches)
			}
			b.ReportMetric(batches, "batches/step")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkJournalTakenOver measures how long a new process takes until an executor has the 500 recorded steps of 10 kB of an attempt
// that another one has begun: it opens the file, rebuilds the run, takes it over and reads. read-ms is the last part of that.
func BenchmarkJournalTakenOver(b *testing.B) {
	const steps = 500
	file := filepath.Join(b.TempDir(), "runs.db")
	open := func(work journaled) (closeBoth func(), r *graph.Runner) {
		store, err := historysql.Open(b.Context(), file, historysql.Options{})
		if err != nil {
			b.Fatal(err)
		}
		r, err = graph.New(store, graph.Options{Activities: work})
		if err != nil {
			b.Fatal(err)
		}
		return func() {
			if err := r.Close(); err != nil {
				b.Error(err)
			}
			if err := store.Close(); err != nil {
				b.Error(err)
			}
		}, r
	}
	got := make(chan int)
	var readTook time.Duration
	read := func(ctx context.Context, j activities.Journal) (activities.End, error) {
		begun := time.Now()
		recorded, err := j.Steps(ctx)
		readTook += time.Since(begun)
		if err != nil {
			b.Error(err)
		}
		if len(recorded) == 0 {
			for i := range steps {
				body := map[string]any{"text": fmt.Sprint(i) + strings.Repeat("x", 10_000)}
				if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made", Body: body}); err != nil {
					b.Error(err)
				}
			}
		}
		got <- len(recorded)
		<-ctx.Done()
		return activities.End{}, context.Cause(ctx)
	}
	closeBoth, r := open(read)
	d := workflow(b, "journal", []string{startNode(), tool("work"), endNode()}, "s work", "work e")
	if _, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		b.Fatal(err)
	}
	<-got
	closeBoth()
	readTook = 0
	for b.Loop() {
		closeBoth, r := open(read)
		if _, err := r.Drive(b.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}}); err != nil {
			b.Fatal(err)
		}
		if n := <-got; n != steps {
			b.Fatalf("%d steps were read", n)
		}
		b.StopTimer()
		closeBoth()
		b.StartTimer()
	}
	b.ReportMetric(readTook.Seconds()*1000/float64(b.N), "read-ms")
}
