package agentloop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestHostileReplies: whatever a model gives leaves steps of a size that can be recorded, a result for each call, and an agent that goes on
// after a replay.
func TestHostileReplies(t *testing.T) {
	t.Parallel()
	long, deep := strings.Repeat("x", 3<<20), strings.Repeat(`{"a":`, 10_000)+"1"+strings.Repeat("}", 10_000)
	control := "\x00\x01\x1f\x7f\u202e\xff\xfe\xed\xa0\x80\u2028"
	arguments := []string{
		"", "{", "}", "null", "1", `"x"`, "[]", "NaN", `{"a":1}`, `{"a":1,"a":2}`, `{"n":12345678901234567890}`, `{"n":1e999}`, `{"__proto__":{}}`, control, deep, long,
		`{"x":"` + long + `"}`, `{"x":"` + strings.Repeat(`\u0000`, 400_000) + `"}`, strings.Repeat(`{"a":1}`, 3), `{"a":"\ud800"}`,
	}
	names := []string{"read", "", "nothing", control, long[:5000], "agent__", "agent__sub", "ask_person", "read\n", "../read"}
	var replies []chat.Reply
	for i, a := range arguments {
		for j := range 4 {
			replies = append(replies, chat.Reply{Calls: []chat.Call{{ID: "same", Name: names[(i+j*3)%len(names)], Arguments: a}, {ID: "same", Name: "read", Arguments: a}, {ID: control, Name: control, Arguments: a}}})
		}
	}
	for _, text := range []string{"", " \n", control, long, strings.Repeat("\x00", 1<<20), strings.Repeat("é", 1<<20), deep, "```", "```json\n```", "{", "[[["} {
		replies = append(replies, chat.Reply{Text: text}, chat.Reply{Text: text, Finish: "length", Reasoning: text, Model: text}, chat.Reply{Text: text, Finish: chat.Finish(control), Calls: []chat.Call{{}}})
	}
	many := chat.Reply{Text: long, Reasoning: long}
	large := `{"a":"` + strings.Repeat("y", 200<<10) + `"}` // once in memory: 5,000 copies take a gigabyte
	for range 5000 {
		many.Calls = append(many.Calls, chat.Call{ID: "x", Name: "nothing", Arguments: large})
	}
	replies = append(replies, many, chat.Reply{Text: "x", Usage: chat.Usage{Prompt: -5, Cached: 1 << 62, Completion: -1 << 62}}, chat.Reply{Calls: []chat.Call{{Name: "read"}}, Usage: chat.Usage{Prompt: 1 << 62, Completion: 1 << 62}})
	if len(replies) < 100 {
		t.Fatalf("only %d replies", len(replies))
	}
	for i, r := range replies {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			config := helper()
			config.AskPerson, config.Agents = true, []agentloop.Sub{{Config: helper()}}
			config.Agents[0].Config.Name = "sub"
			if i%2 == 0 {
				config.Output = &agentloop.Output{Repairs: 1, Schema: map[string]any{"type": "object"}}
			}
			b := begin(t, config, r)
			for b.last.Done == nil && b.last.Question == nil {
				b.check()
				b.checkCuts(b.last.Steps)
				open := b.m.Outstanding()
				switch e := open[0].(type) {
				case agentloop.CallTool:
					b.handle(agentloop.ToolReturned{Key: e.Key, Output: 1})
					continue
				case agentloop.ListTools:
					b.handle(agentloop.ToolsListed{Key: e.Key})
					continue
				}
				break
			}
			b.check()
			results := 0
			for _, s := range b.journal {
				if s.Kind == agentloop.StepResult {
					results++
				}
			}
			for _, s := range b.journal {
				if s.Kind == agentloop.StepReply && s.Key == "t1" && b.last.Question == nil && b.last.Done == nil && s.Body["finish"] != "length" {
					if n := len(s.Body["calls"].([]any)); results != n {
						t.Errorf("%d calls have %d results", n, results)
					}
				}
			}
		})
	}
}

// TestHostileResults: results that cannot be recorded become errors.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	loop := map[string]any{}
	loop["self"] = loop
	for code, output := range map[string]any{
		"ACTIVITY_OUTPUT_INVALID": loop, "TOOL_RESULT_TOO_LARGE": strings.Repeat("x", 3<<20),
	} {
		b := begin(t, helper(), calls("read"))
		b.handle(agentloop.ToolReturned{Key: "t1.c1", Output: output, Worked: -time.Hour})
		b.check()
		if !strings.Contains(request(t, b.m), code) {
			t.Errorf("the model is not told of %s", code)
		}
	}
}

// TestLargeBeginning: what no step can hold is refused before a model is asked, and not cut.
func TestLargeBeginning(t *testing.T) {
	t.Parallel()
	b := newBench(t, helper(), strings.Repeat("x", 3<<20))
	b.handle(agentloop.ToolsListed{Key: "0"})
	if d := b.last.Done; d == nil || d.Failure == nil || d.Failure.Code != problem.AgentConfigInvalid || len(b.journal) > 0 {
		t.Errorf("%+v, %d steps", d, len(b.journal))
	}
}

// TestWaitingIsNoWork: the work budget cannot end while a person is asked.
func TestWaitingIsNoWork(t *testing.T) {
	t.Parallel()
	b := begin(t, helper(), calls("refund"))
	if err := b.try(agentloop.Expired{Worked: time.Hour}); err == nil {
		t.Error("the budget ended while a person was asked")
	}
	b.check()
}
