package agentloop_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestRandomSchedules plays agents against random models, tools, people and deaths. After every input the replay of the journal has the same
// outstanding effects and the same end; so has the replay of every prefix, from which the rest of a batch follows again.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	schedules := soak.Setting("SOAK_SCHEDULES", soak.Size(300, 80, 100_000))
	offset := uint64(soak.Setting("SOAK_SEED", 0))
	// Schedules leave only garbage; collecting it less often saves time.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	ends, kinds := map[string]int{}, map[string]int{}
	var counts sync.Mutex
	t.Run("at once", func(t *testing.T) {
		workers := runtime.GOMAXPROCS(0)
		for w := range workers {
			t.Run(itoa(w), func(t *testing.T) {
				t.Parallel()
				for n := w; n < schedules; n += workers {
					s := &schedule{rng: rand.New(rand.NewPCG(offset+uint64(n), 5)), fails: rand.New(rand.NewPCG(offset+uint64(n), 6)), kinds: map[string]int{}}
					end := s.run(t, n)
					if t.Failed() {
						return
					}
					counts.Lock()
					ends[end]++
					for kind, seen := range s.kinds {
						kinds[kind] += seen
					}
					counts.Unlock()
				}
			})
		}
	})
	t.Logf("%d schedules: %v, %v", schedules, ends, kinds)
	for _, kind := range []string{"shrunk", "summary", "dropped", "compact", "fetched", "next", "round", "return", "retry", "reconfigured"} {
		if kinds[kind] == 0 && schedules >= 1000 {
			t.Errorf("no schedule has had %s", kind)
		}
	}
	for _, stop := range []string{"answer", "turns", "tool_calls", "tokens", "time", "loop", "person", "hook", "error"} {
		if ends[stop] == 0 && schedules >= 1000 {
			t.Errorf("no schedule has ended by %s", stop)
		}
	}
}

// TestSchedulesThatFailed repeats those that have found a fault.
func TestSchedulesThatFailed(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{
		3014956, // with another wording, a question about one sub-agent was raised while the other one was yet to be followed
		3024536, // with another wording, a turn that was asked when the time ended was taken for a summary
		3055392, // with another wording, a budget ended an agent between two tries to sum up
	} {
		s := &schedule{rng: rand.New(rand.NewPCG(seed, 5)), kinds: map[string]int{}}
		s.run(t, 152) // as one of which some steps are checked, with another wording too
	}
}

type schedule struct {
	rng   *rand.Rand
	tools []agentloop.Tool
	// long schedules answer seldom.
	long bool
	// kinds counts what has been recorded of compactions and of fetch_result.
	kinds map[string]int
	// returned are the calls whose results are recorded, retries counts how often the agent has gone on after a failure.
	returned map[string]bool
	retries  int
	// fails draws the failures of attempts and their retries; nil for none. It leaves what rng draws as it is.
	fails *rand.Rand
}

// retry goes on after a failure, as the retry of a run and that of a node do, and reports whether that can be done. No call that has a result is
// outstanding then, and none that does more than read is left out: it would be made again under another key.
func (s *schedule) retry(b *bench, code problem.Code) bool {
	b.t.Helper()
	if s.fails == nil || s.fails.IntN(2) > 0 || s.retries >= 3 || agentsteps.Ended(string(code)) || agentsteps.Spent(string(code)) {
		return false
	}
	plain := make([]agentsteps.Step, len(b.journal))
	for i, step := range b.journal {
		plain[i] = agentsteps.Step{Key: step.Key, Kind: step.Kind, Body: step.Body, Totals: step.Totals}
	}
	if !agentsteps.Of(plain) {
		return false
	}
	n := agentsteps.Kept(plain, string(code))
	kept := agentsteps.Effects(plain[:n])
	for _, made := range agentsteps.Effects(plain) {
		if !made.Open && !slices.ContainsFunc(kept, func(c agentsteps.Call) bool { return c.Key == made.Key && !c.Open }) {
			b.t.Errorf("after %s, the call %s is left out\n%s", code, made.Key, b.text())
		}
	}
	s.retries++
	s.kinds["retry"]++
	b.journal, b.asked = b.journal[:n:n], ""
	for _, step := range b.journal {
		switch step.Kind {
		case agentloop.StepQuestion:
			b.asked = step.Key
		case agentloop.StepAnswer:
			b.asked = ""
		}
	}
	b.record(agentloop.Step{Key: "0", Kind: agentloop.StepContinued, Body: agentsteps.SeamBody(string(code), "It failed.", false)})
	b.m = b.rebuild(true)
	b.drain()
	b.check()
	return true
}

