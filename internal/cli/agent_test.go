package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat/chattest"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

const agentKey = "sk-very-secret-key-of-the-agent"

// agentCommands returns what runs commands with agents whose model is the server. The researcher asks people and calls the summarizer.
func agentCommands(t *testing.T, url string) func(want int, args ...string) (stdout, stderr string) {
	t.Helper()
	folder := t.TempDir()
	listAgents(t, folder, url, "x", 50)
	return commandsIn(t, folder)
}

// listAgents writes a list of agents, with so many turns for the researcher.
func listAgents(t *testing.T, folder, url, model string, turns int) {
	t.Helper()
	list := fmt.Sprintf(`{"models":{"m":{"model":%q,"endpoint":{"baseUrl":%q,"apiKeyEnv":"AGENT_KEY"}}},
		"agents":{"researcher":{"instructions":"Find figures.","budgets":{"turns":%d},"tools":[{"agent":"summarizer"},{"builtin":"ask_person"}]},
		"summarizer":{"instructions":"Sum up."}}}`, model, url, turns)
	if err := os.WriteFile(filepath.Join(folder, "agents.json"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
}

func commandsIn(t *testing.T, folder string) func(want int, args ...string) (stdout, stderr string) {
	return func(want int, args ...string) (string, string) {
		t.Helper()
		var stdout, stderr bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, now: time.Now, env: config.Environment{
			GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
			Variables: []string{"WORKFLOW_ENGINE_AGENTS=agents.json", "AGENT_KEY=" + agentKey},
		}}
		if got := a.execute(t.Context(), append(args, "--db", filepath.Join(folder, "runs.db"))); got != want {
			t.Fatalf("%q: status %d, want %d\n%s%s", args, got, want, stdout.String(), stderr.String())
		}
		return stdout.String(), stderr.String()
	}
}

// A question with an empty schema is one without: the command that is printed has a text, and a blank answer is refused.
func TestAgentAsksWithAnEmptySchema(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t, chattest.Calls(chattest.Call("ask_person", `{"question":"Which year?","schema":{}}`)), chattest.Text("It is 41."))
	command := agentCommands(t, server.URL)
	_, asked := command(exitPaused, "agent", "run", "researcher", "How much?", "--id", "r1")
	if !strings.Contains(asked, `resume r1 --payload '{"text":"…"}'`) {
		t.Error(asked)
	}
	for _, blank := range []string{`{}`, `{"text":" "}`} {
		if _, refused := command(exitFailed, "resume", "r1", "--payload", blank); !strings.Contains(refused, "INVALID_RESUME_PAYLOAD") {
			t.Errorf("%s: %s", blank, refused)
		}
	}
	command(exitOK, "resume", "r1", "--payload", `{"text":"2024"}`)
}

// An agent is run, asks a person, goes on when it is answered, and its transcript has all of it in order. The key of its model is nowhere.
func TestAgentRun(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t,
		chattest.Calls(chattest.Call("agent__summarizer", `{"task":"two rows"}`)),
		chattest.Text("They are short, "+agentKey+"."),
		chattest.Calls(chattest.Call("ask_person", `{"question":"Which year?"}`)),
		chattest.Text("It is 41."),
	)
	command := agentCommands(t, server.URL)
	_, asked := command(exitPaused, "agent", "run", "researcher", "How much?", "--input", `{"rows":[1,2],"a \"b":"c"}`, "--id", "r1")
	if !strings.Contains(asked, "Which year?") || !strings.Contains(asked, "workflows-engine resume r1") {
		t.Error(asked)
	}
	answer, _ := command(exitOK, "resume", "r1", "--payload", `{"year":2024}`)
	if want := "{\n  \"text\": \"It is 41.\"\n}\n"; answer != want {
		t.Errorf("answer %q", answer)
	}
	if first := server.Asked()[0]; !strings.Contains(string(first.Body), `How much?\n\n{\"a \\\"b\":\"c\",\"rows\":[1,2]}`) {
		t.Errorf("first request %s", first.Body)
	}
	plain, _ := command(exitOK, "agent", "transcript", "r1")
	at := 0
	for _, want := range []string{
		"=== agent ===\n--- 0 begins\nagent: researcher\n\nsystem: Find figures.", "tools: ask_person, agent__summarizer", "task: How much?", "call 1: agent__summarizer: {\"task\":\"two rows\"}",
		"=== agent, sub-agent of t1.c1 ===", "\n    system: Sum up.", "They are short, [", "=== agent ===", "--- t1.c1 result",
		"call 1: ask_person", "--- q1 question\nasked: ", "--- q1 answer\nanswered: {\"year\":2024}", "It is 41.\n", "--- ended\nanswer: {\"text\":\"It is 41.\"}", "totals: 4 turns, 1 tool call, 400+40 tokens",
	} {
		i := strings.Index(plain[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not there, in\n%s", want, plain)
		}
		at += i
	}
	markdown, _ := command(exitOK, "agent", "transcript", "r1", "--markdown")
	if !strings.Contains(markdown, "# agent\n\n## 0 begins\n\n**agent**\n\nresearcher\n\n**system**\n\nFind figures.") || !strings.Contains(markdown, "```json\n{\"year\":2024}\n```") {
		t.Error(markdown)
	}
	lines, _ := command(exitOK, "agent", "transcript", "r1", "--json")
	if !strings.Contains(lines, `"n":1,"key":"0","kind":"begun"`) || !strings.Contains(lines, `"payload":{"year":2024}`) {
		t.Error(lines)
	}
	if _, none := command(exitOK, "agent", "transcript", "r1", "--node", "begin"); !strings.Contains(none, `node "begin" of run r1 has no steps of agents`) {
		t.Error(none)
	}
	command(exitUsage, "agent", "transcript", "r1", "--json", "--markdown")
	history, _ := command(exitOK, "history", "r1", "--full")
	shown, _ := command(exitOK, "agent", "show", "researcher", "--tools")
	for _, text := range []string{plain, markdown, lines, asked, answer, history, shown} {
		if strings.Contains(text, agentKey) {
			t.Errorf("the key stands in\n%s", text)
		}
	}
	if server.Left() > 0 {
		t.Errorf("%d replies are left", server.Left())
	}
}

