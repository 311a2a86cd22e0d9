package graph_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// plays is how many seeds a random play is given: usually, under the race detector, and with SOAK set.
type plays struct{ usual, race, soak int }

// each runs a play for each seed, in a bubble of its own, until one fails. It gives the number of seeds.
func (p plays) each(t *testing.T, play func(t *testing.T, seed uint64)) (seeds int) {
	t.Helper()
	seeds = soak.Size(p.usual, p.race, p.soak)
	t.Run("seeds", func(t *testing.T) { // which returns when all have
		const workers = 4
		for w := range workers {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed := w; seed < seeds && !t.Failed(); seed += workers {
					synctest.Test(t, func(t *testing.T) { play(t, uint64(seed)) })
				}
			})
		}
	})
	return seeds
}
