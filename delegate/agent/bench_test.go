package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// metered is a store that counts what it is handed.
type metered struct {
	history.Store
	appends atomic.Int64
}

func (s *metered) Append(ctx context.Context, b history.Batch) error {
	s.appends.Add(1)
	return s.Store.Append(ctx, b)
}

func openFile(b testing.TB, path string) *historysql.Store {
	b.Helper()
	return enginetest.Must(historysql.Open(b.Context(), path, historysql.Options{}))
}

// turns is a model that makes so many turns of so many calls, and answers.
func turns(n, calls int) model {
	return func(_ context.Context, req chat.Request) (chat.Reply, error) {
		turn := 0
		_, _ = fmt.Sscanf(req.Key[strings.LastIndex(req.Key, "/")+1:], "t%d", &turn)
		if turn > n {
			return chat.Reply{Text: "Done.", Usage: chat.Usage{Prompt: 100, Completion: 10}}, nil
		}
		r := chat.Reply{Usage: chat.Usage{Prompt: 100, Completion: 10}}
		for i := range calls {
			r.Calls = append(r.Calls, chat.Call{ID: fmt.Sprint("c", i), Name: "page", Arguments: fmt.Sprintf(`{"n":%d}`, turn*100+i)})
		}
		return r, nil
	}
}

// BenchmarkTurns is an agent whose model and tool cost nothing, over a database that is durable at each commit. commits/turn is counted by the
// store; it is asserted.
func BenchmarkTurns(b *testing.B) {
	const turnsEach = 100
	for _, c := range []struct{ agents, calls int }{{1, 1}, {1, 5}, {50, 1}} {
		b.Run(fmt.Sprintf("agents=%d/calls=%d", c.agents, c.calls), func(b *testing.B) {
			store := &metered{Store: openFile(b, filepath.Join(b.TempDir(), "runs.db"))}
			r := studyWith(b, store, turns(turnsEach, c.calls), 0, nil, page(100))
			doc := enginetest.Define(b, researched)
			made := 0
			for b.Loop() {
				var all sync.WaitGroup
				for range c.agents {
					all.Go(func() {
						run, err := r.Start(b.Context(), graph.StartRequest{Definition: doc, Input: object{"task": "Work."}, Wait: graph.Wait{Limit: time.Hour}})
						if err != nil || run.Status != machine.Completed {
							b.Errorf("%+v, %v", run, err)
						}
					})
				}
				all.Wait()
				made += c.agents * turnsEach
			}
			commits := float64(store.appends.Load()) / float64(made)
			if most := 1 + float64(c.calls) + 8.0/turnsEach; commits > most { // a run begins, and ends
				b.Errorf("%v commits a turn, of at most %v", commits, most)
			}
			b.ReportMetric(float64(made)/b.Elapsed().Seconds(), "turns/s")
			b.ReportMetric(commits, "commits/turn")
			b.ReportMetric(0, "ns/op")
			shut(b, r)
		})
	}
}

