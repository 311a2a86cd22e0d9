package historysql_test

import (
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// BenchmarkStore measures the store in the temporary folder; TMPDIR chooses the disk. Normal leaves out the flushes.
func BenchmarkStore(b *testing.B) {
	for _, synchronous := range []string{historysql.Full, historysql.Normal} {
		b.Run(synchronous, func(b *testing.B) {
			historytest.Benchmark(b, func(t testing.TB) history.Store {
				return openFile(t, filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: synchronous})
			})
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
