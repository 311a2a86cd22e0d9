package agent_test

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// counting counts the commits of a store.
type counting struct {
	history.Store
	appends atomic.Int64
}

func (c *counting) Append(ctx context.Context, b history.Batch) error {
	c.appends.Add(1)
	return c.Store.Append(ctx, b)
}

// turning makes so many calls in each of so many turns, and then answers.
func turning(turns, calls int) model {
	return func(_ context.Context, req chat.Request) (chat.Reply, error) {
		turn := 1
		for _, m := range req.Messages {
			if m.Role == chat.Assistant {
				turn++
			}
		}
		if turn > turns {
			return chat.Reply{Text: "done"}, nil
		}
		r := chat.Reply{Usage: chat.Usage{Prompt: 100, Completion: 10}}
		for i := range calls {
			r.Calls = append(r.Calls, chat.Call{ID: fmt.Sprintf("c%d.%d", turn, i), Name: "look", Arguments: fmt.Sprintf(`{"n":%d}`, turn*100+i)})
		}
		return r, nil
	}
}

// looks is a tool that answers at once.
func looks() agent.Toolset {
	return agent.Func("look", "Looks.", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		return in.N, nil
	}, agent.WithParallel(true), agent.WithOnCrash(agent.Repeat))
}

func long(a *agent.Agent) { a.Budgets = agentloop.Budgets{Turns: 10_000, ToolCalls: 10_000} }

// TestCommitsOfATurn counts the commits of the store: a turn with one call takes two, one with T calls between two and 1 + T.
func TestCommitsOfATurn(t *testing.T) {
	t.Parallel()
	commits := func(turns, calls int) int {
		store := &counting{Store: historymem.New()}
		r := workshop(t, store, turning(turns, calls), long, looks())
		defer shut(t, r)
		if run := work(t, r); run.Status != machine.Completed {
			t.Fatalf("%+v", run)
		}
		return int(store.appends.Load())
	}
	const turns = 20
	around := commits(0, 1) // of the run, and of the agent's beginning and answer
	for calls := 1; calls <= 5; calls++ {
		n := commits(turns, calls) - around
		t.Logf("%d calls a turn: %.2f commits a turn", calls, float64(n)/turns)
		if n < 2*turns || n > (1+calls)*turns {
			t.Errorf("%d turns with %d calls take %d commits, want between 2 and 1 + calls each", turns, calls, n)
		}
	}
}

// TestATurnStoresWhatIsNew: a turn adds to the history what was said and returned in it and little else, however long the conversation is.
func TestATurnStoresWhatIsNew(t *testing.T) {
	t.Parallel()
	turns, result := soak.Size(100, 20, 100), 5000
	store := historymem.New()
	r := workshop(t, store, turning(turns, 1), long, agent.Func("look", "Looks.", func(context.Context, struct {
		N int `json:"n"`
	},
	) (string, error) {
		return strings.Repeat("x", result), nil
	}))
	defer shut(t, r)
	run, err := r.Start(t.Context(), graph.StartRequest{
		ExecutionID: "r", Definition: enginetest.Define(t, researched), Input: object{"task": strings.Repeat("Work. ", 800_000/6)}, Wait: graph.Wait{Limit: time.Hour},
	})
	if err != nil || run.Status != machine.Completed {
		t.Fatalf("%v, %+v", err, run)
	}
	added := 0
	for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
		if s, _, ok := machine.StepOf(&rec); ok && s.Kind != agentloop.StepBegun {
			added += len(rec.Text("r"))
		}
	}
	t.Logf("%d turns with a result of %d bytes each add %d bytes to a conversation that begins with 800 kB", turns, result, added)
	if most := turns * (result*13/10 + 1000); added > most || added > 1<<20 {
		t.Errorf("%d bytes are added, want at most %d", added, most)
	}
}

// heap is what is in use, once all that can be is freed.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// keptRuns is more than a runner keeps of runs that rest, for the next call about them.
const keptRuns = 3000

