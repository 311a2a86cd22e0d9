package graph_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// reading is a store that counts the records that are read.
type reading struct {
	history.Store
	mu   sync.Mutex
	read int
}

func (s *reading) Read(ctx context.Context, id string, from int64, limit int) ([]history.Record, error) {
	records, err := s.Store.Read(ctx, id, from, limit)
	s.mu.Lock()
	s.read += len(records)
	s.mu.Unlock()
	return records, err
}

// TestJournalReadsOneStep: a step is read by its number, alone or among those of other attempts that go on beside it, also by a later call of
// Work; for those that were recorded without others between them few records are read.
func TestJournalReadsOneStep(t *testing.T) {
	t.Parallel()
	const steps = 60
	for _, branches := range []int{1, 5} {
		t.Run(fmt.Sprint(branches), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := &reading{Store: historymem.New()}
				most := 0
				check := func(ctx context.Context, j activities.Journal) {
					for n := 1; n <= steps; n++ {
						store.mu.Lock()
						store.read = 0
						store.mu.Unlock()
						s, err := j.Step(ctx, n)
						if err != nil || s.Kind != "made" || s.Key != fmt.Sprint(n) || s.Body["n"] != float64(n) {
							t.Errorf("step %d: %+v, %v", n, s, err)
						}
						store.mu.Lock()
						most = max(most, store.read)
						store.mu.Unlock()
					}
					for _, n := range []int{-1, 0, steps + 100} {
						if s, err := j.Step(ctx, n); err == nil {
							t.Errorf("step %d: %+v", n, s)
						}
					}
				}
				r := newRunner(t, store, graph.Options{Work: graph.WorkAll, Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
					recorded, err := j.Steps(ctx)
					if err != nil {
						return activities.End{}, err
					}
					if len(recorded) > 0 {
						check(ctx, j)
						return activities.End{Result: &activities.Result{}}, nil
					}
					for n := 1; n <= steps; n++ {
						time.Sleep(time.Millisecond) // the branches take turns
						if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(n), Kind: "made", Body: object{"n": n}}); err != nil {
							return activities.End{}, err
						}
					}
					if branches == 1 {
						check(ctx, j)
					}
					return activities.End{Until: time.Now().Add(time.Hour)}, nil
				})})
				nodes, edges := []string{startNode(), endNode()}, []string{"s work0", "work0 e"}
				var names []string
				for b := range branches {
					name := fmt.Sprint("work", b)
					nodes, names = append(nodes, tool(name)), append(names, name)
				}
				if branches > 1 {
					nodes, edges = append(nodes, fork("fan", "all", names...)), []string{"s fan", "fan e"}
					for _, name := range names {
						edges = append(edges, name+" e")
					}
				}
				run, err := r.Start(t.Context(), graph.StartRequest{Definition: workflow(t, "w", nodes, edges...), Wait: graph.Wait{Limit: 3 * time.Hour}})
				if err != nil || run.Status != machine.Completed {
					t.Fatalf("%+v, %v", run, err)
				}
				if branches == 1 && most > 12 {
					t.Errorf("%d records were read for one step", most)
				}
			})
		})
	}
}
