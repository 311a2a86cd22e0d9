package a2atest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// programs builds both programs once.
var programs = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "a2atest")
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "build", "-C", filepath.Join("..", ".."), "-o", dir+string(filepath.Separator), "./cmd/...").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if dir, err := programs(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(status)
}

// shop is a folder with a database, in which the programs work against one agent.
type shop struct {
	t   *testing.T
	dir string
	env []string
}

func newShop(t *testing.T, a *agent) *shop {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, dir: t.TempDir()}
	s.env = append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "CODER_KEY="+key,
		"WORKFLOW_ENGINE_STORE_PATH="+filepath.Join(s.dir, "runs.db"),
		`WORKFLOW_ENGINE_A2A_CONFIG={"agents":{"coder":{"baseUrl":"`+a.url+`","transport":"jsonrpc","apiKeyEnv":"CODER_KEY","pollIntervalMs":5,"maxPollIntervalMs":10}}}`)
	t.Cleanup(func() {
		files, _ := filepath.Glob(filepath.Join(s.dir, "runs.db*"))
		for _, f := range files {
			if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte(key)) {
				t.Errorf("%s holds the key, or cannot be read: %v", filepath.Base(f), err)
			}
		}
		if len(files) == 0 {
			t.Error("there is no database")
		}
	})
	return s
}

func (s *shop) command(name string, args ...string) *exec.Cmd {
	bin, err := programs()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), filepath.Join(bin, name), args...)
	cmd.Env, cmd.Dir = s.env, s.dir
	return cmd
}

// run runs a command to its end and gives what it printed.
func (s *shop) run(status int, args ...string) string {
	s.t.Helper()
	out, err := s.command("workflows-engine", args...).CombinedOutput()
	got := 0
	if exit, ok := err.(*exec.ExitError); ok {
		got = exit.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	if got != status || bytes.Contains(out, []byte(key)) {
		s.t.Fatalf("%v: status %d, want %d; or the key is told:\n%s", args, got, status, out)
	}
	return string(out)
}

func (s *shop) write(do string) string {
	s.t.Helper()
	text := string(linear(s.t, do).Canonical())
	file := filepath.Join(s.dir, do+".workflow.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *shop) wants(text string, parts ...string) {
	s.t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			s.t.Errorf("%q is not in\n%s", p, text)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestCommandLine answers an agent by commands, each a process of its own.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := newShop(t, a)
	s.wants(s.run(3, "run", s.write("ask"), "--id", "r"), "the agent waits for an answer", "d asks: Which file, Ada?", "workflows-engine resume r")
	s.wants(s.run(0, "status", "r"), "interrupted", "an answer")
	s.wants(s.run(1, "resume", "r", "--payload", "{}"), "INVALID_RESUME_PAYLOAD")
	s.wants(s.run(0, "resume", "r", "--payload", `{"text":"go.mod"}`), `"said"`, "go.mod")
	s.wants(s.run(0, "history", "r"), "has task", "InterruptResumed", "1 attempt,")
	s.wants(s.run(0, "history", "r", "--json"), "externalTaskId")
	if n := len(a.got()); n != 2 {
		t.Errorf("%d messages", n)
	}
}

// TestKilledProgram goes on in another process, with the task that the agent has.
func TestKilledProgram(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := newShop(t, a)
	cmd := s.command("workflows-engine", "run", s.write("wait"), "--id", "r")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "polls", func() bool { return a.count("tasks/get") > 2 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	polls := a.count("tasks/get")
	close(a.release)
	s.run(0, "recover", "r")
	s.wants(s.run(0, "status", "r"), "completed")
	if n := len(a.got()); n != 1 || a.count("tasks/get") == polls {
		t.Errorf("%d messages, %d polls", n, a.count("tasks/get"))
	}
}

// TestCancelCommand cancels from another process than the one that runs.
func TestCancelCommand(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := newShop(t, a)
	cmd := s.command("workflows-engine", "run", s.write("wait"), "--id", "r")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "polls", func() bool { return a.count("tasks/get") > 2 })
	s.run(0, "cancel", "r")
	eventually(t, "the agent is told", func() bool { return len(a.ended()) > 0 })
	if err := cmd.Wait(); err == nil {
		t.Error("the run succeeded")
	}
}

// TestMCPServer follows the next calls of the server's answers.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	a := newAgent(t)
	s := newShop(t, a)
	cmd := s.command("workflows-engine-mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	id := 0
	call := func(method string, params any) map[string]any {
		t.Helper()
		id++
		message, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if _, err := in.Write(append(message, '\n')); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadBytes('\n')
		if err != nil || bytes.Contains(line, []byte(key)) {
			t.Fatalf("%v, or the key is told: %s", err, line)
		}
		var answer struct{ Result map[string]any }
		if err := json.Unmarshal(line, &answer); err != nil || answer.Result == nil {
			t.Fatalf("%v: %s", err, line)
		}
		return answer.Result
	}
	tool := func(name string, arguments any) map[string]any {
		t.Helper()
		result, _ := call("tools/call", map[string]any{"name": name, "arguments": arguments})["structuredContent"].(map[string]any)
		return result
	}
	call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "0"},
	})
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	run := tool("workflow_start", map[string]any{
		"definition": string(linear(t, "ask").Canonical()), "execution_id": "r", "activity_execution_mode": "in_process",
	})
	if run["status"] != "interrupted" {
		t.Fatalf("started: %s", encode(run))
	}
	next := run["next"].(map[string]any)
	arguments := next["arguments"].(map[string]any)
	pending := run["pending"].([]any)[0].(map[string]any)
	if next["tool"] != "workflow_resume" || arguments["interrupt_id"] != "r:d#1.1/1" || pending["prompt"] != "Which file, Ada?" ||
		pending["external_task_id"] == nil || pending["resume_schema"] == nil || pending["agent_id"] != "coder" {
		t.Errorf("next %s, pending %s", encode(next), encode(pending))
	}
	if as := tool("workflow_status", map[string]any{"execution_id": "r"}); as["phase"] != "interrupted" || encode(as["next"]) != encode(next) {
		t.Errorf("status %s", encode(as))
	}
	if left := tool("workflow_resume", arguments); left["error"] == nil {
		t.Errorf("the placeholder of next was taken: %s", encode(left))
	}
	arguments["resume_payload"] = map[string]any{"text": "go.mod"}
	if done := tool("workflow_resume", arguments); done["status"] != "completed" || !strings.Contains(encode(done["result"]), "go.mod") {
		t.Errorf("resumed: %s", encode(done))
	}
	in.Close()
	if err := cmd.Wait(); err != nil || strings.Contains(said.String(), key) {
		t.Errorf("the server ended with %v, or told the key:\n%s", err, said.String())
	}
}
