package historypg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestStoresAgree compares stores of one schema with the store in memory in two rounds of 150 actions, in `make soak` in 300 of 250.
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Size(2, 1, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			schema := emptySchema(t)
			historytest.Agreement{
				Seed: seed, Actions: soak.Size(150, 100, 250),
				Open: func(now func() time.Time, o historytest.Opening) historytest.Agreeable {
					options := historypg.Options{Schema: schema, Now: now, Conns: 2}
					switch o {
					case historytest.Smallest:
						options.WholeBytes, options.ValueBytes = 1, 256
					case historytest.ReadOnly:
						options.ReadOnly, options.Conns = true, 1
					}
					return openWith(t, options)
				},
			}.Run(t)
		})
	}
}