// count notes which of the rarer steps a schedule has had.
func (s *schedule) count(journal []agentloop.Step) {
	for i := range journal {
		b := journal[i].Body
		for _, what := range []string{"shrunk", "summary", "dropped", "compact"} {
			if _, ok := b[what]; ok && (journal[i].Kind == agentloop.StepCompacted || what == "compact") {
				s.kinds[what]++
			}
		}
		switch {
		case journal[i].Kind == agentloop.StepTried && b["to"] != nil && b["retryAt"] != nil:
			s.kinds["round"]++
		case journal[i].Kind == agentloop.StepTried && b["to"] != nil:
			s.kinds["next"]++
		case b["decision"] == "return":
			s.kinds["return"]++
		}
		if b["tool"] == "fetch_result" && b["output"] != nil {
			s.kinds["fetched"]++
		}
	}
}

func (s *schedule) one(of ...string) string { return of[s.rng.IntN(len(of))] }

func (s *schedule) often(percent int) bool { return s.rng.IntN(100) < percent }

func (s *schedule) config(name string, depth int) agentloop.Config {
	r := s.rng
	c := agentloop.Config{
		Name: name, Instructions: "Do it.", Models: []agentloop.Model{{Model: "m", MaxTokens: 1000, Price: &agentloop.Price{Input: 1, Output: 2}}},
		MaxConcurrency: 1 + r.IntN(3), MaxDepth: 1 + r.IntN(2), AskPerson: s.often(50),
		Budgets: agentloop.Budgets{Turns: 1 + r.IntN(12), ToolCalls: 1 + r.IntN(15), WorkMs: 1 + r.IntN(4000), OnExceeded: s.one("", "finish")},
		Hooks:   agentloop.Hooks{BeforeTool: s.often(20), AfterTurn: s.often(20)},
	}
	if s.often(30) {
		c.Models = append(c.Models, agentloop.Model{Model: "other", MaxTokens: 500, Price: &agentloop.Price{Input: 3, Output: 4}})
		if s.often(30) {
			c.Models = append(c.Models, agentloop.Model{Name: "third", Model: "m", MaxTokens: 300, Price: &agentloop.Price{Input: 1, Output: 1}})
		}
		if s.often(50) {
			c.Fallback = &agentloop.Fallback{AfterTries: 1 + r.IntN(3), ReturnAfterMs: 1 + r.IntN(30)}
			if s.often(50) {
				c.Fallback.On = chat.Classes()
			}
		}
	}
	if s.often(30) {
		c.Budgets.Tokens = 500 + r.IntN(5000)
	}
	if s.often(30) {
		c.Budgets.CostMicros = 500 + r.IntN(9000)
	}
	if s.often(30) {
		c.Output = &agentloop.Output{Repairs: r.IntN(3), Schema: map[string]any{"type": "object", "required": []any{"n"}}}
	}
	if s.often(40) {
		c.Results = agentloop.Results{OffloadBytes: r.IntN(2) * 20, PreviewChars: 1 + r.IntN(20), MaxChars: 10 + r.IntN(200)}
	}
	if s.often(60) {
		c.Models[0].ContextTokens, c.Models[0].MaxTokens = 400+r.IntN(1500), 100
		c.Compaction = agentloop.Compaction{KeepTurns: 1 + r.IntN(3), SummaryMaxTokens: 50, Threshold: []float64{0, 0.3, 1}[r.IntN(3)]}
		if s.often(30) {
			c.Compaction.Model = &agentloop.Model{Model: "sums", Price: &agentloop.Price{Input: 1, Output: 1}}
		}
	}
	for range r.IntN(3) {
		g := agentloop.Gate{Tools: []string{s.one("*", "a", "b", "[")}, Do: s.one("allow", "ask", "deny", "ask"), Unless: s.one("", "read_only"), TimeoutMs: r.IntN(2) * 5000}
		g.When = s.one("", ".arguments.n > 1", "error", "(", ".turn == 2", "now > 0")
		c.Gates = append(c.Gates, g)
	}
	if depth == 0 && s.often(20) { // a long conversation
		s.long = true
		c.Budgets = agentloop.Budgets{Turns: 25, ToolCalls: 70, WorkMs: 1 << 20, OnExceeded: c.Budgets.OnExceeded}
		c.Models[0].ContextTokens, c.Models[0].MaxTokens = 800+r.IntN(800), 100
	}
	if depth < 2 {
		for i := range r.IntN(3) {
			c.Agents = append(c.Agents, agentloop.Sub{Config: s.config(fmt.Sprintf("sub%d", i), depth+1), Parallel: s.often(60), Gate: s.one("", "ask")})
		}
	}
	return c
}

