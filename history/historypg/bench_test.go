package historypg_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// BenchmarkStore measures the store on a server of its own, which flushes. TMPDIR chooses the disk.
func BenchmarkStore(b *testing.B) {
	server := pgtest.New(b, "-c", "autovacuum_naptime=1s") // lists are planned by statistics
	historytest.Benchmark(b, func(t testing.TB, _ func() time.Time) history.Store {
		return openAt(t, server.URL(), historypg.Options{Schema: pgtest.Schema(t)})
	})
	historytest.BenchmarkList(b, func(t testing.TB, _ func() time.Time) history.Store {
		return openAt(t, server.URL(), historypg.Options{Schema: pgtest.Schema(t), Synchronous: historypg.Normal})
	})
}

// BenchmarkAppends compares appends of an activity's six records with commits of one row of the same size, in turns on the same server: one run after
// the other, and many at once. It reports nodes a second and their ratio.
func BenchmarkAppends(b *testing.B) {
	server := pgtest.New(b, "-c", "autovacuum_naptime=1s") // lists are planned by statistics
	for _, runs := range []int{1, 50} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			s := openAt(b, server.URL(), historypg.Options{Schema: pgtest.Schema(b), Conns: 8})
			raw, err := pgxpool.New(b.Context(), server.URL()+" pool_max_conns=8")
			if err != nil {
				b.Fatal(err)
			}
			defer raw.Close()
			table := pgtest.Schema(b)
			if _, err := raw.Exec(b.Context(), "CREATE TABLE "+table+" (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text)"); err != nil {
				b.Fatal(err)
			}
			payload := strings.Repeat("x", 1200)
			commit := func(ctx context.Context) error {
				_, err := raw.Exec(ctx, "INSERT INTO "+table+" (text) VALUES ($1)", payload)
				return err
			}
			traces := make([]*historytest.Trace, runs)
			for i := range traces {
				traces[i] = historytest.NewTrace(b, fmt.Sprint("r", i))
				traces[i].Append(s, historytest.Start("w", "in_process")...)
			}
			var appends, commits time.Duration
			n := 0
			const turn = 50
			for b.Loop() {
				appends += inTurns(runs, func(i int) error {
					for range turn {
						x := traces[i]
						batch := x.Batch(historytest.Node("n12", "n13")...)
						batch.Owner, batch.Position = "p", make([]byte, 300)
						if err := s.Append(b.Context(), batch); err != nil {
							return err
						}
					}
					return nil
				}, b)
				commits += inTurns(runs, func(int) error {
					for range turn {
						if err := commit(b.Context()); err != nil {
							return err
						}
					}
					return nil
				}, b)
				n += runs * turn
			}
			b.ReportMetric(float64(n)/appends.Seconds(), "nodes/s")
			b.ReportMetric(float64(n)/commits.Seconds(), "commits/s")
			b.ReportMetric(commits.Seconds()/appends.Seconds(), "of-a-commit")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// inTurns calls f at the same time for each run, and returns how long all took.
func inTurns(runs int, f func(i int) error, b *testing.B) time.Duration {
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			if err := f(i); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(begun)
}
