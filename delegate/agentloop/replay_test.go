package agentloop_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func model() agentloop.Model { return agentloop.Model{Model: "m", MaxTokens: 1000} }

func helper() agentloop.Config {
	return agentloop.Config{Name: "helper", Instructions: "Be short.", Models: []agentloop.Model{model()}}
}

func tools() []agentloop.Tool {
	any := map[string]any{"type": "object"}
	return []agentloop.Tool{
		{Name: "read", Parameters: any, Parallel: true, ReadOnly: true}, {Name: "write", Parameters: any}, {Name: "refund", Parameters: any, Gate: "ask"},
		{Name: "total", Source: "step urn:example:total", Parameters: any, Parallel: true, OnCrash: "repeat"},
	}
}

func calls(of ...string) chat.Reply {
	r := chat.Reply{Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 10, Completion: 5}}
	for i, name := range of {
		name, args, _ := strings.Cut(name, " ")
		r.Calls = append(r.Calls, chat.Call{ID: string(rune('a' + i)), Name: name, Arguments: args})
	}
	return r
}

func says(text string) chat.Reply {
	return chat.Reply{Text: text, Finish: chat.FinishStop, Usage: chat.Usage{Prompt: 10, Completion: 5}}
}

// begin returns an agent whose first reply has come.
func begin(t *testing.T, config agentloop.Config, first chat.Reply) *bench {
	t.Helper()
	b := newBench(t, config, "Do it.")
	b.handle(agentloop.ToolsListed{Key: "0", Tools: tools()})
	b.handle(agentloop.ModelReplied{Key: "t1", Try: 1, Reply: first, Worked: time.Second})
	return b
}

func ids(effects []agentloop.Effect) []string {
	var out []string
	for _, e := range effects {
		out = append(out, e.ID())
	}
	return out
}

func wantIDs(t *testing.T, effects []agentloop.Effect, want ...string) {
	t.Helper()
	if got := ids(effects); !slices.Equal(got, want) {
		t.Errorf("effects %q, expected %q", got, want)
	}
}

func request(t *testing.T, m *agentloop.Machine) string {
	t.Helper()
	for _, e := range m.Outstanding() {
		if a, ok := e.(agentloop.AskModel); ok {
			text, err := json.Marshal(a.Request)
			if err != nil {
				t.Fatal(err)
			}
			return a.ID() + " " + string(text)
		}
	}
	t.Fatal("no model is asked")
	return ""
}

func TestReplayBeforeTheReplyAsksTheSame(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`read {"b":1,"a":"<&>"}`))
	b.handle(agentloop.ToolReturned{Key: "t1.c1", Output: map[string]any{"x": 1.5, "é": "\u2028"}})
	for _, begun := range []bool{false, true} {
		again := b.rebuild(begun)
		if want, got := request(t, b.m), request(t, again); want != got || !strings.HasPrefix(got, "ask t2#1 ") {
			t.Errorf("begun %v\nwant %s\ngot  %s", begun, want, got)
		}
		if s := again.Ready().Steps; len(s) > 0 {
			t.Errorf("there are steps to record: %+v", s)
		}
	}
}

func TestReplayAfterTheReplyAsksNoModel(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls("read", "read"))
	wantIDs(t, b.rebuild(true).Outstanding(), "call t1.c1", "call t1.c2")
	b = begin(t, helper(), calls("refund"))
	again := b.rebuild(true)
	if q := again.Ready().Question; len(again.Outstanding()) != 0 || q == nil || q.Key != "q1" {
		t.Errorf("%v is outstanding, and the question %+v", ids(again.Outstanding()), q)
	}
}

func TestReplayKeepsAWholeBatch(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`read {"n":1}`, `total {"n":2}`, `read {"n":3}`, `total {"n":4}`, `read {"n":5}`))
	open := b.rebuild(true).Outstanding()
	wantIDs(t, open, "call t1.c1", "call t1.c2", "call t1.c3", "call t1.c4", "call t1.c5")
	for i, e := range open {
		c := e.(agentloop.CallTool)
		if c.Arguments["n"] != float64(i+1) || c.Tool != []string{"read", "total"}[i%2] {
			t.Errorf("%+v", c)
		}
	}
}

func TestReplayAfterMixedResults(t *testing.T) {
	t.Parallel()
	config := helper()
	config.Gates = []agentloop.Gate{{Tools: []string{"write"}, Do: "deny", Reason: "no"}}
	b := begin(t, config, calls(`read {"n":1}`, `read {"n":2}`, "write"))
	b.handle(agentloop.ToolReturned{Key: "t1.c2", Failure: &agentloop.Failure{Code: problem.MCPToolExecutionError, Message: "gone"}})
	b.handle(agentloop.ToolReturned{Key: "t1.c1", Output: "fine"})
	again := b.rebuild(true)
	got := request(t, again)
	for _, text := range []string{`{\"data\":\"fine\"}`, `MCP_TOOL_EXECUTION_ERROR`, `TOOL_DENIED`} {
		if strings.Count(got, text) != 1 {
			t.Errorf("%s stands %d times in %s", text, strings.Count(got, text), got)
		}
	}
	if s := again.Ready().Steps; len(s) > 0 || got != request(t, b.m) {
		t.Errorf("steps %+v are written again, or the request differs", s)
	}
}

