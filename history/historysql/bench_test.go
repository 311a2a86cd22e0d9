package historysql_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// BenchmarkStore measures the store in the temporary folder; TMPDIR chooses the disk. Normal leaves out the flushes.
func BenchmarkStore(b *testing.B) {
	for _, synchronous := range []string{historysql.Full, historysql.Normal} {
		b.Run(synchronous, func(b *testing.B) {
			open := func(t testing.TB, _ func() time.Time) history.Store {
				return openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: synchronous})
			}
			historytest.Benchmark(b, open)
			if synchronous == historysql.Normal { // lists are read, and making them takes long enough
				historytest.BenchmarkList(b, open)
			}
		})
	}
}

// BenchmarkOpen measures what a process pays before its first call.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	openFile(b, path, historysql.Options{})
	for b.Loop() {
		s, err := historysql.Open(b.Context(), path, historysql.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSession measures short sessions: open a file, commit some activities of a run, close.
func BenchmarkSession(b *testing.B) {
	for _, commits := range []int{2, 10, 30, 120, 500} {
		b.Run(fmt.Sprintf("commits=%d", commits), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "runs.db")
			var opened, committed, closed time.Duration
			took := func(sum *time.Duration, begun time.Time) { *sum += time.Since(begun) }
			for i := 0; b.Loop(); i++ {
				begun := time.Now()
				s, err := historysql.Open(b.Context(), path, historysql.Options{})
				took(&opened, begun)
				if err != nil {
					b.Fatal(err)
				}
				x := historytest.NewTrace(b, fmt.Sprintf("%08x-d9cb-469f-a165-70867728950e", i))
				lines := historytest.Start("w", "in_process")
				for n := range commits {
					batch := x.Batch(lines...)
					begun = time.Now()
					err := s.Append(b.Context(), batch)
					took(&committed, begun)
					if err != nil {
						b.Fatal(err)
					}
					lines = historytest.StepLines(n)
					x.Now = batch.Execution.UpdatedAt.Add(300 * time.Microsecond)
				}
				begun = time.Now()
				err = s.Close()
				took(&closed, begun)
				if err != nil {
					b.Fatal(err)
				}
			}
			ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) / float64(b.N) }
			b.ReportMetric(ms(opened), "open-ms")
			b.ReportMetric(ms(committed)/float64(commits), "commit-ms")
			b.ReportMetric(ms(closed), "close-ms")
			b.ReportMetric(ms(opened+committed+closed), "session-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPages counts what a commit of one node writes to the log, in pages of 4,096 bytes: unlike time, it does not
// depend on what else the machine does. The run is one among others of the index, or the newest, and a host or a process
// at full speed drives it.
func BenchmarkPages(b *testing.B) {
	for _, bench := range []struct {
		name string
		run  int
		node func(i int) []string
		took time.Duration
	}{
		{"host/middle", 50, func(int) []string { return historytest.Node("n12", "n13") }, time.Millisecond},
		{"host/newest", 100, func(int) []string { return historytest.Node("n12", "n13") }, time.Millisecond},
		{"driven/newest", 100, historytest.StepLines, 300 * time.Microsecond},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := openFile(b, filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
			var runs []*historytest.Trace
			for i := range 101 {
				x := historytest.NewTrace(b, fmt.Sprintf("%08x-d9cb-469f-a165-70867728950e", i))
				x.Append(s, historytest.Start("w", "in_process")...)
				for range 20 {
					x.Append(s, historytest.Node("n12", "n13")...)
				}
				runs = append(runs, x)
			}
			x := runs[bench.run]
			before, err := s.PagesWritten()
			for i := 0; b.Loop(); i++ {
				now := x.Now
				x.Append(s, bench.node(i)...)
				x.Now = now.Add(bench.took)
			}
			after, err2 := s.PagesWritten()
			if err != nil || err2 != nil {
				b.Fatal(err, err2)
			}
			b.ReportMetric(float64(after-before)/float64(b.N), "pages/commit")
		})
	}
}

// BenchmarkDeliveries measures, with 10,000 deliveries that are due, a look for the next 64 of one target, and one attempt: its claim and its
// settlement, each a commit of its own.
func BenchmarkDeliveries(b *testing.B) {
	const due = 10_000
	fill := func(b *testing.B) *historysql.Store {
		b.Helper()
		s, err := historysql.Open(b.Context(), filepath.Join(b.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		for i := range due {
			batch := historytest.NewTrace(b, fmt.Sprint(i)).Batch("E ExecutionStarted", "E ExecutionCompleted")
			batch.Deliveries = historytest.Delivers(fmt.Sprint("evt_", i), `{"event":"run.completed"}`, historytest.Begin, "ops")
			if err := s.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		return s
	}
	b.Run("look", func(b *testing.B) {
		s := fill(b)
		for b.Loop() {
			if ds, err := s.DueDeliveries(b.Context(), "ops", historytest.Begin, 64); err != nil || len(ds) != 64 {
				b.Fatal(len(ds), err)
			}
		}
	})
	b.Run("attempt", func(b *testing.B) {
		s := fill(b)
		for i := 0; b.Loop(); i++ {
			id := fmt.Sprintf("evt_%d-ops", i%due)
			_, claimed, err := s.ClaimDelivery(b.Context(), history.DeliveryClaim{DeliveryID: id, Attempt: 1 + i/due, Process: "p", TTL: time.Minute, At: historytest.Begin})
			if !claimed || err != nil {
				b.Fatal(claimed, err)
			}
			if err := s.SettleDelivery(b.Context(), history.Settlement{
				DeliveryID: id, Attempt: 1 + i/due, At: historytest.Begin, Receipt: history.Receipt{Outcome: history.SendAgain}, State: history.DeliveryPending, Due: historytest.Begin,
			}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
