package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// clerk is a command line with agents whose model is a script.
type clerk struct {
	t           *testing.T
	folder      string
	columns     int
	stdin       io.Reader
	interactive bool
}

func newClerk(t *testing.T, script ...chattest.Reply) *clerk {
	t.Helper()
	server := chattest.Serve(t, script...)
	c := &clerk{t: t, folder: t.TempDir()}
	list := `{"models":{"main":{"model":"gpt-4.1","priceUsdPerMTok":{"input":2,"cachedInput":0.5,"output":8},"endpoint":{"baseUrl":"` + server.URL + `","noAuth":true}}},
		"agents":{"clerk":{"description":"Answers letters.","instructions":"Answer letters.","tools":[{"agent":"summarizer","parallel":true},{"agent":"payer","gate":"ask"},{"builtin":"ask_person"}],
			"budgets":{"turns":20,"costUsd":0.5}},
		"payer":{"instructions":"Pay."},"summarizer":{"instructions":"Sum up.","description":"Sums up."}}}`
	if err := os.WriteFile(filepath.Join(c.folder, "agents.json"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// run runs a command.
func (c *clerk) run(want int, args ...string) (stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	stdin := c.stdin
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	a := &app{stdin: stdin, stdout: &out, human: &out, stderr: &errs, now: time.Now, interactive: c.interactive, columns: func() int { return c.columns }, env: config.Environment{
		GOOS: runtime.GOOS, Home: c.folder, Directory: c.folder, ReadFile: os.ReadFile, Variables: []string{"WORKFLOW_ENGINE_AGENTS=agents.json"},
	}}
	if got := a.execute(context.Background(), append(args, "--db", filepath.Join(c.folder, "runs.db"))); got != want {
		c.t.Fatalf("%q: status %d, want %d\n%s%s", args, got, want, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// letter is the script of a clerk who has two things summed up, pays back, and asks.
func letter() []chattest.Reply {
	return []chattest.Reply{
		chattest.Calls(chattest.Call("agent__summarizer", `{"task":"the letter"}`), chattest.Call("read", `{}`)),
		{Text: "It is short.", When: "Sum up."},
		chattest.Calls(chattest.Call("agent__payer", `{"task":"pay 100 for order A7"}`)),
		{Text: "Paid 80.", When: "Pay."},
		chattest.Calls(chattest.Call("ask_person", `{"question":"Which colour?"}`)),
		chattest.Text("Done: 80 paid back."),
	}
}

// unchanging takes out of a text what differs from run to run.
func unchanging(text string) string {
	for _, c := range [][2]string{
		{`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ \(\d+\w ago\)`, "TIME"}, {`, \S+ of work`, ""}, {`sqlite \(.*\)`, "sqlite (runs.db)"}, {`--db \S+`, "--db runs.db"}, {`Results of tools are JSON.*`, "(the engine's part)"}, {` +\d+ms\n`, "\n"},
	} {
		text = regexp.MustCompile(c[0]).ReplaceAllString(text, c[1])
	}
	return text
}

// agentRecords are those of an agent that works for hours, with a sub-agent, a try that fails, a call that is put to a person, and an end
// by a budget.
func agentRecords() []history.Record {
	type object = map[string]any
	totals := object{"turns": 0.0, "tool_calls": 0.0, "prompt_tokens": 0.0, "completion_tokens": 0.0, "cost_micros": 0.0}
	n := 0.0
	of := func(key, kind string, members object) history.Payload {
		n++
		step := object{"key": key, "kind": kind, "n": n, "totals": maps.Clone(totals)}
		maps.Copy(step, members)
		return history.Payload{NodeID: "research", Visit: 1, NodeType: "agent_delegate", AgentID: "researcher", Protocol: "sdk", Attempt: 1, AgentStep: step}
	}
	reply := func(key string, ms, in, out float64, text string, calls ...string) history.Payload {
		totals["turns"], totals["prompt_tokens"], totals["completion_tokens"] = totals["turns"].(float64)+1, totals["prompt_tokens"].(float64)+in, totals["completion_tokens"].(float64)+out
		totals["cost_micros"] = totals["cost_micros"].(float64) + 2*in + 8*out
		list := []any{}
		for _, name := range calls {
			list = append(list, object{"id": "x", "name": name, "arguments": object{}})
		}
		return of(key, "reply", object{"model": "gpt-4.1", "text": text, "calls": list, "workMs": ms, "usage": object{"prompt_tokens": in, "completion_tokens": out}, "requestHash": "h"})
	}
	result := func(key, tool string, ms float64, members object) history.Payload {
		members["tool"], members["workMs"] = tool, ms
		return of(key, "result", members)
	}
	records := []history.Record{
		event(history.ActivityRequested, history.Payload{NodeID: "research", Visit: 1, NodeType: "agent_delegate", AgentID: "researcher", Protocol: "sdk", Attempt: 1}),
	}
	add := func(name history.Name, p history.Payload) { records = append(records, event(name, p)) }
	add(history.ActivityRequested, of("0", "begun", object{"agent": "researcher", "task": "Which customers pay late, and what do they owe?", "config": object{
		"models": []any{object{"model": "gpt-4.1"}}, "budgets": object{"turns": 20.0, "costMicros": 500_000.0}}, "configHash": "h"}))
	add(history.ActivityRequested, of("t1", "tried", object{"try": 1.0, "code": "LLM_RATE_LIMITED", "message": "slow down", "retryAt": "2026-05-01T12:00:09.000Z"}))
	add(history.ActivityRequested, reply("t1", 1900, 1204, 88, "", "files__read", "files__read", "agent__summarizer"))
	add(history.ActivityRequested, result("t1.c1", "files__read", 12, object{"bytes": 14_200.0, "output": object{"text": "long"}}))
	add(history.ActivityRequested, result("t1.c2", "files__read", 15, object{"error": object{"code": "FILE_NOT_FOUND", "message": "there is no such file"}}))
	add(history.ActivityRequested, of("t1.c3/0", "begun", object{"agent": "summarizer", "task": "Sum up the rows."}))
	add(history.ActivityRequested, reply("t1.c3/t1", 2600, 900, 120, "Three of them pay late."))
	add(history.ActivityRequested, of("t1.c3", "result", object{"tool": "agent__summarizer", "by": "engine", "output": object{"text": "Three of them pay late."}}))
	add(history.ActivityRequested, reply("t2", 2100, 16_100, 1703, "I will pay back.", "shop__refund"))
	asked := of("q1", "question", object{"about": "approval", "calls": []any{object{"key": "t2.c1", "tool": "shop__refund", "arguments": object{"amount": 100.0}, "digest": "d"}}})
	asked.Prompt = "Agent researcher wants to call shop__refund. Approve?"
	add(history.InterruptRaised, asked)
	answered := of("q1", "answer", nil)
	answered.SignalPayload = object{"decision": "edit", "arguments": object{"amount": 80.0}}
	add(history.InterruptResumed, answered)
	add(history.ActivityRequested, of("w11", "woken", nil))
	add(history.ActivityRequested, result("t2.c1", "shop__refund", 740, object{"bytes": 18.0, "output": object{"paid": 80.0}}))
	usage := maps.Clone(totals)
	maps.Copy(usage, object{"stop_reason": "cost", "partial": true, "cost_usd": 0.05})
	add(history.ActivityCompleted, history.Payload{NodeID: "research", Visit: 1, Attempt: 1, Result: history.Some(object{"text": "Three."}), Usage: usage})
	return recordsOf(records...)
}

// TestTheStepsOfAnAgent: as a whole table, as one that fits a terminal, and in the table of records.
func TestTheStepsOfAnAgent(t *testing.T) {
	t.Parallel()
	all := agentRecords()
	for i := range all {
		if all[i].CreatedAt = noon.Add(time.Duration(i) * time.Second); i > 10 {
			all[i].CreatedAt = noon.Add(3*time.Hour + time.Duration(i)*time.Second)
		}
	}
	tally := attemptsOf(nil, all)
	table := func(columns int) string {
		var out bytes.Buffer
		if err := tally.write(&out, tally.from(1, ""), true, columns); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	var records bytes.Buffer
	if err := writeTable(&records, append(recordHeading(), recordRows(all, tally, &stateTrail{}, detailWidth)...)); err != nil {
		t.Fatal(err)
	}
	requireGolden(t, "agent_history", table(0)+"\n"+records.String())
	for columns := 40; columns <= 200; columns++ {
		shown := table(columns)
		requireFits(t, shown, columns)
		if strings.Contains(shown, "TOKENS IN") != (columns >= narrow) {
			t.Errorf("%d columns:\n%s", columns, shown)
		}
	}
}

// TestAnAgentOnTheCommandLine: what status, history and transcript show of one that asks and goes on.
func TestAnAgentOnTheCommandLine(t *testing.T) {
	t.Parallel()
	c := newClerk(t, letter()...)
	var out strings.Builder
	_, asked := c.run(exitPaused, "agent", "run", "clerk", "Order A7 came broken.", "--id", "a1")
	status, _ := c.run(exitOK, "status", "a1")
	out.WriteString(asked + "\n" + status)
	c.run(exitPaused, "resume", "a1", "--payload", `{"decision":"edit","arguments":{"task":"pay 80 for order A7"}}`)
	c.run(exitOK, "resume", "a1", "--payload", `{"text":"blue"}`)
	requireGolden(t, "agent_status", unchanging(out.String()))
	c.columns = 60
	table, _ := c.run(exitOK, "history", "a1")
	_, table, _ = strings.Cut(table, "\n\n")
	requireFits(t, table, c.columns)
	transcript, _ := c.run(exitOK, "agent", "transcript", "a1")
	requireGolden(t, "agent_transcript", unchanging(transcript))
	short, _ := c.run(exitOK, "history", "a1", "--no-steps")
	if strings.Contains(short, "t1") {
		t.Error(short)
	}
	if stdout, _ := c.run(exitOK, "verify"); !strings.Contains(stdout, "no problems") {
		t.Error(stdout)
	}
}

// TestAPersonDecidesAtTheTerminal: in words, with the arguments before their eyes, until the decision can be used.
func TestAPersonDecidesAtTheTerminal(t *testing.T) {
	t.Parallel()
	two := chattest.Calls(chattest.Call("agent__payer", `{"task":"pay 100"}`), chattest.Call("agent__payer", `{"task":"pay 7"}`))
	for name, test := range map[string]struct {
		first chattest.Reply
		typed []string
		want  []string // in the transcript
		exit  int
	}{
		"edit": {chattest.Calls(chattest.Call("agent__payer", `{"task":"pay 100"}`)), []string{"yes", "edit", "edit tsak='pay 8'", "edit task='pay 80'", "blue, as ever"},
			[]string{`"decision":"edit"`, "task: pay 80", `ask_person returned, by a person: {"text":"blue, as ever"}`}, exitOK},
		"deny": {chattest.Calls(chattest.Call("agent__payer", `{"task":"pay 100"}`)), []string{"deny not today", `{"text":"red"}`},
			[]string{`"TOOL_DENIED"`, "not today", `{"text":"red"}`}, exitOK},
		"each": {two, []string{"edit x=1", "t1.c1 approve", `t1.c2 respond "done by hand"`, "blue"},
			[]string{`"decision":"approve"`, `agent__payer returned, by a person: "done by hand"`}, exitOK},
		"all":  {two, []string{"deny"}, []string{`"t1.c1":{"decision":"deny","digest":`, `"t1.c2":{"decision":"deny","digest":`}, exitPaused},
		"stop": {two, []string{"stop wrong agent"}, []string{"failed: AGENT_STOPPED", "wrong agent", "ended by person"}, exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := []chattest.Reply{test.first}
			if name == "edit" || name == "each" {
				script = append(script, chattest.Reply{Text: "Paid.", When: "Pay."})
			}
			if name != "stop" {
				script = append(script, chattest.Calls(chattest.Call("ask_person", `{"question":"Which colour?"}`)), chattest.Text("Done."))
			}
			c := newClerk(t, script...)
			c.stdin, c.interactive = strings.NewReader(strings.Join(test.typed, "\n")+"\n"), true
			_, stderr := c.run(test.exit, "agent", "run", "clerk", "Order A7 came broken.", "--id", "a1")
			if (name == "stop") != strings.Contains(stderr, "workflows-engine agent transcript a1") {
				t.Error(stderr)
			}
			if !strings.Contains(stderr, `agent__payer {"task":"pay 100"}`) || !strings.Contains(stderr, "approve always, deny [REASON]") {
				t.Error(stderr)
			}
			c.stdin, c.interactive = nil, false
			transcript, _ := c.run(exitOK, "agent", "transcript", "a1")
			for _, want := range test.want {
				if !strings.Contains(transcript, want) {
					t.Errorf("no %q in\n%s\n%s", want, transcript, stderr)
				}
			}
		})
	}
}

// TestAMisspeltDecisionIsRefused: its reason would be lost, or the digest that binds it.
func TestAMisspeltDecisionIsRefused(t *testing.T) {
	t.Parallel()
	c := newClerk(t, chattest.Calls(chattest.Call("agent__payer", `{"task":"pay 100"}`)), chattest.Text("Done."))
	c.run(exitPaused, "agent", "run", "clerk", "Order A7 came broken.", "--id", "a1")
	for _, payload := range []string{`{"decision":"deny","reson":"no"}`, `{"calls":{"t1.c1":{"decision":"approve","digst":"0"}}}`} {
		if _, stderr := c.run(exitFailed, "resume", "a1", "--payload", payload); !strings.Contains(stderr, "INVALID_RESUME_PAYLOAD") {
			t.Error(stderr)
		}
	}
	c.run(exitOK, "resume", "a1", "--payload", `{"decision":"deny","reason":"not today"}`)
	if transcript, _ := c.run(exitOK, "agent", "transcript", "a1"); !strings.Contains(transcript, "not today") {
		t.Error(transcript)
	}
}

// TestATaskFromStandardInput, and a run that is left to a worker.
func TestATaskFromStandardInput(t *testing.T) {
	t.Parallel()
	c := newClerk(t, chattest.Reply{Text: "Read.", When: "a letter of two lines"})
	c.stdin = strings.NewReader("a letter of two lines\nand the second\n")
	if stdout, _ := c.run(exitOK, "agent", "run", "summarizer", "-"); !strings.Contains(stdout, "Read.") {
		t.Error(stdout)
	}
	c.stdin = strings.NewReader(" \n")
	if _, stderr := c.run(exitUsage, "agent", "run", "summarizer", "-"); !strings.Contains(stderr, "standard input must be a task") {
		t.Error(stderr)
	}
	c.run(exitUsage, "agent", "run", "summarizer", "-", "--input", "-")
	c.run(exitUsage, "agent", "run", "summarizer", "x", "--detach", "--store", "memory")

	waits := newClerk(t, chattest.Reply{Text: "Later.", Always: true})
	id, stderr := waits.run(exitOK, "agent", "run", "summarizer", "x", "--id", "d1", "--detach")
	if id != "d1\n" || !strings.Contains(stderr, "workflows-engine watch d1") {
		t.Errorf("%q %s", id, stderr)
	}
	waits.run(exitOK, "recover", "d1")
	if status, _ := waits.run(exitOK, "status", "d1"); !strings.Contains(status, "completed") {
		t.Error(status)
	}
}

// TestAgentsTravel: a run that waits for a person is exported, imported, goes on there, and is forked at each of its steps; verify finds
// nothing wrong in any of them, in the exported file neither.
func TestAgentsTravel(t *testing.T) {
	t.Parallel()
	c := newClerk(t, letter()...)
	c.run(exitPaused, "agent", "run", "clerk", "Order A7 came broken.", "--id", "a1")
	file, _ := c.run(exitOK, "export", "a1")
	there := newClerk(t, letter()[3:]...)
	there.stdin = strings.NewReader(file)
	there.run(exitOK, "import", "-")
	there.stdin = strings.NewReader(file)
	if stdout, _ := there.run(exitOK, "verify", "--file", "-"); !strings.Contains(stdout, "no problems") {
		t.Error(stdout)
	}
	there.stdin = nil
	there.run(exitOK, "resume", "a1", "--payload", `{"decision":"approve"}`, "--resume", `{"text":"blue"}`)
	lines, _ := there.run(exitOK, "agent", "transcript", "a1", "--json")
	var steps []string
	for line := range strings.Lines(lines) {
		if m := regexp.MustCompile(`"seq":(\d+),.*"kind":"(\w+)"`).FindStringSubmatch(line); m != nil && m[2] != "ended" {
			steps = append(steps, m[1])
		}
	}
	if len(steps) < 12 {
		t.Fatalf("steps %v in\n%s", steps, lines)
	}
	for _, seq := range steps {
		// The rest of the script, for whatever is outstanding there.
		fork := newClerk(t, chattest.Reply{Text: "It is short.", Always: true})
		full, _ := there.run(exitOK, "export", "a1")
		fork.stdin = strings.NewReader(full)
		fork.run(exitOK, "import", "-")
		fork.stdin = nil
		fork.run(exitOK, "fork", "a1", "--at", seq, "--id", "f1", "--resume", `{"decision":"approve"}`, "--resume", `{"text":"red"}`)
		if stdout, _ := fork.run(exitOK, "verify"); !strings.Contains(stdout, "no problems") {
			t.Errorf("fork at %s: %s", seq, stdout)
		}
	}
	there.run(exitOK, "gc", "--older-than", "0")
	if list, _ := there.run(exitOK, "list"); strings.Contains(list, "a1") {
		t.Error(list)
	}
}

// TestVerifyReplaysAgents: a result that has been changed in the file of a run, a key twice, and an answer that the steps do not lead to.
func TestVerifyReplaysAgents(t *testing.T) {
	t.Parallel()
	c := newClerk(t, letter()...)
	c.run(exitOK, "agent", "run", "clerk", "Order A7 came broken.", "--id", "a1", "--resume", `{"decision":"approve"}`, "--resume", `{"text":"blue"}`)
	file, _ := c.run(exitOK, "export", "a1")
	for _, test := range []struct{ from, to, want string }{
		{"nothing", "nothing", ""},
		{"It is short.", "It is shirt.", "AGENT_STEPS_DIFFER"}, // everywhere, in the sub-agent's reply and its result: the next request is another one
		{`"output":{"text":"It is short."}`, `"output":{"text":"It is long."}`, "AGENT_STEPS_DIFFER: attempt 1 at \"agent\": step 6, result"},
		{`"key":"t2","kind":"reply"`, `"key":"t1","kind":"reply"`, "AGENT_STEPS_DIFFER"},
		{`"cost_micros":280,`, `"cost_micros":281,`, "AGENT_STEPS_DIFFER"},
		{`"n":5`, `"n":6`, `IMPORT_INVALID: line 16: record 13 of run "a1": AGENT_STEPS_GAP`},
	} {
		changed := strings.ReplaceAll(file, test.from, test.to)
		if changed == file && test.want != "" {
			t.Fatalf("no %s in %s", test.from, file)
		}
		c.stdin = strings.NewReader(summed(t, changed))
		exit := exitFailed
		if test.want == "" {
			exit = exitOK
		}
		stdout, stderr := c.run(exit, "verify", "--file", "-")
		if test.want == "" {
			test.want = "no problems"
		}
		if !strings.Contains(stdout+stderr, test.want) {
			t.Errorf("%s: %s%s", test.to, stdout, stderr)
		}
	}
}

// summed is the file of a run with the sum of its text.
func summed(t *testing.T, text string) string {
	t.Helper()
	at := strings.LastIndex(strings.TrimRight(text, "\n"), "\n") + 1
	last := regexp.MustCompile(`"sha256":"[0-9a-f]+"`).ReplaceAllString(text[at:], fmt.Sprintf(`"sha256":"%x"`, sha256.Sum256([]byte(text[:at]))))
	return text[:at] + last
}

// TestAThousandTurnsOnTheCommandLine: status and list do not grow with what an agent has done, and a line of history keeps within its width.
func TestAThousandTurnsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	const turns = 1000
	type object = map[string]any
	step := func(n int, key, kind string, members object) history.Payload {
		members["key"], members["kind"], members["n"] = key, kind, float64(n)
		members["totals"] = object{"turns": float64(n / 2), "tool_calls": float64(n / 2), "prompt_tokens": 1000.0 * float64(n), "completion_tokens": 10.0 * float64(n), "cost_micros": 1.0 * float64(n)}
		return history.Payload{NodeID: "research", Visit: 1, NodeType: "agent_delegate", AgentID: "researcher", Protocol: "sdk", Attempt: 1, AgentStep: members}
	}
	request := history.Payload{NodeID: "research", Visit: 1, NodeType: "agent_delegate", AgentID: "researcher", Protocol: "sdk", Attempt: 1}
	records := []history.Record{event(history.ActivityRequested, request), event(history.ActivityRequested, step(1, "0", "begun", object{"agent": "researcher", "task": "t", "config": object{}}))}
	long := strings.Repeat("long ", 2000)
	for i := 1; i <= turns; i++ {
		calls := []any{object{"id": "x", "name": "read", "arguments": object{"path": long}}}
		records = append(records, event(history.ActivityRequested, step(2*i, fmt.Sprintf("t%d", i), "reply", object{"model": "gpt-4.1", "text": long, "calls": calls})),
			event(history.ActivityRequested, step(2*i+1, fmt.Sprintf("t%d.c1", i), "result", object{"tool": "read", "output": object{"text": long}})))
	}
	records = recordsOf(records...)
	tally := attemptsOf(nil, records)
	var out bytes.Buffer
	if err := tally.write(&out, tally.from(1, ""), true, 120); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := 1 + 1 + 1 + 2*turns + 1; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > 120 {
			t.Fatalf("%d characters: %s", n, line)
		}
	}
	for _, row := range recordRows(records, tally, &stateTrail{}, detailWidth) {
		if n := utf8.RuneCountInString(row[len(row)-1]); n > detailWidth {
			t.Fatalf("%d characters: %q", n, row)
		}
	}
	p := view.Pending{
		ExecutionID: "order-17", ID: "order-17:research#1.1/q1", NodeType: "agent_delegate", Steps: 2*turns + 1, FirstStep: records[1].Payload.AgentStep, NewestStep: records[len(records)-1].Payload.AgentStep, Totals: records[len(records)-1].Payload.AgentStep["totals"].(object),
		WaitInfo: machine.WaitInfo{
			Kind: machine.WaitInterrupt, NodeID: "research", Attempt: 1, Prompt: "Agent researcher wants to call read. Approve?",
			Show: object{"about": "approval", "calls": []any{object{"key": "t1000.c1", "tool": "read", "arguments": object{"path": strings.Repeat(long, 10)}, "digest": "d"}}},
		},
	}
	out.Reset()
	if err := writeStatus(&out, sampleRun(machine.Interrupted, p), sampleSession(), noon, standing{phase: string(history.PhaseInterrupted)}); err != nil {
		t.Fatal(err)
	}
	if n := out.Len(); n > maxShown+2000 || !strings.Contains(out.String(), "agent transcript shows the rest") || !strings.Contains(out.String(), "agent researcher in turn 1000") {
		t.Errorf("status has %d bytes: %s", n, cut(out.String(), 300))
	}
}
