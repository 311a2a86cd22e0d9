package conformance_test

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// onPostgres makes stores on the server of the tests, each in a schema of its own.
func onPostgres(t *testing.T) func(context.Context) (history.Store, error) {
	t.Helper()
	server := pgtest.Shared(t)
	return func(ctx context.Context) (history.Store, error) {
		return historypg.Open(ctx, server.URL(), historypg.Options{Schema: pgtest.Schema(t), Conns: 2})
	}
}

// TestVectorsOnPostgres: the vectors of this repository and of the protocol pass over PostgreSQL as they do in memory.
func TestVectorsOnPostgres(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short leaves out what makes a schema for every vector")
	}
	stores := conformance.Options{NewStore: onPostgres(t)}
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		run(t, ".", stores)
	})
	t.Run("protocol", func(t *testing.T) {
		t.Parallel()
		needProtocolVectors(t)
		run(t, protocolVectors, stores)
	})
}

// TestCrashOnPostgres tries a sample of the crash points over a server, and a larger one in `make soak`.
func TestCrashOnPostgres(t *testing.T) {
	t.Parallel()
	newStore, limit, modes := onPostgres(t), soak.Size(1, 1, 20), crashModes[:soak.Size(1, 1, 2)]
	var points tally
	tried := map[string]bool{}
	t.Run("server", func(t *testing.T) {
		for _, c := range crashCases(t) {
			example := path.Dir(c.name)
			if !slices.Contains(repaired, c.name) && (!c.example || tried[example] && !soak.On()) {
				continue // one case of each example
			}
			tried[example] = true
			for _, m := range c.modes(modes) {
				points.offered++
				t.Run(fmt.Sprintf("%s/%s", c.name, m.mode), func(t *testing.T) {
					points.taken.Add(1)
					t.Parallel()
					c := c.staffed(t)
					inBubble(t, func(t *testing.T) {
						open := func() history.Store {
							s, err := newStore(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							return s
						}
						tried, _ := enumerate(t, c, m, open, func(points int) float64 { return spread(points, limit) })
						points.n.Add(int64(tried))
					})
				})
			}
		}
	})
	t.Logf("%d crash points tried", points.n.Load())
	if points.short(10) {
		t.Errorf("only %d points", points.n.Load())
	}
}
