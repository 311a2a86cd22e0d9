package agentloop_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// tireless plays a model that never stops calling tools, and counts tokens as a provider does: a quarter of the bytes of what it is asked, and as
// many of its own as it may, up to long. In the turn without tools it says final. It returns how the agent ended, and how many requests there were
// and how many of them without tools.
func tireless(t *testing.T, config agentloop.Config, final chat.Reply, long, result int) (agentloop.Done, int, int) {
	t.Helper()
	b := newBench(t, config, "Do it.")
	b.handle(agentloop.ToolsListed{Key: "0", Tools: tools()})
	asked, finals := 0, 0
	for b.last.Done == nil {
		open := b.m.Outstanding()
		if len(open) == 0 || asked > 300 {
			t.Fatalf("the agent goes on for ever: %v", open)
		}
		switch e := open[0].(type) {
		case agentloop.AskModel:
			asked++
			r := chat.Reply{Text: "Working on it.", Finish: chat.FinishStop, Calls: []chat.Call{{ID: "a", Name: "read", Arguments: fmt.Sprintf(`{"n":%d}`, asked)}}}
			if e.Request.Tools == nil {
				finals++
				r = final
			}
			text, _ := json.Marshal(e.Request)
			r.Usage = chat.Usage{Prompt: len(text) / 4, Completion: min(e.Request.MaxTokens, long)}
			b.handle(agentloop.ModelReplied{Key: e.Key, Try: e.Try, Reply: r, Worked: 100 * time.Millisecond})
		case agentloop.CallTool:
			b.handle(agentloop.ToolReturned{Key: e.Key, Output: strings.Repeat("x", result), Worked: 100 * time.Millisecond})
		default:
			t.Fatalf("%T", e)
		}
		b.check()
	}
	return *b.last.Done, asked, finals
}

// budgets are those that a tireless model uses up, with the code of each.
func budgets() map[problem.Code]agentloop.Budgets {
	return map[problem.Code]agentloop.Budgets{
		problem.AgentTurnsExceeded:     {Turns: 4},
		problem.AgentToolCallsExceeded: {ToolCalls: 4},
		problem.AgentTokensExceeded:    {Tokens: 20_000},
		problem.AgentCostExceeded:      {CostMicros: 50_000},
		problem.AgentTimeExceeded:      {WorkMs: 900},
	}
}

func finishing(b agentloop.Budgets) agentloop.Config {
	c := helper()
	c.Models[0].Price = &agentloop.Price{Input: 2, CachedInput: 1, Output: 8}
	c.Budgets = b
	c.Budgets.OnExceeded = "finish"
	return c
}

// TestAnAgentFinishesWithinItsBudget: the answer with what there is says that it is partial, and why; tokens and money are not exceeded for it.
func TestAnAgentFinishesWithinItsBudget(t *testing.T) {
	t.Parallel()
	for code, budget := range budgets() {
		for _, long := range []int{20, 700, 5000} {
			for _, result := range []int{10, 2000} {
				done, asked, finals := tireless(t, finishing(budget), chat.Reply{Text: "So far.", Finish: chat.FinishStop}, long, result)
				want := map[string]any{"text": "So far.", "partial": true, "partial_reason": string(code)}
				if done.Failure != nil || !done.Partial || done.PartialReason != code || !reflect.DeepEqual(done.Output, want) || finals != 1 {
					t.Errorf("%s, answers of %d, results of %d: %+v %v, %d requests, %d without tools", code, long, result, done.Output, done.Failure, asked, finals)
				}
				s := done.Totals
				if budget.Tokens > 0 && s.PromptTokens+s.CompletionTokens > budget.Tokens || budget.CostMicros > 0 && s.CostMicros > budget.CostMicros+8 {
					t.Errorf("%s, answers of %d, results of %d: spent %+v of %+v", code, long, result, s, budget)
				}
			}
		}
	}
}

