package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// The vectors pass over the SQLite store as they do in memory.
func TestVectorsOnSQLite(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("opens a database for every vector")
	}
	dir := t.TempDir()
	var files atomic.Int64
	onDisk := conformance.Options{NewStore: func(ctx context.Context) (history.Store, error) {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", files.Add(1)))
		return historysql.Open(ctx, path, historysql.Options{Synchronous: historysql.Normal})
	}}
	run(t, ".", onDisk)
	if _, err := os.Stat(filepath.Join(protocolVectors, "vectors")); err == nil {
		run(t, protocolVectors, onDisk)
	}
}
