package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// reader is a model that reads a page after another, and keeps what it was asked.
type reader struct {
	mu sync.Mutex
	// pages are how many it reads before it answers, takes how many bytes of messages it takes, 0 for any.
	pages, takes int
	// unable says that it cannot sum up.
	unable bool
	asked  []chat.Request
	// largest is the largest conversation that it has taken.
	largest            int
	refusals, summings int
}

func (m *reader) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := 0
	for _, msg := range req.Messages {
		size += len(msg.Text)
		for _, c := range msg.Calls {
			size += len(c.Arguments)
		}
	}
	if m.takes > 0 && size > m.takes {
		m.refusals++
		return chat.Reply{}, activities.Fail(chat.CodeContextExceeded, "this model takes %d characters", m.takes)
	}
	m.largest = max(m.largest, size)
	m.asked = append(m.asked, req)
	usage := chat.Usage{Prompt: size / 4, Completion: 10}
	if strings.HasPrefix(req.Messages[0].Text, "You sum up") {
		m.summings++
		if m.unable {
			return chat.Reply{}, &activities.Failure{Code: string(problem.LLMProviderError), Message: "no", Retryable: activities.RetryPointless}
		}
		return chat.Reply{Text: "PAGES WERE READ", Usage: usage}, nil
	}
	read := 0
	for _, r := range m.asked {
		if !strings.HasPrefix(r.Messages[0].Text, "You sum up") {
			read++
		}
	}
	if read > m.pages {
		return chat.Reply{Text: "Read.", Usage: usage}, nil
	}
	return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "page", Arguments: fmt.Sprintf(`{"n":%d}`, read)}}, Usage: usage}, nil
}

type pageNumber struct {
	N int `json:"n"`
}

// page is a tool that returns so many bytes.
func page(size int) agent.Toolset {
	return agent.Func("page", "Reads a page.", func(_ context.Context, in pageNumber) (object, error) {
		text := fmt.Sprintf("page %d ", in.N)
		return object{"text": text + strings.Repeat("0123456789", size/10)}, nil
	}, agent.WithOnCrash(agent.Repeat))
}

func kinds(t testing.TB, store history.Store) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, step := range stepsOf(t, store) {
		kind, _, _ := strings.Cut(step, " ")
		n[kind]++
	}
	return n
}

// studyWith is an engine whose clerk reads pages, with a model that takes so many tokens.
func studyWith(t testing.TB, store history.Store, m chat.Model, contextTokens int, change func(*agent.Agent), tools ...agent.Toolset) *graph.Runner {
	t.Helper()
	clerk := agent.Agent{Config: agentloop.Config{Instructions: "You read.", Budgets: agentloop.Budgets{Turns: 10_000, ToolCalls: 10_000, WorkMs: 1 << 30}}, Tools: tools}
	if change != nil {
		change(&clerk)
	}
	return shopOf(t, store, agent.Config{
		Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m", ContextTokens: contextTokens, MaxTokens: 200}}},
		Agents: map[string]agent.Agent{"clerk": clerk},
	})
}

// TestALongConversationIsMadeShorter: with a model that takes little, an agent of many turns asks nothing that is refused.
func TestALongConversationIsMadeShorter(t *testing.T) {
	t.Parallel()
	for name, unable := range map[string]bool{"summed up": false, "left out": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m, store := &reader{pages: 80, takes: 24_000, unable: unable}, historymem.New()
				r := studyWith(t, store, m, 6000, nil, page(2000))
				run := work(t, r)
				shut(t, r)
				if run.Status != machine.Completed || run.FinalState["text"] != "Read." {
					t.Fatalf("%s %v %v", run.Status, run.Error, run.FinalState)
				}
				steps := kinds(t, store)
				if m.refusals > 0 || steps["compacted"] < 3 || steps["reply"] != 81 || (m.summings == 0) {
					t.Errorf("%d refusals, %d summaries, %v", m.refusals, m.summings, steps)
				}
				last := m.asked[len(m.asked)-1].Messages
				if last[1].Text != "Work." || !strings.Contains(last[2].Text, "PAGES WERE READ") != unable || !strings.Contains(fmt.Sprint(last), "page 80 ") {
					t.Errorf("the last request begins %.300v", last)
				}
			})
		})
	}
}