// BenchmarkStored holds by how much the file of a run grows against what was new in each turn, the result of a call: it is asserted, with and
// without compaction, and so is that a turn late in the run records no more than one at its beginning.
func BenchmarkStored(b *testing.B) {
	for _, c := range []struct{ turns, size, context int }{{100, 5000, 0}, {300, 10_000, 50_000}} {
		b.Run(fmt.Sprintf("turns=%d/context=%d", c.turns, c.context), func(b *testing.B) {
			for b.Loop() {
				path := filepath.Join(b.TempDir(), "runs.db")
				if err := openFile(b, path).Close(); err != nil {
					b.Fatal(err)
				}
				before := fileSize(b, path)
				store := openFile(b, path)
				r := studyWith(b, store, &reader{pages: c.turns}, c.context, nil, page(c.size))
				run, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(b, researched), Input: object{"task": "Work."}, Wait: graph.Wait{Limit: time.Hour}})
				if err != nil || run.Status != machine.Completed {
					b.Fatalf("%+v, %v", run, err)
				}
				early, late := 0, 0
				records := enginetest.Must(store.Read(b.Context(), "r", 1, 0))
				for i := range records {
					s, _, _ := machine.StepOf(&records[i])
					if s.Key == "t3" || s.Key == "t3.c1" {
						early += len(jsonvalue.Canonical(s.Body))
					} else if last := fmt.Sprint("t", c.turns-3); s.Key == last || s.Key == last+".c1" {
						late += len(jsonvalue.Canonical(s.Body))
					}
				}
				shut(b, r)
				if err := store.Close(); err != nil {
					b.Error(err)
				}
				each := float64(fileSize(b, path)-before) / float64(c.turns)
				if most := 1.3*float64(c.size) + 1000; each > most || late > early+100 {
					b.Errorf("%.0f bytes a turn, of at most %.0f; turn 3 has %d, one at the end %d", each, most, early, late)
				}
				b.ReportMetric(each/float64(c.size), "stored/new")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

func fileSize(b *testing.B, path string) int64 {
	b.Helper()
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			size += info.Size()
		}
	}
	return size
}

// BenchmarkTakenOver is how long a new process takes until it asks what the last one asked when it died, with 500 steps and 5 MB of them: it
// opens the file, rebuilds the run, takes it over and replays the agent.
func BenchmarkTakenOver(b *testing.B) {
	path := filepath.Join(b.TempDir(), "runs.db")
	const made = 249
	script := turns(made, 1)
	asked := make(chan string)
	m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
		if !strings.HasSuffix(req.Key, fmt.Sprint("/t", made+1)) {
			return script(ctx, req)
		}
		asked <- req.Key
		<-ctx.Done()
		return chat.Reply{}, ctx.Err()
	})
	open := func() (*graph.Runner, *historysql.Store) {
		store := openFile(b, path)
		return studyWith(b, store, m, 0, nil, page(20_000)), store
	}
	shutBoth := func(r *graph.Runner, s *historysql.Store) {
		shut(b, r)
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}
	r, store := open()
	if _, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(b, researched), Input: object{"task": "Work."}, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		b.Fatal(err)
	}
	key := <-asked
	shutBoth(r, store)
	for b.Loop() {
		r, store := open()
		if _, err := r.Drive(b.Context(), graph.DriveRequest{ExecutionID: "r", Caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}}); err != nil {
			b.Fatal(err)
		}
		if again := <-asked; again != key {
			b.Fatalf("asked %s, then %s", key, again)
		}
		b.StopTimer()
		shutBoth(r, store)
		b.StartTimer()
	}
}

// BenchmarkFetch is fetch_result of a result of 20 kB, among 1,000 steps.
func BenchmarkFetch(b *testing.B) {
	const made = 500
	script := turns(made, 1)
	m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
		turn := 0
		_, _ = fmt.Sscanf(req.Key[strings.LastIndex(req.Key, "/")+1:], "t%d", &turn)
		if turn <= made || turn > made+b.N {
			return script(ctx, req)
		}
		if turn == made+1 {
			b.ResetTimer()
		}
		call := chat.Call{ID: "a", Name: "fetch_result", Arguments: fmt.Sprintf(`{"ref":"t%d.c1","offset":%d,"limit":20}`, 1+turn%made, turn)}
		return chat.Reply{Calls: []chat.Call{call}, Usage: chat.Usage{Prompt: 100, Completion: 10}}, nil
	})
	store := openFile(b, filepath.Join(b.TempDir(), "runs.db"))
	r := studyWith(b, store, m, 1_000_000, func(c *agent.Agent) { c.Budgets.Turns, c.Budgets.ToolCalls = 1_000_000, 1_000_000 }, page(20_000))
	defer shut(b, r)
	run, err := r.Start(b.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(b, researched), Input: object{"task": "Work."}, Wait: graph.Wait{Limit: time.Hour}})
	if err != nil || run.Status != machine.Completed {
		b.Fatalf("%+v, %v", run, err)
	}
}
