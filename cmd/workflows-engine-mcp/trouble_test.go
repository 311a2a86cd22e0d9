package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// handshake connects to a server, and returns the instructions and how many tools it lists.
func handshake(p *process) (instructions string, tools int) {
	p.t.Helper()
	p.write(hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":"l","method":"tools/list"}`)
	answers := map[string]map[string]any{}
	for range 2 {
		m := p.read()
		answers[fmt.Sprint(m["id"])], _ = m["result"].(map[string]any)
	}
	instructions, _ = answers["0"]["instructions"].(string)
	list, _ := answers["l"]["tools"].([]any)
	return instructions, len(list)
}

// refused makes a call and returns the text and the details of its refusal.
func refused(p *process, id int) (text string, details map[string]any) {
	p.t.Helper()
	p.write(toolCall(id, "workflow_list", "{}"))
	result, _ := p.read()["result"].(map[string]any)
	content, _ := result["content"].([]any)
	if result["isError"] != true || len(content) != 1 {
		p.t.Fatalf("not refused: %v", result)
	}
	text, _ = content[0].(map[string]any)["text"].(string)
	refusal, _ := result["structuredContent"].(map[string]any)["error"].(map[string]any)
	details, _ = refusal["details"].(map[string]any)
	return text, details
}

// TestTroubleIsTold starts the server with what it cannot work with: the handshake and the list are answered, each call says
// what is wrong and what to do, and the process ends with its status when the input does.
func TestTroubleIsTold(t *testing.T) {
	t.Parallel()
	noHome := []string{"HOME=", "USERPROFILE=", "LOCALAPPDATA=", "XDG_DATA_HOME="}
	for _, c := range []struct {
		name      string
		args      []string
		variables []string
		status    int
		said      []string
	}{
		{"no home folder", nil, noHome, exitUsage, []string{"USAGE_ERROR", "home directory is unknown", "--db"}},
		{"a front without a database", []string{"--work", "none", "--store", "memory"}, nil, exitUsage, []string{"USAGE_ERROR", "--work none requires a database"}},
		{"unknown store", []string{"--store", "redis"}, nil, exitUsage, []string{"USAGE_ERROR", `"redis"`}},
		{"bad variable", nil, []string{"WORKFLOW_ENGINE_LLM_CONFIG={"}, exitUsage, []string{"USAGE_ERROR", "WORKFLOW_ENGINE_LLM_CONFIG"}},
		{"programs of steps in another form", nil, []string{`WORKFLOW_ENGINE_STEP_COMMANDS={"urn:x":["x"]}`}, exitUsage, []string{"USAGE_ERROR", "WORKFLOW_ENGINE_STEP_COMMANDS", `unknown field "urn:x"`, "Next: Tell the user"}},
		{"bad log settings", nil, []string{"WORKFLOW_ENGINE_LOG_LEVEL=loud"}, exitUsage, []string{"USAGE_ERROR", "loud"}},
		{"missing manifest", []string{"--mcp-config", "gone.json"}, nil, exitUsage, []string{"USAGE_ERROR", "gone.json"}},
		{"database is a folder", []string{"--db", "."}, nil, exitFailed, []string{"STORE_UNAVAILABLE"}},
		{"records", []string{"--db", ".", "--log-format", "json"}, nil, exitFailed, []string{"STORE_UNAVAILABLE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && c.name == "no home folder" {
				t.Skip("Windows finds the home folder without this variable")
			}
			p := spawnWith(t, t.TempDir(), c.variables, c.args...)
			instructions, tools := handshake(p)
			if tools < 7 {
				t.Errorf("%d tools", tools)
			}
			if c.status == exitUsage && (!strings.HasPrefix(instructions, "This server does not work") || !strings.Contains(instructions, c.said[1])) {
				t.Errorf("instructions begin %.200q", instructions)
			}
			for id := range 2 {
				text, details := refused(p, id+1)
				for _, said := range c.said {
					if !strings.Contains(text, said) {
						t.Errorf("no %q in %s", said, text)
					}
				}
				if details["engineCode"] != c.said[0] || !strings.Contains(text, "\nNext: ") {
					t.Errorf("%v\n%s", details, text)
				}
			}
			p.write(`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"awp://guide"}}`)
			if m := p.read(); m["error"] != nil {
				t.Errorf("the guide: %v", m)
			}
			p.write(`{"jsonrpc":"2.0","id":10,"method":"resources/read","params":{"uri":"awp://runs/x/history"}}`)
			if m := p.read(); m["error"] == nil || !strings.Contains(fmt.Sprint(m["error"]), c.said[0]) {
				t.Errorf("a run: %v", m)
			}
			p.stdin.Close()
			if status := p.end(); status != c.status {
				t.Errorf("exit status %d\n%s", status, p.stderr)
			}
			if n := strings.Count(p.stderr.String(), c.said[0]); n != 1 {
				t.Errorf("said %d times:\n%s", n, p.stderr)
			}
		})
	}
}

// TestFindingsAreOnStandardError: of a list that is not valid it says each problem, its place and what to do.
func TestFindingsAreOnStandardError(t *testing.T) {
	t.Parallel()
	for list, all := range map[string][]string{
		`{"targets":{"a":{"url":"http://x","secretRef":"env:NO_SUCH_SECRET","ulr":1}}}`: {
			"invalid --webhooks\n", "  line 1, column 47, /targets/a/secretRef secret env:NO_SUCH_SECRET: the variable is unset or blank\n    Set NO_SUCH_SECRET where", `unknown field "ulr"`,
		},
		`{"targets":{"a":{"ulr":"http://x","secretRef":"env:NO_SUCH_SECRET"}}}`: {
			"invalid --webhooks\n", "  line 1, column 18, /targets/a/ulr unknown field \"ulr\"\n    did you mean \"url\"?\n",
		},
		`{}`: {"  line 1, column 1 missing field \"targets\"\n"},
	} {
		var stderr bytes.Buffer
		if got := run(t.Context(), []string{"--webhooks", list}, strings.NewReader(""), io.Discard, &stderr); got != exitUsage {
			t.Errorf("exit status %d", got)
		}
		for _, want := range all {
			if strings.Count(stderr.String(), want) != 1 {
				t.Errorf("no %q in\n%s", want, &stderr)
			}
		}
	}
}

// TestTroubleThatEnds: a database that can be opened later is opened at a call, and the server works from then on.
func TestTroubleThatEnds(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	p := spawn(t, "--db", filepath.Join(folder, "runs.db"))
	handshake(p)
	if text, _ := refused(p, 1); !strings.Contains(text, "not found") {
		t.Error(text)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	p.write(toolCall(2, "workflow_start", `{"execution_id":"n","definition":`+nap(0)+`}`))
	if got := structured(p.read()); got["status"] != "completed" {
		t.Errorf("answered %v", got)
	}
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d\n%s", status, p.stderr)
	}
}
