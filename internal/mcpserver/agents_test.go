package mcpserver_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// script is a model that gives replies in their order, and the last one again and again.
type script struct {
	replies []chat.Reply
	next    atomic.Int64
}

func (s *script) Chat(context.Context, chat.Request) (chat.Reply, error) {
	n := int(s.next.Add(1)) - 1
	r := s.replies[min(n, len(s.replies)-1)]
	r.Model, r.Usage = "gpt-4.1", chat.Usage{Prompt: 1000, Completion: 100}
	return r, nil
}

func calls(calls ...chat.Call) chat.Reply { return chat.Reply{Calls: calls} }

func callOf(id, name, arguments string) chat.Call {
	return chat.Call{ID: id, Name: name, Arguments: arguments}
}

type payment struct {
	Order  string `json:"order"`
	Amount int    `json:"amount"`
	Note   string `json:"note,omitempty"`
}

type path struct {
	Path string `json:"path"`
}

// clerkWith returns options of an engine with the agent clerk, whose tools are read and refund, which people approve. A sub-agent has one
// that they approve, too.
func clerkWith(t *testing.T, size int, budgets agentloop.Budgets, replies ...chat.Reply) graph.Options {
	t.Helper()
	model := agent.Model{Chat: &script{replies: replies}, Model: agentloop.Model{Model: "gpt-4.1", Price: &agentloop.Price{Input: 2, CachedInput: 0.5, Output: 8}}}
	refund := agent.Func("refund", "Pays back.", func(_ context.Context, p payment) (map[string]any, error) {
		return map[string]any{"paid": p.Amount}, nil
	}, agent.WithGate(agent.Ask))
	read := agent.Func("read", "Reads.", func(_ context.Context, p path) (map[string]any, error) {
		return map[string]any{"text": strings.Repeat("x", size), "path": p.Path}, nil
	}, agent.WithParallel(true), agent.WithOnCrash(agent.Repeat))
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": model},
		Agents: map[string]agent.Agent{
			"clerk": {Config: agentloop.Config{Instructions: "Answer letters.", Budgets: budgets}, Tools: []agent.Toolset{read, refund}, Agents: []agent.SubAgent{{Name: "payer"}}, AskPerson: true},
			"payer": {Config: agentloop.Config{Instructions: "Pay."}, Tools: []agent.Toolset{refund}},
		},
	}))
	return graph.Options{Delegates: activities.Composite{SDK: agents}}
}

var delegation = object{"id": "answer", "type": "agent_delegate", "config": object{"agent_id": "clerk", "protocol": "sdk", "input_mapping": object{"task": "Letter A7"}}}