func (s *schedule) run(t *testing.T, n int) string {
	for _, name := range []string{"a", "b", "c", "d"} {
		tool := agentloop.Tool{Name: name, Source: "test", Parallel: s.often(60), ReadOnly: s.often(40), OnCrash: s.one("", "repeat", "report", "ask"), Gate: s.one("", "", "ask", "deny")}
		if s.often(25) { // compiling schemas takes most of the time
			tool.Parameters = map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number"}}}
		}
		s.tools = append(s.tools, tool)
	}
	s.returned = map[string]bool{}
	b := newBench(t, s.config("root", 0), "go")
	defer func() {
		s.count(b.journal)
		if t.Failed() {
			t.Logf("schedule %d; SOAK_SEED is added to it", n)
		}
	}()
	for step := 0; ; step++ {
		if t.Failed() {
			return ""
		}
		if d := b.last.Done; d != nil && d.Failure != nil && s.retry(b, d.Failure.Code) {
			continue
		} else if d != nil {
			if err := b.m.Handle(agentloop.Cancelled{}, b.now); err == nil {
				t.Error("an ended agent took an input")
			}
			if s.reconfigure(b, d.Failure) {
				continue
			}
			return d.Stop
		}
		if step > 9000 {
			t.Errorf("schedule %d has no end\n%s", n, b.text())
			return ""
		}
		if s.often(5) && len(b.journal) > 0 {
			b.m = b.rebuild(true)
			b.asked = map[bool]string{true: b.asked}[b.asked != ""]
			b.drain()
			b.check()
			continue
		}
		if s.fails != nil && s.fails.IntN(300) == 0 && s.retry(b, problem.Timeout) { // the time of the node is over, whatever goes on
			continue
		}
		in := s.input(b)
		if in == nil {
			t.Errorf("nothing is outstanding\n%s", b.text())
			return ""
		}
		before := len(b.journal)
		if err := b.try(in); err != nil {
			if len(b.journal) != before {
				t.Errorf("%T was refused and recorded: %v", in, err)
			}
			continue
		}
		if r, ok := in.(agentloop.ToolReturned); ok {
			if s.returned[r.Key] {
				t.Errorf("%s is made again\n%s", r.Key, b.text())
			}
			s.returned[r.Key] = true
		}
		if _, cancelled := in.(agentloop.Cancelled); cancelled {
			return "cancelled"
		}
		if n < 150 || s.often(12) || b.last.Done != nil {
			b.check()
			b.checkCuts(b.last.Steps)
			if n%4 == 0 {
				b.checkOtherWording()
			}
		}
	}
}