// TestWaitingAgentsCostRows: agents that wait for a person have no goroutine and no owner. What a process keeps of them for the next call is
// at most 64 KiB each, and bounded altogether; one that begins anew has nothing of them. The long form has 10,000. It does not run beside
// other tests, whose goroutines and memory would count.
func TestWaitingAgentsCostRows(t *testing.T) {
	agents := soak.Setting("SOAK_AGENTS", soak.Size(500, 200, 10_000))
	store := enginetest.Closing(t, enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})))
	paid := newTill(0)
	r := workshop(t, store, onceThen("pay"), nil, paid)
	doc := enginetest.Define(t, researched)
	begin := func(from, to int) {
		var all sync.WaitGroup
		for part := range 8 {
			all.Go(func() {
				for n := from + part; n < to; n += 8 {
					run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", n), Definition: doc, Input: object{"task": "Work."}, Wait: graph.Wait{Limit: time.Hour}})
					if err != nil || run.Status != machine.Interrupted {
						t.Errorf("%v, %+v", err, run)
						return
					}
				}
			})
		}
		all.Wait()
	}
	begin(0, 50) // caches fill
	goroutines, empty := runtime.NumGoroutine(), heap()
	full, kept := min(agents, keptRuns), int64(0)
	begin(50, full)
	kept = heap()
	begin(full, agents)
	grown := heap() - kept
	each := (kept - empty) / int64(full-50)
	if !soak.UnderRace && (each > 64<<10 || grown > 4<<20) {
		t.Errorf("%d bytes are kept of each agent, and %d more of all once there are %d", each, grown, full)
	}
	if now := runtime.NumGoroutine(); now > goroutines+2 {
		t.Errorf("%d goroutines, %d before", now, goroutines)
	}
	for n := 0; n < agents; n += agents / 100 {
		if owner, err := store.Owner(t.Context(), fmt.Sprint("r", n)); err != nil || owner.Process != "" {
			t.Fatalf("r%d belongs to %+v, %v", n, owner, err)
		}
	}
	shut(t, r)
	r = nil // what it kept is gone
	anew := heap()
	r = workshop(t, store, onceThen("pay"), nil, paid)
	defer func() { shut(t, r) }()
	if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
		t.Fatal(err)
	}
	more := heap() - anew
	t.Logf("%d agents wait for a person: %d goroutines; %d bytes are kept of each of %d, %+d of the others, %+d in a new process", agents, runtime.NumGoroutine(), each, full, grown, more)
	if !soak.UnderRace && more > 1<<20 {
		t.Errorf("a new process has %d bytes of agents that wait", more)
	}
	if n, _ := paid.paid(); n > 0 {
		t.Errorf("%d calls were made", n)
	}
	if run := end(t, r, "r7"); run.Status != machine.Completed {
		t.Errorf("%+v", run)
	}
}

// TestALiveAgentIsSmall: an agent whose model is being asked takes at most 64 KiB besides three times its transcript.
func TestALiveAgentIsSmall(t *testing.T) {
	if soak.UnderRace {
		t.Skip("the race detector takes memory, too")
	}
	const agents, transcript = 90, 40_000 // fewer agents than a process performs at once
	asked, release := make(chan struct{}, agents), make(chan struct{})
	m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
		asked <- struct{}{}
		select {
		case <-release:
			return chat.Reply{Text: "done"}, nil
		case <-ctx.Done():
			return chat.Reply{}, ctx.Err()
		}
	})
	store := enginetest.Closing(t, enginetest.Must(historysql.Open(t.Context(), filepath.Join(t.TempDir(), "runs.db"), historysql.Options{Synchronous: historysql.Normal})))
	r := workshop(t, store, m, nil, looks())
	defer shut(t, r)
	doc, text := enginetest.Define(t, researched), make([]byte, transcript)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	begin := func(n int) {
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint("r", n), Definition: doc, Input: object{"task": fmt.Sprint(n, string(text))}, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		<-asked
	}
	begin(0)
	before := heap()
	for n := range agents {
		begin(n + 1)
	}
	each := (heap() - before) / agents
	close(release)
	t.Logf("an agent with a transcript of %d bytes takes %d bytes", transcript, each)
	if most := int64(3*transcript + 64<<10); each > most {
		t.Errorf("a live agent takes %d bytes, want at most %d", each, most)
	}
	for n := range agents + 1 {
		end(t, r, fmt.Sprint("r", n))
	}
}
