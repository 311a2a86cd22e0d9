package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// asProgram makes the test binary the program.
const asProgram = "WORKFLOWS_ENGINE_TEMPORAL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// patience bounds everything that waits for a process.
const patience = time.Minute

// apiKey stands for a secret that no output may show.
const apiKey = "sentinel-of-the-api-key-0123456789"

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	return cmd
}

func call(t *testing.T, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatalf("%v: %v", args, err)
		}
		status = exit.ExitCode()
	}
	return status, out.String(), errs.String()
}

// nowhere returns an address at which nothing listens.
func nowhere(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

const stepText = `{"document":{"schema":"urn:test","name":"step","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
	`{"id":"do","type":"step","config":{"handler":"do"}},{"id":"e","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"do"},{"source":"do","target":"e"}]}`

func TestHelp(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := call(t, nil, "--help")
	if status != 0 || stderr != "" {
		t.Errorf("status %d\n%s", status, stderr)
	}
	for _, name := range []string{"worker", "mcp", "run", "status", "resume", "submit", "signal", "cancel", "list", "history", "doctor", "serve", "ui", "db"} {
		if !strings.Contains(stdout, "\n  "+name+" ") {
			t.Errorf("no command %s in\n%s", name, stdout)
		}
	}
	_, options, _ := call(t, nil, "help", "options")
	for _, s := range settings {
		if !strings.Contains(options, "--"+s.flag+" ") {
			t.Errorf("no flag %s in\n%s", s.flag, options)
		}
	}
	for _, absent := range []string{"--db", "--store", "--max-tree-runs"} {
		if strings.Contains(options, absent+" ") {
			t.Errorf("flag %s in\n%s", absent, options)
		}
	}
	if _, run, _ := call(t, nil, "run", "--help"); !strings.Contains(run, program+" run ") || strings.Contains(run, "workflows-engine run ") {
		t.Errorf("the help of run names another program:\n%s", run)
	}
}

// TestServiceAway: without the service, commands end with its address, an empty standard output and no secret.
func TestServiceAway(t *testing.T) {
	t.Parallel()
	at, file := nowhere(t), filepath.Join(t.TempDir(), "step.workflow.json")
	if err := os.WriteFile(file, []byte(stepText), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"TEMPORAL_ADDRESS=" + at, "TEMPORAL_API_KEY=" + apiKey}
	for _, args := range [][]string{
		{"run", file}, {"run", file, "--detach"}, {"status", "r"}, {"list"}, {"history", "r"}, {"resume", "r"}, {"submit", "r", "n", "--result", "{}"},
		{"signal", "r", "go"}, {"cancel", "r"}, {"watch", "r"}, {"db", "export", "r", "--move"}, {"worker", "--profile", "demo"}, {"worker", "--profile", "demo", "--log-format", "json"},
	} {
		status, stdout, stderr := call(t, env, args...)
		if status != 1 || stdout != "" || !strings.Contains(stderr, "STORE_UNAVAILABLE") || !strings.Contains(stderr, at) {
			t.Errorf("%v: status %d, %q\n%s", args, status, stdout, stderr)
		}
		if strings.Contains(stderr, apiKey) {
			t.Errorf("%v shows the key", args)
		}
	}
	status, stdout, _ := call(t, env, "doctor")
	if status != 1 || !strings.Contains(stdout, "problem "+at) || strings.Contains(stdout, apiKey) {
		t.Errorf("doctor: status %d\n%s", status, stdout)
	}
}

func TestUnsupportedCommands(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"recover"}, {"gc", "--older-than", "30d"}, {"store", "migrate"}, {"fork", "r", "--at", "2"}, {"db", "verify"}, {"db", "copy", "--to", "x.db"}, {"serve", "--work=all"}, {"webhook", "list"}} {
		if status, stdout, stderr := call(t, nil, args...); status != 1 || stdout != "" || !strings.Contains(stderr, "UNSUPPORTED_BY_BACKEND") {
			t.Errorf("%v: status %d, %q\n%s", args, status, stdout, stderr)
		}
	}
}

// TestTheSameTools: mcp serves the tools of workflows-engine-mcp with the same descriptions, also while the service is away; calls say so.
func TestTheSameTools(t *testing.T) {
	t.Parallel()
	at := nowhere(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &mcp.CommandTransport{Command: command(t, "mcp", "--temporal-address", at)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	runner, err := graph.New(historymem.New(), graph.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	near, far := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(runner, mcpserver.Options{DefaultMode: machine.InProcess}).Connect(ctx, far, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	other, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, near, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	describe := func(s *mcp.ClientSession) (text string) {
		list, err := s.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Tools {
			text += tool.Name + ": " + tool.Description + "\n"
		}
		return text
	}
	if got, want := describe(own), describe(other); got != want {
		t.Errorf("tools:\n%s\nwant:\n%s", got, want)
	}
	got, err := own.CallTool(ctx, &mcp.CallToolParams{Name: "workflow_list"})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, c := range got.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	if !got.IsError || !strings.Contains(text, "STORE_UNAVAILABLE") || !strings.Contains(text, at) {
		t.Errorf("workflow_list: %s", text)
	}
}

// TestTLS: a certificate needs its key, and anything about TLS turns it on.
func TestTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args    []string
		on, bad bool
	}{
		{}, {args: []string{"--temporal-tls", "true"}, on: true}, {args: []string{"--temporal-tls", "false"}}, {args: []string{"--temporal-tls", "maybe"}, bad: true},
		{args: []string{"--temporal-tls-server-name", "a.example"}, on: true}, {args: []string{"--temporal-tls-cert-file", "c.pem"}, bad: true},
		{args: []string{"--temporal-tls-ca-file", "missing.pem"}, bad: true},
	} {
		s, set := &service{env: config.Environment{}}, pflag.NewFlagSet("test", pflag.ContinueOnError)
		s.register(set)
		if err := set.Parse(c.args); err != nil {
			t.Fatal(err)
		}
		got, err := s.tls()
		if bad := errors.Is(err, problem.UsageError); bad != c.bad || (got != nil) != c.on {
			t.Errorf("%v: %v, %v", c.args, got != nil, err)
		}
	}
}

// TestCommandsOfThePages: the commands of this program on the pages exist, with their flags.
func TestCommandsOfThePages(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "scaling.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		arguments, ok := strings.CutPrefix(line, program+" ")
		if !ok {
			continue
		}
		n++
		args := append(strings.Fields(strings.TrimSuffix(strings.TrimSpace(arguments), "&")), "--help")
		if status, _, stderr := call(t, nil, args...); status != 0 {
			t.Errorf("%s: %s", line, stderr)
		}
	}
	if n < 4 {
		t.Errorf("only %d commands", n)
	}
}