// TestAgentRunIsRetriedWithTodaysConfiguration: what a run with a used-up budget, its status and a plain retry print is the command by which
// its agent goes on once the budget is raised. What it goes on with stands in its transcript and in the answers of the engine.
func TestAgentRunIsRetriedWithTodaysConfiguration(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t,
		chattest.Calls(chattest.Call("agent__summarizer", `{"task":"two rows"}`)), chattest.Text("They are short."),
		chattest.Calls(chattest.Call("ask_person", `{"question":"Which year?"}`)), chattest.Text("It is 41."),
	)
	folder := t.TempDir()
	command := commandsIn(t, folder)
	listAgents(t, folder, server.URL, "x", 2)
	_, failed := command(exitFailed, "agent", "run", "researcher", "How much?", "--id", "r1")
	_, refused := command(exitFailed, "retry", "r1")
	status, _ := command(exitOK, "status", "r1")
	for _, text := range []string{failed, refused, status} {
		if !strings.Contains(text, "retry r1 --agent-config current") && !strings.Contains(text, "retry r1 --db "+filepath.Join(folder, "runs.db")+" --agent-config current") {
			t.Errorf("without the command:\n%s", text)
		}
	}
	if !strings.Contains(refused, "AGENT_BUDGET_SPENT") || !strings.Contains(status, "--agent-config current --db "+filepath.Join(folder, "runs.db")+"\n") || !strings.Contains(status, "this command continues after t1.c1:\n") {
		t.Errorf("%s\n%s", refused, status)
	}
	command(exitUsage, "retry", "r1", "--agent-config", "newest")

	listAgents(t, folder, server.URL, "y", 9)
	command(exitPaused, "retry", "r1", "--agent-config", "current", "--id", "r2")
	if waiting, _ := command(exitOK, "status", "r2", "--json"); !strings.Contains(waiting, `"turns": 9`) || strings.Contains(waiting, `"turns": 2`) {
		t.Errorf("another budget than today's:\n%s", waiting)
	}
	command(exitOK, "resume", "r2", "--payload", `{"year":2024}`)
	plain, _ := command(exitOK, "agent", "transcript", "r2")
	for _, want := range []string{"--- 0 continued\nwith today's configuration, after AGENT_TURNS_EXCEEDED ", "--- 0 reconfigured\nasks y within {", `"turns":9`} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in\n%s", want, plain)
		}
	}
	if asked := server.Asked(); len(asked) != 4 || !strings.Contains(string(asked[1].Body), `"model":"x"`) || !strings.Contains(string(asked[2].Body), `"model":"y"`) {
		t.Errorf("%d requests", len(asked))
	}
	command(exitOK, "verify")
}

// An agent that fails ends the command with the status of run.
func TestAgentRunFails(t *testing.T) {
	t.Parallel()
	server := chattest.Serve(t, chattest.Fail(401, "no such key"))
	_, stderr := agentCommands(t, server.URL)(exitFailed, "agent", "run", "summarizer", "x")
	host := strings.TrimPrefix(server.URL, "http://")
	host, _, _ = strings.Cut(host, "/")
	if want := "refused by " + host + ` (it comes from env:AGENT_KEY, of model "m" in the list of agents)`; !strings.Contains(stderr, "LLM_CREDENTIALS_REFUSED") || !strings.Contains(stderr, want) {
		t.Errorf("no %q in\n%s", want, stderr)
	}
}