// reconfigure goes on with today's configuration after a failure, as a retry of the run does, and reports whether that can be done.
func (s *schedule) reconfigure(b *bench, f *agentloop.Failure) bool {
	b.t.Helper()
	var steps []agentsteps.Step
	for _, step := range b.journal {
		steps = append(steps, agentsteps.Step{Key: step.Key, Kind: step.Kind, Body: step.Body})
	}
	if s.fails == nil || f == nil || s.retries >= 6 || agentsteps.Ended(string(f.Code)) || !agentsteps.Of(steps) || s.fails.IntN(100) >= 40 {
		return false
	}
	s.retries++
	b.journal = slices.Clip(b.journal[:agentsteps.Kept(steps, string(f.Code))])
	b.now = b.now.Add(time.Minute)
	b.record(agentloop.Step{Key: "0", Kind: agentloop.StepContinued, Body: agentsteps.SeamBody(string(f.Code), f.Message, true), At: b.now})
	m, err := agentloop.Replay(b.journal, true)
	if err != nil {
		b.t.Fatalf("a retry after %s: %v\n%s", f.Code, err, b.text())
	}
	b.m, b.asked = m, ""
	if !m.Reconfigures() {
		b.t.Error("a retry does not ask for today's configuration")
	}
	s.kinds["reconfigured"]++
	if open := m.Outstanding(); len(open) > 0 {
		b.t.Errorf("before it has today's configuration the agent asks for %v", ids(open))
	}
	today, dies := s.config("root", 0), s.often(50)
	spent := m.Totals()
	today.Budgets.Turns += spent.Turns
	if s.often(80) {
		today.Budgets.ToolCalls, today.Budgets.WorkMs, today.Budgets.Tokens, today.Budgets.CostMicros = today.Budgets.ToolCalls+spent.ToolCalls, today.Budgets.WorkMs+spent.WorkMs, 0, 0
	}
	b.handle(agentloop.Reconfigured{Config: today})
	if dies {
		b.m = b.rebuild(true)
		b.drain()
	}
	b.check()
	if d := b.last.Done; d != nil && spent.Turns < today.Budgets.Turns && d.Failure != nil && d.Failure.Code == f.Code && f.Code == problem.AgentTurnsExceeded {
		b.t.Errorf("the budget of turns was raised to %d, and the agent has ended after %d: %s", today.Budgets.Turns, spent.Turns, d.Failure.Message)
	}
	return true
}

// input draws what happens next; some of it does not fit.
func (s *schedule) input(b *bench) agentloop.Input {
	if s.often(1) && s.often(30) {
		return agentloop.Cancelled{Reason: "enough"}
	}
	if s.often(1) && len(b.journal) > 0 {
		return agentloop.Expired{Worked: time.Second}
	}
	if q := b.last.Question; q != nil {
		return s.answer(q)
	}
	open := b.m.Outstanding()
	if len(open) == 0 {
		return nil
	}
	worked := time.Duration(s.rng.IntN(300)) * time.Millisecond
	switch e := open[s.rng.IntN(len(open))].(type) {
	case agentloop.ListTools:
		if s.often(3) {
			return agentloop.ToolsListed{Key: e.Key, Failure: &agentloop.Failure{Code: problem.MCPServerNotConfigured, Message: "no"}}
		}
		return agentloop.ToolsListed{Key: e.Key, Tools: s.tools}
	case agentloop.Rest:
		b.now = e.Until
		return agentloop.Woken{Key: e.Key}
	case agentloop.Decide:
		if e.Tool == "" {
			return agentloop.Decided{Key: e.Key, Decision: s.one("allow", "allow", "allow", "allow", "stop", "nonsense")}
		}
		return agentloop.Decided{Key: e.Key, Decision: s.one("allow", "allow", "ask", "deny", "replace", "nonsense"), Reason: "hook", Arguments: map[string]any{"n": 3, "task": "t", "question": "q?"}}
	case agentloop.FetchResult:
		return b.fetch(e)
	case agentloop.CallTool:
		switch s.rng.IntN(6) {
		case 0:
			return agentloop.ToolReturned{Key: e.Key, Failure: &agentloop.Failure{Code: problem.MCPToolExecutionError, Message: "broken"}, Worked: worked}
		case 1:
			return agentloop.ToolReturned{Key: e.Key + "x", Output: 1}
		}
		if s.often(30) {
			return agentloop.ToolReturned{Key: e.Key, Output: []any{strings.Repeat(e.Key, s.rng.IntN(80)), s.rng.IntN(100)}, Worked: worked}
		}
		return agentloop.ToolReturned{Key: e.Key, Output: map[string]any{"n": s.rng.IntN(100)}, Worked: worked}
	case agentloop.AskModel:
		if s.often(12) {
			return agentloop.ModelFailed{
				Key: e.Key, Try: e.Try, Code: problem.Code(s.one(string(problem.LLMProviderError), string(problem.Timeout), chat.CodeContextExceeded)), Message: "busy", Worked: worked,
				Final: s.often(10), Overloaded: s.often(40), Class: s.class(), Status: s.rng.IntN(3) * 429, After: time.Duration(s.rng.IntN(3)) * time.Second, Usage: chat.Usage{Prompt: s.rng.IntN(10)},
			}
		}
		if e.Compacts {
			return agentloop.ModelReplied{Key: e.Key, Try: e.Try, Worked: worked, Reply: chat.Reply{
				Model: e.Request.Model, Text: s.one("It was long.", "It was long; see t1.c1.", "", "cut"), Finish: chat.Finish(s.one("stop", "length")), Usage: chat.Usage{Prompt: s.rng.IntN(100), Completion: 9},
			}}
		}
		return agentloop.ModelReplied{Key: e.Key, Try: e.Try, Worked: worked, Reply: s.reply(e)}
	}
	return nil
}

