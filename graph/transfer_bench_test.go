package graph_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/runfile"
)

// BenchmarkTransfer measures reading the file of a run of 10,000 records, importing it, and verifying a store that has the run.
func BenchmarkTransfer(b *testing.B) {
	path, _ := hostRun(b, 10_000)
	store := open(b, path, historysql.Normal)
	var file bytes.Buffer
	if err := graph.Export(b.Context(), store, "long", graph.ExportOptions{}, &file); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := runfile.Read(bytes.NewReader(file.Bytes())); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("import", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			into := open(b, filepath.Join(b.TempDir(), "into.db"), historysql.Normal)
			b.StartTimer()
			if _, err := graph.Import(b.Context(), into, bytes.NewReader(file.Bytes())); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := into.Close(); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := store.Verify(b.Context(), "long", false, func(f history.Finding) { b.Error(f) }); err != nil {
				b.Fatal(err)
			}
		}
	})
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}
