package conformance_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// What a store keeps does not show in what the engine does: vectors pass over SQLite as they do in memory. These are the
// families that restart runs and write to several of them; a database for every vector takes its time.
func TestVectorsOnSQLite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what opens a database for every vector")
	}
	dir := t.TempDir()
	var files atomic.Int64
	onDisk := conformance.Options{NewStore: func(ctx context.Context) (history.Store, error) {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files.Add(1)))
		return historysql.Open(ctx, path, historysql.Options{Synchronous: historysql.Normal})
	}}
	for _, family := range []string{"cancel", "cycles", "integrity", "interrupts", "parallel", "subworkflow"} {
		run(t, filepath.Join("vectors", family), onDisk)
	}
}