func TestReplayKeepsASubAgentWhereItStood(t *testing.T) {
	t.Parallel()
	config := helper()
	deep := helper()
	deep.Name = "deep"
	sub := helper()
	sub.Name, sub.Agents = "sub", []agentloop.Sub{{Config: deep}}
	config.Agents = []agentloop.Sub{{Config: sub}}
	b := begin(t, config, calls(`agent__sub {"task":"part"}`))
	b.handle(agentloop.ToolsListed{Key: "t1.c1/0", Tools: tools()})
	b.handle(agentloop.ModelReplied{Key: "t1.c1/t1", Try: 1, Reply: calls(`agent__deep {"task":"smaller part"}`)})
	b.handle(agentloop.ToolsListed{Key: "t1.c1/t1.c1/0", Tools: tools()})
	b.handle(agentloop.ModelReplied{Key: "t1.c1/t1.c1/t1", Try: 1, Reply: calls("read", "refund")})
	b.check()
	wantIDs(t, b.rebuild(true).Outstanding(), "call t1.c1/t1.c1/t1.c1")
	b.handle(agentloop.ToolReturned{Key: "t1.c1/t1.c1/t1.c1", Output: 1})
	b.m = b.rebuild(true)
	b.drain()
	b.handle(agentloop.Answered{Key: "q1", Payload: map[string]any{"decision": "approve"}})
	wantIDs(t, b.rebuild(false).Outstanding(), "call t1.c1/t1.c1/t1.c2")
}

func TestReplayAfterStopEndsTheSame(t *testing.T) {
	t.Parallel()
	hooked := helper()
	hooked.Hooks.AfterTurn = true
	short := helper()
	short.Budgets.Turns = 1
	ends := map[string]struct {
		config agentloop.Config
		first  string
		then   agentloop.Input
	}{
		"person": {helper(), "refund", agentloop.Answered{Key: "q1", Payload: map[string]any{"decision": "stop"}}},
		"hook":   {hooked, "nothing", agentloop.Decided{Key: "t1", Decision: "stop", Reason: "enough"}},
		"turns":  {short, "read", agentloop.ToolReturned{Key: "t1.c1", Output: 1}},
		"time":   {helper(), "read", agentloop.Expired{Worked: time.Hour}},
	}
	for stop, end := range ends {
		b := begin(t, end.config, calls(end.first))
		b.handle(end.then)
		if b.last.Done == nil || b.last.Done.Stop != stop {
			t.Fatalf("%s: %+v", stop, b.last.Done)
		}
		b.check()
		if s := b.rebuild(true).Ready(); len(s.Steps)+len(s.Effects) > 0 {
			t.Errorf("%s: after the end %+v", stop, s)
		}
	}
}

func TestReplayReissuesAStepProgramCall(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`total {"prices":[1,2.5]}`))
	want, _ := json.Marshal(b.m.Outstanding())
	got, _ := json.Marshal(b.rebuild(true).Outstanding())
	if string(want) != string(got) || !strings.Contains(string(got), `"Source":"step urn:example:total","Arguments":{"prices":[1,2.5]}`) {
		t.Errorf("want %s\ngot  %s", want, got)
	}
}

func TestReplayKeepsStructuredOutcomes(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls("total", "total"))
	b.handle(agentloop.ToolReturned{Key: "t1.c2", Output: map[string]any{"sum": 3.5, "of": []any{1, nil, "x"}}})
	b.handle(agentloop.ToolReturned{Key: "t1.c1", Failure: &agentloop.Failure{Code: problem.StepCommandFailed, Message: "status 3"}})
	got := request(t, b.rebuild(false))
	for _, text := range []string{`{\"data\":{\"of\":[1,null,\"x\"],\"sum\":3.5}}`, `{\"error\":{\"code\":\"STEP_COMMAND_FAILED\",\"message\":\"status 3\"}}`} {
		if !strings.Contains(got, text) {
			t.Errorf("%s is not in %s", text, got)
		}
	}
}