// TestARefusedConversationIsMadeShorter: a model of which nobody has said what it takes says so itself. It is believed from then on.
func TestARefusedConversationIsMadeShorter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, store := &reader{pages: 60, takes: 24_000}, historymem.New()
		r := studyWith(t, store, m, 0, nil, page(2000))
		run := work(t, r)
		shut(t, r)
		if run.Status != machine.Completed || m.refusals != 1 {
			t.Errorf("%s %v: %d refusals, %v", run.Status, run.Error, m.refusals, kinds(t, store))
		}
	})
	synctest.Test(t, func(t *testing.T) { // a task that no model takes
		m, store := &reader{pages: 3, takes: 20}, historymem.New()
		r := studyWith(t, store, m, 0, nil, page(2000))
		run := work(t, r)
		shut(t, r)
		if run.Status != machine.Failed || run.ErrorCode != string(problem.AgentContextExceeded) {
			t.Errorf("%s %v", run.Status, run.Error)
		}
	})
}

// TestCompactionSurvivesEveryCrash stops the process before and after each commit of an agent that shrinks, sums up and reads results again.
// Another one goes on with the same requests, and no recorded call is made again.
func TestCompactionSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	play := func(t *testing.T, left int, late bool) (appends int, asked map[string]string) {
		store := &dying{Store: historymem.New(), left: left, late: late, end: make(chan struct{})}
		at := fmt.Sprintf("append %d, late %v", left, late)
		m := &recall{asked: map[string]string{}}
		open := func(s history.Store) *graph.Runner {
			return studyWith(t, s, m, 2500, func(c *agent.Agent) {
				c.Results = agentloop.Results{OffloadBytes: 3000, PreviewChars: 800}
				c.Compaction.KeepTurns = 2
			}, page(2000))
		}
		doc := enginetest.Define(t, researched)
		r := open(store)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = finish(t, r, doc, nil)
		}()
		select {
		case <-gone:
		case <-store.end:
		}
		shut(t, r)
		<-gone
		if left >= 0 {
			time.Sleep(time.Minute)
			r = open(store.Store)
			if run, err := finish(t, r, doc, nil); err != nil || run.Status != machine.Completed {
				t.Fatalf("%s: %v, %+v\n%q", at, err, run, stepsOf(t, store))
			}
			shut(t, r)
		}
		steps := stepsOf(t, store)
		slices.Sort(steps)
		if len(slices.Compact(slices.Clone(steps))) != len(steps) {
			t.Errorf("%s: a step is recorded twice: %q", at, steps)
		}
		for _, wrong := range m.wrong {
			t.Errorf("%s: %s", at, wrong)
		}
		return store.appends, m.asked
	}
	synctest.Test(t, func(t *testing.T) {
		appends, whole := play(t, -1, false)
		compactions := 0
		for key := range whole {
			if strings.Contains(key, "/k") {
				compactions++
			}
		}
		if appends < 20 || compactions < 2 {
			t.Fatalf("%d commits, %d summaries", appends, compactions)
		}
		for k := range appends {
			for _, late := range []bool{false, true} {
				if soak.UnderRace && (k%2 != 0 || late != (k%4 == 0)) {
					continue
				}
				if _, asked := play(t, k, late); fmt.Sprint(asked) != fmt.Sprint(whole) {
					t.Errorf("append %d, late %v: other requests than without a crash", k, late)
				}
			}
		}
	})
}

// recall is a model that reads pages, then reads one of them again, by its ref; it answers by what it is asked alone.
type recall struct {
	mu    sync.Mutex
	asked map[string]string
	wrong []string
}

func (m *recall) Chat(_ context.Context, req chat.Request) (chat.Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprint(req.Messages)
	if before, again := m.asked[req.Key]; again && before != text {
		m.wrong = append(m.wrong, req.Key+" asks something else the second time")
	}
	m.asked[req.Key] = text
	turn := 0
	_, last, _ := strings.Cut(req.Key[strings.LastIndex(req.Key, "/")+1:], "t")
	_, _ = fmt.Sscan(last, &turn)
	usage := chat.Usage{Prompt: len(text) / 4, Completion: 10}
	switch {
	case strings.HasPrefix(req.Messages[0].Text, "You sum up"):
		return chat.Reply{Text: "Pages were read, see ref t1.c1.", Usage: usage}, nil
	case turn == 14:
		if !strings.Contains(said(req), "page 1 ") {
			m.wrong = append(m.wrong, "what was read again is "+said(req))
		}
		return chat.Reply{Text: "Done.", Usage: usage}, nil
	case turn == 13:
		return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "fetch_result", Arguments: `{"ref":"t1.c1","jq":".text[:20]"}`}}, Usage: usage}, nil
	}
	return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "page", Arguments: fmt.Sprintf(`{"n":%d}`, turn)}}, Usage: usage}, nil
}

