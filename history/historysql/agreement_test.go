package historysql_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestStoresAgree compares stores of one file with the store in memory in two rounds of 250 actions, in `make soak` in 500 of them.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Size(2, 2, 500)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			historytest.Agreement{
				Seed: seed, Actions: 250, StepsBack: true,
				Open: func(now func() time.Time, o historytest.Opening) historytest.Agreeable {
					options := historysql.Options{Synchronous: historysql.Normal}
					switch o {
					case historytest.Smallest:
						options = smallest
					case historytest.ReadOnly:
						return openFile(t, path, historysql.Options{ReadOnly: true})
					}
					options.Now = now
					return openFile(t, path, options)
				},
				Hold: func(s historytest.Agreeable) (queued func(n int), release func()) {
					store := s.(*historysql.Store)
					return func(n int) { untilQueued(store, n) }, store.Hold()
				},
			}.Run(t)
		})
	}
}