// golden compares with a file of testdata; what differs from run to run is replaced.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".golden"
	for _, r := range []struct{ pattern, with string }{
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`, "TIME"}, {`(\d) \d\d:\d\d:\d\d `, "$1 TIME "}, {`"work_ms":\d+`, `"work_ms":0`}, {` \d+ms `, " "},
		{`[0-9a-f]{64}`, "HASH"}, {`"bytes":\d+,"head":\["cached_tokens"\]`, `"head":["cached_tokens"]`}, // usage holds the time of work
	} {
		got = regexp.MustCompile(r.pattern).ReplaceAllString(got, r.with)
	}
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%s differs (%v; go test ./internal/mcpserver -update rewrites it):\n%s", file, err, got)
	}
}

// TestAnAgentIsShown: what it wants to call and how to decide, where it stands in its budgets, each step in few words, and what it came to.
func TestAnAgentIsShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, clerkWith(t, 100, agentloop.Budgets{Turns: 20, CostMicros: 500_000},
		calls(callOf("a", "read", `{"path":"a"}`), callOf("b", "agent__payer", `{"task":"pay"}`)),
		calls(callOf("c", "refund", `{"order":"A7","amount":100}`), callOf("d", "refund", `{"order":"A8","amount":7}`)),
		chat.Reply{Text: "Paid."},
		calls(callOf("e", "ask_person", `{"question":"Which colour?"}`)),
		chat.Reply{Text: "Done."},
	))
	started := h.raw("workflow_start", object{"execution_id": "r", "definition": walk(delegation)})
	status := h.raw("workflow_status", object{"execution_id": "r"})
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n%s\n\n%s\n", started.text, mustJSON(t, status.content["pending"]), mustJSON(t, status.content["next"]))
	asked := h.raw("workflow_resume", object{"execution_id": "r", "resume_payload": object{"calls": object{
		"t1.c2/t1.c1": object{"decision": "edit", "arguments": object{"order": "A7", "amount": 80}}, "t1.c2/t1.c2": object{"decision": "deny", "reason": "no such order"},
	}}})
	fmt.Fprintf(&out, "\n%s\n\n%s\n", asked.text, mustJSON(t, asked.content["pending"]))
	h.ok("workflow_resume", object{"execution_id": "r", "resume_payload": object{"text": "Blue."}})
	golden(t, "agent_status", out.String())
	golden(t, "agent_history", h.raw("workflow_history", object{"execution_id": "r", "limit": 100, "answer_bytes": 60_000}).text+"\n")
}

// TestAModelDoesNotRepeatWhatAPersonStopped: neither the answer nor the status proposes to begin again what somebody has stopped.
func TestAModelDoesNotRepeatWhatAPersonStopped(t *testing.T) {
	t.Parallel()
	h := newHost(t, clerkWith(t, 1, agentloop.Budgets{}, calls(callOf("a", "refund", `{"order":"A7","amount":100}`))))
	h.raw("workflow_start", object{"execution_id": "r", "definition": walk(delegation)})
	r := h.refused("ENGINE_FAILURE", "workflow_resume", object{"execution_id": "r", "resume_payload": object{"decision": "stop", "reason": "Nobody pays today."}})
	for _, text := range []string{r.text, h.raw("workflow_status", object{"execution_id": "r"}).text} {
		if !strings.Contains(text, "Nobody pays today.") || !strings.Contains(text, "Tell the user") || strings.Contains(text, "workflow_fork") {
			t.Error(text)
		}
	}
}

// TestLargeArgumentsKeepWithinTheAnswer: what is asked about is shown in part, with a reference to the rest and the digest; the rest can be
// read.
func TestLargeArgumentsKeepWithinTheAnswer(t *testing.T) {
	t.Parallel()
	note := strings.Repeat("long ", 20_000)
	many := calls()
	for i := range 20 {
		many.Calls = append(many.Calls, callOf(fmt.Sprintf("c%d", i), "refund", fmt.Sprintf(`{"order":"A%d","amount":1,"note":"%s"}`, i, strings.Repeat("n", 10_000))))
	}
	for name, first := range map[string]chat.Reply{
		"one": calls(callOf("a", "refund", `{"order":"A7","amount":100,"note":"`+note+`"}`)), "many": many,
	} {
		h := newHost(t, clerkWith(t, 100, agentloop.Budgets{}, first, chat.Reply{Text: "Done."}))
		h.ok("workflow_start", object{"execution_id": "r", "definition": walk(delegation)})
		r := h.raw("workflow_status", object{"execution_id": "r"})
		if n := len(mustJSON(t, r.content)); n > 8<<10 {
			t.Errorf("%s: the answer has %d bytes", name, n)
		}
		if len(r.text) > 8<<10 {
			t.Errorf("%s: the text has %d bytes", name, len(r.text))
		}
		pending := r.content["pending"].([]any)[0].(object)
		shown := string(mustJSON(t, pending["tool_calls"]))
		if !strings.Contains(shown, "$ref") || !regexp.MustCompile(`"digest":"[0-9a-f]{64}"`).MatchString(shown) {
			t.Errorf("%s: %s", name, shown)
		}
		if next := r.content["next"].(object); next["tool"] != "workflow_resume" || pending["resume_schema"] == nil {
			t.Errorf("%s: %v", name, next)
		}
		read := h.raw("workflow_status", object{"execution_id": "r", "answer_bytes": 200_000, "read": []any{"awp://runs/r/pending/r:answer%231.1%2Fq1/tool_calls/0/arguments/note"}})
		if n := len(fmt.Sprint(read.content["values"].([]any)[0].(object)["value"])); n < 10_000 {
			t.Errorf("%s: the note is read as %d bytes: %v", name, n, read.text)
		}
	}
}

// TestAFormForCalls: a host that shows forms has the person approve or deny the calls of an agent, which it shows.
func TestAFormForCalls(t *testing.T) {
	t.Parallel()
	o := clerkWith(t, 100, agentloop.Budgets{}, calls(callOf("a", "refund", `{"order":"A7","amount":100}`)), chat.Reply{Text: "Done."})
	p := says(accepts(object{"decision": "deny", "reason": "not today"}))
	h := newOffice(t, o, mcpserver.Options{}).host(lastAsking, p)
	if r := h.ok("workflow_start", object{"execution_id": "r", "definition": walk(delegation), "activity_execution_mode": "in_process"}); r["status"] != "completed" {
		t.Errorf("%v", r)
	}
	if asked := p.questions(); len(asked) != 1 || !strings.Contains(asked[0], "wants to call refund") || !strings.Contains(asked[0], `"amount": 100`) || strings.Contains(asked[0], "digest") {
		t.Errorf("%q", asked)
	}
	if page := h.raw("workflow_history", object{"execution_id": "r"}); !strings.Contains(page.text, "TOOL_DENIED not today") {
		t.Errorf("%s", page.text)
	}
}

// TestAThousandTurnsKeepWithinTheirAnswers: sizes of answers do not grow with what an agent has done.
func TestAThousandTurnsKeepWithinTheirAnswers(t *testing.T) {
	t.Parallel()
	const turns = 1000
	var replies []chat.Reply
	for i := range turns {
		replies = append(replies, calls(callOf("a", "read", fmt.Sprintf(`{"path":"%d"}`, i))))
	}
	replies = append(replies, calls(callOf("b", "refund", `{"order":"A7","amount":100}`)), chat.Reply{Text: "Done."})
	h := newHost(t, clerkWith(t, 10_000, agentloop.Budgets{Turns: 2 * turns, ToolCalls: 2 * turns}, replies...))
	h.ok("workflow_start", object{"execution_id": "r", "definition": walk(delegation), "wait_ms": 300_000})
	for tool, args := range map[string]object{
		"workflow_status": {"execution_id": "r"}, "workflow_history": {"execution_id": "r"}, "workflow_list": {},
	} {
		r := h.raw(tool, args)
		content := len(mustJSON(t, r.content))
		if tool == "workflow_status" && r.content["phase"] != "interrupted" {
			t.Fatalf("%s", r.text)
		}
		t.Logf("%s: %d bytes of content, %d of text", tool, content, len(r.text))
		if content > 8<<10 || len(r.text) > 8<<10 {
			t.Errorf("%s: %d bytes of content, %d of text", tool, content, len(r.text))
		}
	}
}

// TestAgentsAreListed: a resource names them, and a definition with another one is warned of.
func TestAgentsAreListed(t *testing.T) {
	t.Parallel()
	runner := enginetest.Closing(t, enginetest.Must(graph.New(enginetest.Closing(t, historymem.New()), graph.Options{})))
	h := connectHost(t, runner, mcpserver.Options{Agents: []mcpserver.Agent{{Name: "clerk", Description: "Answers letters.", Output: object{"required": []any{"total"}}}, {Name: "writer", Skills: []string{"prose"}}}})
	res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "awp://agents"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"agents":[{"name":"clerk","description":"Answers letters.","output_schema":{"required":["total"]}},{"name":"writer","description":""}],"protocol":"sdk"}`; res.Contents[0].Text != want {
		t.Errorf("%s", res.Contents[0].Text)
	}
	other := object{"id": "answer", "type": "agent_delegate", "config": object{"agent_id": "clerc", "protocol": "sdk", "input_mapping": object{"task": "t"}}}
	skilled := object{"id": "n", "type": "agent_delegate", "metadata": object{"skills": []any{"prosa"}}, "config": object{"agent_id": "writer", "protocol": "sdk", "input_mapping": object{}}}
	if r := h.raw("workflow_validate", object{"definition": walk(skilled)}); !strings.Contains(r.text, `agent "writer" does not have the skill "prosa"`) {
		t.Errorf("%v", r.text)
	}
	if r := h.raw("workflow_validate", object{"definition": walk(other)}); !strings.Contains(r.text, `there is no agent "clerc"`) || r.content["valid"] != true {
		t.Errorf("%s", r.text)
	}
	r := h.raw("workflow_guide", object{"topic": "agents"})
	for _, want := range []string{"input_mapping", "- `clerk`: Answers letters. Its answer satisfies {\"required\":[\"total\"]}\n- `writer`\n"} {
		if !strings.Contains(r.text, want) {
			t.Errorf("%s lacks %s", r.text, want)
		}
	}
	without := newHost(t, graph.Options{})
	if _, err := without.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "awp://agents"}); err == nil {
		t.Error("without agents there is a list of them")
	}
}