// TestALargeResultIsReadAgain: after the process has died, by another one, in parts, and in a fork.
func TestALargeResultIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		list := agent.Func("list", "Lists.", func(context.Context, struct{}) ([]any, error) {
			var items []any
			for i := range 500 {
				items = append(items, object{"id": i, "name": fmt.Sprint("item ", i)})
			}
			return items, nil
		})
		stuck, hangs := true, make(chan struct{}, 1)
		m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
			call := func(name, arguments string) (chat.Reply, error) {
				return chat.Reply{Calls: []chat.Call{{ID: "a", Name: name, Arguments: arguments}}}, nil
			}
			switch last := said(req); {
			case strings.Contains(last, "list of 500 items") && stuck:
				hangs <- struct{}{}
				<-ctx.Done()
				return chat.Reply{}, ctx.Err()
			case strings.Contains(last, "list of 500 items"):
				return call("fetch_result", `{"ref":"t1.c1","offset":498}`)
			case strings.Contains(last, "item 499"):
				return call("fetch_result", `{"ref":"t1.c1","jq":"map(select(.id % 100 == 7) | .name)"}`)
			case strings.Contains(last, "item 407"):
				return chat.Reply{Text: last}, nil
			}
			return call("list", "{}")
		})
		offload := func(c *agent.Agent) { c.Results.OffloadBytes = 2048 }
		r := workshop(t, store, m, offload, list)
		begin(t, r, "r")
		<-hangs
		shut(t, r)
		time.Sleep(time.Minute)
		stuck = false
		r = workshop(t, store, m, offload, list)
		defer shut(t, r)
		want := `{"data":{"items":["item 7","item 107","item 207","item 307","item 407"],"of":5,"offset":0}}`
		if run := end(t, r, "r"); run.FinalState["text"] != want {
			t.Errorf("%s %v %v", run.Status, run.Error, run.FinalState)
		}
		for _, rec := range enginetest.Must(store.Read(t.Context(), "r", 1, 0)) {
			if s, _, ok := machine.StepOf(&rec); ok && s.Key == "t1.c1" {
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "f", Seq: rec.Seq}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if run := end(t, r, "f"); run.FinalState["text"] != want {
			t.Errorf("the fork: %s %v %v", run.Status, run.Error, run.FinalState)
		}
	})
}

// TestALongRunIsFlat: what a live agent takes in memory is bounded by its conversation, whatever has been recorded. It is not parallel: it
// measures the heap.
func TestALongRunIsFlat(t *testing.T) {
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	config := agentloop.Config{
		Name: "a", Instructions: "You read.", Models: []agentloop.Model{{Model: "m", MaxTokens: 1000, ContextTokens: 50_000}},
		Budgets: agentloop.Budgets{Turns: 5000, ToolCalls: 5000, WorkMs: 1 << 30},
	}
	before := heap()
	m := agentloop.New(config, "Work.")
	bytes, most := 0, 0
	result := strings.Repeat("0123456789", 1000)
	for turns := 0; turns < 1000; {
		open := m.Ready().Effects
		if len(open) != 1 {
			t.Fatalf("%d effects", len(open))
		}
		var in agentloop.Input
		switch e := open[0].(type) {
		case agentloop.ListTools:
			in = agentloop.ToolsListed{Key: e.Key, Tools: []agent.Tool{{Name: "read", ReadOnly: true}}}
		case agentloop.CallTool:
			in = agentloop.ToolReturned{Key: e.Key, Output: fmt.Sprint(turns, result)}
		case agentloop.AskModel:
			bytes = 0
			for _, msg := range e.Request.Messages {
				bytes += len(msg.Text)
			}
			most = max(most, bytes)
			reply := chat.Reply{Usage: chat.Usage{Prompt: bytes / 4, Completion: 10}}
			if reply.Text = "It was read."; !e.Compacts {
				turns++
				reply.Text, reply.Calls = "", []chat.Call{{ID: "a", Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, turns)}}
			}
			in = agentloop.ModelReplied{Key: e.Key, Try: e.Try, Reply: reply}
		}
		if err := m.Handle(in, time.Unix(int64(turns), 0)); err != nil {
			t.Fatal(err)
		}
	}
	took := heap() - before
	t.Logf("10 MB of results: %d bytes of heap, the largest request has %d", took, most)
	if most > 4*50_000 || took > 3*most+64<<10 {
		t.Errorf("%d bytes of heap, the largest request has %d", took, most)
	}
	runtime.KeepAlive(m)
}