// class is one of a model that classifies, or none.
func (s *schedule) class() chat.Class {
	if all := chat.Classes(); s.often(60) {
		return all[s.rng.IntN(len(all))]
	}
	return ""
}

func (s *schedule) reply(e agentloop.AskModel) chat.Reply {
	r := chat.Reply{Model: e.Request.Model, Finish: chat.FinishStop, Usage: chat.Usage{Prompt: s.rng.IntN(200), Cached: s.rng.IntN(50), Completion: s.rng.IntN(60)}}
	if s.often(40) { // what a provider counts is seldom what the texts weigh
		r.Usage.Prompt = len(fmt.Sprint(e.Request.Messages)) / (1 + s.rng.IntN(6))
	}
	most := 16
	if s.long {
		most = 80
	}
	switch s.rng.IntN(most) {
	case 0:
		r.Text, r.Finish = "half of a", chat.FinishLength
	case 1: // empty
	case 2:
		r.Text, r.Finish = "withheld", chat.Finish(s.one("content_filter", "stop"))
	case 3, 4:
		r.Text = s.one("done", `{"n":1}`, "```json\n{\"n\":2}\n```", `{"m":1}`)
	default:
		for i := range 1 + s.rng.IntN(4) {
			c := chat.Call{ID: fmt.Sprint("c", i), Name: s.one("a", "b", "c", "d", "a", "b", "ask_person", "agent__sub0", "agent__sub1", "nothing", "fetch_result"), Arguments: fmt.Sprintf(`{"n":%d}`, s.rng.IntN(3))}
			switch {
			case c.Name == "ask_person":
				c.Arguments = s.one(`{"question":"Which?"}`, `{"question":"Which?","schema":{"type":"object","required":["x"]}}`)
			case c.Name == "fetch_result":
				c.Arguments = fmt.Sprintf(`{"ref":%q,"offset":%d%s}`, e.Key[:strings.LastIndex(e.Key, "/")+1]+fmt.Sprintf("t%d.c%d", 1+s.rng.IntN(4), 1+s.rng.IntN(3)), s.rng.IntN(3), s.one("", `,"jq":".[0]"`, `,"limit":2`))
			case c.Name[0] == 'a' && len(c.Name) > 1:
				c.Arguments = s.one(`{"task":"part"}`, `{"task":" "}`)
			case s.often(8):
				c.Arguments = s.one("{", `{"n":"x"}`, "[]", "")
			}
			r.Calls = append(r.Calls, c)
		}
	}
	return r
}

func (s *schedule) answer(q *agentloop.Question) agentloop.Input {
	if !q.Expires.IsZero() && s.often(20) {
		return agentloop.Answered{Key: q.Key, Payload: q.Otherwise, Expired: true}
	}
	if q.Body["about"] == "person" {
		return agentloop.Answered{Key: q.Key, Payload: map[string]any{s.one("x", "y"): "blue"}}
	}
	decide := func() map[string]any {
		d := map[string]any{"decision": s.one("approve", "approve", "deny", "edit", "respond", "nonsense")}
		if s.often(4) {
			d["decision"] = "stop"
		}
		d["arguments"], d["result"], d["remember"] = map[string]any{"n": float64(s.rng.IntN(9)), "task": "t", "question": "q"}, "mine", s.often(30)
		if s.often(5) {
			d["digest"] = "wrong"
		}
		return d
	}
	if s.often(40) {
		return agentloop.Answered{Key: q.Key, Payload: decide()}
	}
	calls := map[string]any{}
	for _, v := range q.Body["calls"].([]any) {
		c := v.(map[string]any)
		if s.often(95) {
			d := decide()
			if s.often(50) && d["digest"] == nil {
				d["digest"] = c["digest"]
			}
			calls[c["key"].(string)] = d
		}
	}
	return agentloop.Answered{Key: q.Key, Payload: map[string]any{"calls": calls}}
}