// TestNoOtherCodeHidesABudget: whatever the model does with its last turn, the agent ends with the code of the budget, after one request, or two
// where the answer is cut.
func TestNoOtherCodeHidesABudget(t *testing.T) {
	t.Parallel()
	calls := []chat.Call{{ID: "z", Name: "read", Arguments: "{}"}}
	schema := &agentloop.Output{Schema: map[string]any{"type": "object", "required": []any{"n"}}, Repairs: 3}
	for name, c := range map[string]struct {
		final  chat.Reply
		output *agentloop.Output
		text   string
		finals int
	}{
		"calls without a text": {chat.Reply{Finish: chat.FinishStop, Calls: calls}, nil, "", 1},
		"calls with a text":    {chat.Reply{Text: "Half.", Finish: chat.FinishStop, Calls: calls}, nil, "Half.", 1},
		"nothing":              {chat.Reply{Finish: chat.FinishStop}, nil, "", 1},
		"withheld":             {chat.Reply{Text: "Half.", Finish: chat.FinishFilter}, nil, "", 1},
		"cut":                  {chat.Reply{Text: "Half.", Finish: chat.FinishLength}, nil, "Half.Half.", 2},
		"cut without a text":   {chat.Reply{Finish: chat.FinishLength}, nil, "", 2},
		"no JSON":              {chat.Reply{Text: "Half.", Finish: chat.FinishStop}, schema, "", 1},
		"another schema":       {chat.Reply{Text: `{"m":1}`, Finish: chat.FinishStop}, schema, "", 1},
	} {
		for code, budget := range budgets() {
			config := finishing(budget)
			config.Output = c.output
			done, _, finals := tireless(t, config, c.final, 50, 10)
			if finals != c.finals {
				t.Errorf("%s, %s: %d requests without tools", name, code, finals)
			}
			if c.text != "" {
				if done.Failure != nil || done.Output.(map[string]any)["text"] != c.text {
					t.Errorf("%s, %s: %v %v", name, code, done.Output, done.Failure)
				}
				continue
			}
			if done.Failure == nil || done.Failure.Code != code || done.LastText == "" {
				t.Errorf("%s, %s: %v %v, last text %q", name, code, done.Output, done.Failure, done.LastText)
			}
		}
	}
}

// TestABudgetWithoutRoomAsksNothing: where even the prompt of the last turn is too much, the model is not asked for it.
func TestABudgetWithoutRoomAsksNothing(t *testing.T) {
	t.Parallel()
	done, asked, finals := tireless(t, finishing(agentloop.Budgets{Tokens: 3000}), chat.Reply{Text: "So far.", Finish: chat.FinishStop}, 50, 20_000)
	if finals != 0 || done.Failure == nil || done.Failure.Code != problem.AgentTokensExceeded || done.LastText != "Working on it." {
		t.Errorf("%d requests, %d without tools: %+v", asked, finals, done)
	}
	if s := done.Totals; s.PromptTokens+s.CompletionTokens > 3000 {
		t.Errorf("spent %+v", s)
	}
	done, asked, _ = tireless(t, finishing(agentloop.Budgets{Tokens: 20}), chat.Reply{Text: "So far.", Finish: chat.FinishStop}, 50, 10)
	if asked != 0 || done.Failure == nil || done.Failure.Code != problem.AgentTokensExceeded {
		t.Errorf("%d requests: %+v", asked, done)
	}
}

// TestAModelThatFailsInTheLastTurn hides the budget no more than its answers do.
func TestAModelThatFailsInTheLastTurn(t *testing.T) {
	t.Parallel()
	c := finishing(agentloop.Budgets{Turns: 1})
	b := begin(t, c, calls("read {}"))
	b.handle(agentloop.ToolReturned{Key: "t1.c1", Output: 1})
	b.handle(agentloop.ModelFailed{Key: "t2", Try: 1, Code: problem.LLMProviderError, Message: "status 400", Final: true, Class: chat.ClassRequest, Status: 400})
	if d := b.last.Done; d == nil || d.Failure == nil || d.Failure.Code != problem.AgentTurnsExceeded || !strings.Contains(d.Failure.Message, "LLM_PROVIDER_ERROR status 400") {
		t.Errorf("%+v", b.last.Done)
	}
	b.check()
}

// TestPartialAs: an answer with a schema has the member that the agent names for it, and no other.
func TestPartialAs(t *testing.T) {
	t.Parallel()
	number := map[string]any{"type": "number"}
	for name, c := range map[string]struct {
		schema map[string]any
		as     string
		want   any
		wrong  string
	}{
		"none":         {map[string]any{"type": "object"}, "", map[string]any{"n": 1.0}, ""},
		"declared":     {map[string]any{"properties": map[string]any{"n": number, "half": map[string]any{"type": "boolean"}}, "additionalProperties": false}, "half", map[string]any{"n": 1.0, "half": true}, ""},
		"open":         {map[string]any{"type": "object"}, "half", map[string]any{"n": 1.0, "half": true}, ""},
		"too many":     {map[string]any{"type": "object", "maxProperties": 1}, "half", map[string]any{"n": 1.0}, ""},
		"not declared": {map[string]any{"properties": map[string]any{"n": number}, "additionalProperties": false}, "half", nil, `the schema has no member "half"`},
		"a number":     {map[string]any{"properties": map[string]any{"half": number}}, "half", nil, "does not allow true"},
	} {
		config := finishing(agentloop.Budgets{Turns: 1})
		config.Output = &agentloop.Output{Schema: c.schema, PartialAs: c.as}
		if _, f := agentloop.Resolve(config); c.wrong != "" {
			if f == nil || !strings.Contains(f.Message, c.wrong) {
				t.Errorf("%s: %v", name, f)
			}
			continue
		}
		done, _, _ := tireless(t, config, chat.Reply{Text: `{"n":1}`, Finish: chat.FinishStop}, 50, 10)
		if !done.Partial || !reflect.DeepEqual(done.Output, c.want) {
			t.Errorf("%s: %v %v", name, done.Output, done.Failure)
		}
	}
}
