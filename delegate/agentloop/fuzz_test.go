package agentloop_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzReplay replays damaged journals: they are refused with AGENT_JOURNAL_INVALID, or make a machine that goes on without a panic.
func FuzzReplay(f *testing.F) {
	for n := range uint64(30) {
		s := &schedule{rng: rand.New(rand.NewPCG(n, 9))}
		f.Add(journalOf(f, s), n%2 == 0)
	}
	f.Add([]byte(`[{"Key":"0","Kind":"begun","Body":{"v":1}}]`), true)
	f.Fuzz(func(t *testing.T, text []byte, begun bool) {
		v, err := jsonvalue.Decode(text)
		if err != nil || len(text) > 1<<20 {
			t.Skip("journals are JSON, of a size that the fuzzer gets through")
		}
		var steps []agentloop.Step
		if json.Unmarshal(jsonvalue.Canonical(v), &steps) != nil {
			t.Skip("journals are lists of steps")
		}
		m, err := agentloop.Replay(steps, begun)
		if err != nil {
			if !errors.Is(err, problem.AgentJournalInvalid) {
				t.Fatal(err)
			}
			return
		}
		for range 20 {
			b := m.Ready()
			if b.Question != nil {
				_ = m.Check(map[string]any{"decision": "approve"})
				_ = m.Handle(agentloop.Answered{Key: b.Question.Key, Payload: map[string]any{"decision": "approve"}}, epoch)
				continue
			}
			open := m.Outstanding()
			if len(open) == 0 {
				break
			}
			var in agentloop.Input
			switch e := open[0].(type) {
			case agentloop.ListTools:
				in = agentloop.ToolsListed{Key: e.Key, Tools: tools()}
			case agentloop.AskModel:
				in = agentloop.ModelReplied{Key: e.Key, Try: e.Try, Reply: calls("read", "write")}
			case agentloop.FetchResult:
				in = agentloop.ToolReturned{Key: e.Key, Output: 1}
			case agentloop.CallTool:
				in = agentloop.ToolReturned{Key: e.Key, Output: 1}
			case agentloop.Decide:
				in = agentloop.Decided{Key: e.Key, Decision: "allow"}
			case agentloop.Rest:
				_ = m.Handle(agentloop.Woken{Key: e.Key}, e.Until)
				continue
			}
			if err := m.Handle(in, epoch); err != nil {
				t.Fatalf("%T: %v", in, err)
			}
		}
	})
}

// journalOf plays a short schedule.
func journalOf(tb testing.TB, s *schedule) []byte {
	s.tools = tools()
	b := newBench(tb, s.config("root", 0), "go")
	for range 12 {
		if b.last.Done != nil {
			break
		}
		if in := s.input(b); in != nil {
			_ = b.try(in)
		}
	}
	text, err := json.Marshal(b.journal)
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// BenchmarkTurn is what a turn with one call costs the machine, early and late in a conversation: the results are 1 kB each.
func BenchmarkTurn(b *testing.B) {
	for _, turn := range []int{1, 500} {
		b.Run(itoa(turn), func(b *testing.B) {
			result := map[string]any{"text": long1k()}
			b.ReportAllocs()
			b.StopTimer()
			for n := 0; n < b.N; {
				config := helper()
				config.Budgets.Turns, config.Budgets.ToolCalls, config.Budgets.WorkMs = 100_000, 100_000, 1<<30
				m := agentloop.New(config, "Do it.")
				m.Ready()
				must(b, m.Handle(agentloop.ToolsListed{Key: "0", Tools: tools()}, epoch))
				m.Ready()
				for at := 1; at <= turn+50; at++ {
					if at == turn {
						b.StartTimer()
					}
					if at >= turn {
						if n++; n > b.N {
							break
						}
					}
					must(b, m.Handle(agentloop.ModelReplied{Key: "t" + itoa(at), Try: 1, Reply: calls(`read {"n":` + itoa(at) + `}`), Worked: time.Second}, epoch))
					m.Ready()
					must(b, m.Handle(agentloop.ToolReturned{Key: "t" + itoa(at) + ".c1", Output: result}, epoch))
					m.Ready()
				}
				b.StopTimer()
			}
		})
	}
}

// BenchmarkReplay is a new process that goes on after 250 turns of 20 kB: 500 steps, 5 MB.
func BenchmarkReplay(b *testing.B) {
	config := helper()
	config.Budgets.Turns, config.Budgets.ToolCalls = 1000, 1000
	r := newBench(b, config, "Do it.")
	r.handle(agentloop.ToolsListed{Key: "0", Tools: tools()})
	result := ""
	for range 20 {
		result += long1k()
	}
	for at := 1; at <= 250; at++ {
		r.handle(agentloop.ModelReplied{Key: "t" + itoa(at), Try: 1, Reply: calls(`read {"n":` + itoa(at) + `}`)})
		r.handle(agentloop.ToolReturned{Key: "t" + itoa(at) + ".c1", Output: result})
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := agentloop.Replay(r.journal, true); err != nil {
			b.Fatal(err)
		}
	}
}

func long1k() string {
	text := make([]byte, 1000)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return string(text)
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}