// TestTurn51IsNeverAsked: 50 turns are the default.
func TestTurn51IsNeverAsked(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`read {"n":1}`))
	for n := 2; b.last.Done == nil; n++ {
		b.handle(agentloop.ToolReturned{Key: "t" + itoa(n-1) + ".c1", Output: n})
		if b.last.Done == nil {
			b.handle(agentloop.ModelReplied{Key: "t" + itoa(n), Try: 1, Reply: calls(`read {"n":` + itoa(n) + `}`)})
		}
	}
	if d := b.last.Done; d.Failure.Code != problem.AgentTurnsExceeded || d.Totals.Turns != 50 {
		t.Errorf("%+v", d)
	}
}

// TestRequestsOnlyGrow: request n+1 is request n plus messages.
func TestRequestsOnlyGrow(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`read {"n":1}`))
	var before chat.Request
	for n := 2; n < 12; n++ {
		b.handle(agentloop.ToolReturned{Key: "t" + itoa(n-1) + ".c1", Output: n})
		r := b.m.Outstanding()[0].(agentloop.AskModel).Request
		want, _ := json.Marshal(before.Messages)
		got, _ := json.Marshal(r.Messages[:len(before.Messages)])
		if len(before.Messages) > 0 && string(want) != string(got) {
			t.Errorf("request %d changes what was sent before", n)
		}
		before = r
		b.handle(agentloop.ModelReplied{Key: "t" + itoa(n), Try: 1, Reply: calls(`read {"n":` + itoa(n) + `}`)})
	}
}

// TestHandleWantsReady: what is not handed out yet is not lost by the next input.
func TestHandleWantsReady(t *testing.T) {
	t.Parallel()
	m := agentloop.New(helper(), "Do it.")
	m.Ready()
	if err := m.Handle(agentloop.ToolsListed{Key: "0"}, epoch); err != nil {
		t.Fatal(err)
	}
	if err := m.Handle(agentloop.ModelReplied{Key: "t1", Try: 1, Reply: says("x")}, epoch); !errors.Is(err, problem.ValidationError) {
		t.Errorf("%v", err)
	}
}

// TestReplayRefusesOtherSteps: a journal that was changed is not an agent's.
func TestReplayRefusesOtherSteps(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls("read", "nothing"))
	b.handle(agentloop.ToolReturned{Key: "t1.c1", Output: 1})
	b.handle(agentloop.ModelReplied{Key: "t2", Try: 1, Reply: says("Done.")})
	b.check()
	for i := range b.journal {
		for what, change := range map[string]func([]agentloop.Step) []agentloop.Step{
			"left out": func(s []agentloop.Step) []agentloop.Step { return slices.Delete(s, i, i+1) },
			"twice":    func(s []agentloop.Step) []agentloop.Step { return slices.Insert(s, i, s[i]) },
			"changed": func(s []agentloop.Step) []agentloop.Step {
				s[i].Key += "x"
				return s
			},
			"of another kind": func(s []agentloop.Step) []agentloop.Step {
				s[i].Kind = "compacted"
				return s
			},
			"with other totals": func(s []agentloop.Step) []agentloop.Step {
				s[i].Totals = map[string]any{"turns": 99.0}
				return s
			},
		} {
			if i == len(b.journal)-1 && what == "left out" {
				continue
			}
			if _, err := agentloop.Replay(change(slices.Clone(b.journal)), false); !errors.Is(err, problem.AgentJournalInvalid) {
				t.Errorf("step %d %s: %v", i, what, err)
			}
		}
	}
}

func itoa(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}

// TestATurnIsTwoBatches: a turn with one call is recorded in two commits, one with T calls in at most 1 + T.
func TestATurnIsTwoBatches(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls(`read {"n":1}`))
	commits := 0
	count := func(in agentloop.Input) {
		b.handle(in)
		if len(b.last.Steps) > 0 {
			commits++
		}
	}
	count(agentloop.ToolReturned{Key: "t1.c1", Output: 1})
	count(agentloop.ModelReplied{Key: "t2", Try: 1, Reply: calls("read", "nothing", "write")})
	if commits != 2 {
		t.Errorf("a turn with one call took %d commits", commits)
	}
	count(agentloop.ToolReturned{Key: "t2.c1", Output: 1})
	count(agentloop.ToolReturned{Key: "t2.c3", Output: 1})
	if commits != 4 {
		t.Errorf("a turn with three calls, of which two were made, took %d commits", commits-1)
	}
}

// TestABrokenRuleAsks: a rule whose pattern or program is none neither lets a call pass nor is passed by.
func TestABrokenRuleAsks(t *testing.T) {
	t.Parallel()
	for _, g := range []agentloop.Gate{{Tools: []string{"["}, Do: "allow"}, {Tools: []string{"*"}, When: "(", Do: "allow"}, {Tools: []string{"*"}, When: "now > 0", Do: "deny"}} {
		config := helper()
		config.Gates = []agentloop.Gate{g}
		if b := begin(t, config, calls("read")); b.last.Question == nil {
			t.Errorf("%+v: nobody was asked", g)
		}
	}
}
