package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/history/historysql"
)

// asServer makes the test binary the command, so that the tests run the real program, with the race detector if it is on.
const asServer = "WORKFLOWS_ENGINE_MCP_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asHost) != "":
		beHost()
		return
	case os.Getenv(asStep) != "":
		beStep()
		return
	case os.Getenv(asServer) != "":
		main()
		return
	case os.Getenv(asShop) != "":
		serveShop(os.Getenv(asShop))
		return
	}
	if os.Getenv(asTools) != "" {
		serveTools()
		return
	}
	os.Exit(m.Run())
}

// patience bounds everything that waits for a process.
const patience = 30 * time.Second

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	// The user's settings must not reach the tests, nor the tests the user's runs. Under the race detector a process would
	// sleep for a second at its end.
	cmd.Env = []string{asServer + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	return cmd
}

func database(t *testing.T) string { return filepath.Join(t.TempDir(), "runs.db") }

// process is a server that the test writes lines to.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
	stderr *tail
	// late kills the process after patience.
	late *time.Timer
}

// tail keeps what a process writes to stderr.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *tail) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *tail) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func spawn(t *testing.T, args ...string) *process {
	t.Helper()
	return spawnWith(t, "", nil, args...)
}

// spawnWith is spawn in a folder, with more variables.
func spawnWith(t *testing.T, folder string, variables []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(t, args...), stderr: new(tail)}
	p.cmd.Dir, p.cmd.Env = folder, append(p.cmd.Env, variables...)
	p.cmd.Stderr = p.stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdout = bufio.NewScanner(stdout)
	p.stdout.Buffer(nil, 1<<20)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.late = time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	t.Cleanup(func() {
		p.late.Stop()
		p.cmd.Process.Kill() // fails if it has ended, as it should
		p.cmd.Wait()
	})
	return p
}

func (p *process) write(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.stdin, l+"\n"); err != nil {
			p.t.Fatalf("write: %v\n%s", err, p.stderr)
		}
	}
}

// read returns the next line of stdout, which must be a JSON-RPC message.
func (p *process) read() map[string]any {
	p.t.Helper()
	if !p.stdout.Scan() {
		p.t.Fatalf("no more output: %v\n%s", p.stdout.Err(), p.stderr)
	}
	var v map[string]any
	if err := json.Unmarshal(p.stdout.Bytes(), &v); err != nil || v["jsonrpc"] != "2.0" {
		p.t.Fatalf("not JSON-RPC: %s", p.stdout.Text())
	}
	return v
}

// end waits for the end of the process, checks that it has written nothing more to stdout, and returns the exit status.
func (p *process) end() int {
	p.t.Helper()
	for p.stdout.Scan() {
		p.t.Errorf("unexpected output: %s", p.stdout.Text())
	}
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 0
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`

func toolCall(id int, name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, arguments)
}

// nap is a workflow that waits for the given time and ends.
func nap(d time.Duration) string {
	return fmt.Sprintf(`{"document":{"schema":"s","name":"nap","version":"1"},"state_schema":{"type":"object"},`+
		`"nodes":[{"id":"a","type":"start"},{"id":"w","type":"wait","config":{"kind":"duration","duration_ms":%d}},{"id":"z","type":"end"}],`+
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"w"},{"source":"w","target":"z"}]}`, d.Milliseconds())
}

func structured(message map[string]any) map[string]any {
	result, _ := message["result"].(map[string]any)
	content, _ := result["structuredContent"].(map[string]any)
	return content
}

// At the end of input the server answers the call in flight, then the process ends with status 0.
func TestEndOfInput(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store", "memory")
	p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":20000,"definition":`+nap(300*time.Millisecond)+`}`))
	p.stdin.Close()
	p.read()
	if got := structured(p.read()); got["status"] != "completed" {
		t.Errorf("answered %v", got)
	}
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d\n%s", status, p.stderr)
	}
}

// A host that dies breaks both pipes. The server must not die of that in the middle of its work: it finishes the call, stores
// the outcome, and ends.
func TestHostGone(t *testing.T) {
	t.Parallel()
	db := database(t)
	cmd := command(t, "--store-path", db)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	defer late.Stop()
	io.WriteString(stdin, hello+"\n")
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	io.WriteString(stdin, toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":20000,"definition":`+nap(300*time.Millisecond)+`}`)+"\n")
	stdout.Close()
	stdin.Close()
	cmd.Wait() // the status tells of the broken pipe
	if !cmd.ProcessState.Exited() {
		t.Errorf("the server died: %v", cmd.ProcessState)
	}
	if got := status(t, db, "n"); got["phase"] != "completed" {
		t.Errorf("the run is %v", got)
	}
}

// SIGTERM ends the wait of the call in flight, and the process ends with status 0; the run is kept.
func TestSIGTERM(t *testing.T) {
	t.Parallel()
	db := database(t)
	p := spawn(t, "--store-path", db)
	p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":60000,"definition":`+nap(20*time.Second)+`}`),
		toolCall(2, "workflow_status", `{"execution_id":"n"}`))
	p.read()
	for { // the run exists once status finds it
		if got := structured(p.read()); got["phase"] != nil {
			break
		}
		p.write(toolCall(2, "workflow_status", `{"execution_id":"n"}`))
	}
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := p.read(); got["id"] != 1.0 {
		t.Errorf("answered %v", got)
	}
	if status := p.end(); status != 0 || time.Since(began) > 10*time.Second {
		t.Errorf("exit status %d after %s\n%s", status, time.Since(began), p.stderr)
	}
	again := spawn(t, "--store-path", db)
	again.write(hello, toolCall(1, "workflow_status", `{"execution_id":"n"}`))
	again.read()
	if got := structured(again.read()); got["phase"] != "running" {
		t.Errorf("after the restart %v", got)
	}
}

// No line of input ends the server.
func TestMCP12_1_13_MalformedLinesOverStdio(t *testing.T) {
	t.Parallel()
	p := spawn(t, "--store=memory", "--max-message-bytes=100000")
	p.write("\ufeff" + hello)
	p.read()
	p.write("Content-Length: 10", "", `{"jsonrpc":`, `[]`, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
		`{"method":"`+strings.Repeat("x", 200_000)+`","jsonrpc":"2.0","id":2}`, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	for _, want := range []string{`null -32700`, `null -32700`, `null -32600`, `1 -32700`, `2 -32600`, `3`} {
		got := p.read()
		text, _ := json.Marshal(got["id"])
		line := string(text)
		if e, ok := got["error"].(map[string]any); ok {
			line = fmt.Sprintf("%s %v", text, e["code"])
		}
		if line != want {
			t.Errorf("got %s, want %s: %v", line, want, got)
		}
	}
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// A server that was killed while a timer was pending finishes the run once it is started again.
func TestTimerSurvivesKill(t *testing.T) {
	t.Parallel()
	db := database(t)
	p := spawn(t, "--store-path", db)
	p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":0,"definition":`+nap(time.Second)+`}`))
	p.read()
	if got := structured(p.read()); got["status"] != "awaiting_timer" {
		t.Fatalf("answered %v", got)
	}
	p.cmd.Process.Kill()
	again := spawn(t, "--store-path", db)
	again.write(hello, toolCall(1, "workflow_status", `{"execution_id":"n","wait_ms":20000}`))
	again.read()
	if got := structured(again.read()); got["phase"] != "completed" {
		t.Errorf("after the restart %v", got)
	}
}

// TestTheTraceParentOfACallIsRecorded: a run has the trace parent of the tool call that has started it, sent over stdio.
func TestTheTraceParentOfACallIsRecorded(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	db := database(t)
	p := spawn(t, "--store-path", db)
	p.write(hello, strings.Replace(toolCall(1, "workflow_start", `{"execution_id":"n","wait_ms":0,"definition":`+nap(time.Hour)+`}`),
		`"params":{`, `"params":{"_meta":{"traceparent":"`+parent+`"},`, 1))
	p.read()
	p.read()
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	store, err := historysql.Open(t.Context(), db, historysql.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	records, err := store.Read(t.Context(), "n", 1, 1)
	if err != nil || len(records) != 1 || records[0].Payload.TraceParent != parent {
		t.Errorf("%+v, %v", records, err)
	}
}

func TestStderrSaysWhatItWorksWith(t *testing.T) {
	t.Parallel()
	db := database(t)
	for _, tt := range []struct {
		args  []string
		lines []string
	}{
		{[]string{"--store-path=" + db}, []string{"execution history store: sqlite (" + db + ")", "llm_call=missing", "default mode host_mediated"}},
		{[]string{"--store=memory", "--profile", "demo"}, []string{"execution history store: memory", "llm_call=stub(demo)", "default mode in_process"}},
		{nil, []string{"workflows-engine" + string(filepath.Separator) + "runs.db"}},
	} {
		p := spawn(t, tt.args...)
		p.stdin.Close()
		if status := p.end(); status != 0 {
			t.Errorf("%v: exit status %d", tt.args, status)
		}
		for _, line := range tt.lines {
			if !strings.Contains(p.stderr.String(), line) {
				t.Errorf("%v: no %q in\n%s", tt.args, line, p.stderr)
			}
		}
	}
}

// TestAServerSaysWhatDefinitionsLack: what the definitions of its folder need and nothing here performs is one line at the start,
// unless a host performs them.
func TestAServerSaysWhatDefinitionsLack(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text := `{"document":{"schema":"s","name":"one","version":"1"},"state_schema":{"type":"object"},
 "nodes":[{"id":"a","type":"start"},{"id":"g","type":"step","config":{"handler":"urn:gone"}},{"id":"z","type":"end"}],
 "edges":[{"source":"__start__","target":"a"},{"source":"a","target":"g"},{"source":"g","target":"z"}]}`
	if err := os.WriteFile(filepath.Join(folder, "one.workflow.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for handlers, want := range map[string]int{`{"urn:known":{}}`: 1, `{"urn:gone":{}}`: 0, "": 0} {
		p := spawnWith(t, folder, []string{"WORKFLOW_ENGINE_STEP_HANDLERS=" + handlers}, "--store=memory", "--workflow-dir", folder)
		p.stdin.Close()
		if status := p.end(); status != 0 {
			t.Errorf("exit status %d", status)
		}
		said := `workflows-engine-mcp: warning: definitions in ` + folder + ` need missing executors: step handler "urn:gone" (node "g" of workflow "one"): add it to `
		if got := strings.Count(p.stderr.String(), said); got != want || strings.Count(p.stderr.String(), "warning") != want {
			t.Errorf("with %q said %d times:\n%s", handlers, got, p.stderr)
		}
	}
}

// With --log-format json each line on stderr is a record, the first ones and the reason for the end included.
func TestStderrHoldsRecordsAlone(t *testing.T) {
	t.Parallel()
	p := spawnWith(t, "", []string{"WORKFLOW_ENGINE_STORE_PAHT=x.db"}, "--store=memory", "--log-format", "json")
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	failed := spawn(t, "--log-format", "json", "--store-path", t.TempDir())
	failed.stdin.Close()
	if status := failed.end(); status != exitFailed {
		t.Errorf("exit status %d", status)
	}
	refused := spawnWith(t, "", []string{"WORKFLOW_ENGINE_STEP_COMMANDS=gone.json"}, "--log-format", "json")
	refused.stdin.Close()
	if status := refused.end(); status != exitUsage {
		t.Errorf("exit status %d", status)
	}
	for name, text := range map[string]string{
		"served": p.stderr.String(), "failed": failed.stderr.String(), "refused": refused.stderr.String(),
	} {
		var heard []string
		for line := range strings.Lines(text) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatalf("%s: no record: %s", name, line)
			}
			heard = append(heard, fmt.Sprint(record["level"], " ", record["msg"]))
		}
		want := []string{"INFO execution history store: memory", "WARN setting questionable", "INFO ready, default mode host_mediated"}
		if name != "served" {
			want = []string{"ERROR server failed"}
		}
		for _, message := range want {
			if !slices.Contains(heard, message) {
				t.Errorf("%s: no record %q in\n%s", name, message, text)
			}
		}
	}
}

// What package net/http prints by itself is a record, too: here of a provider that sends more than one answer.
func TestThePackagesLogIsRecords(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
				const answer = `{"choices":[{"message":{"content":"Hello."},"finish_reason":"stop"}]}`
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\n\r\n", len(answer), answer)
			}
		}
	}()
	p := spawnWith(t, "", []string{`WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"http://` + listener.Addr().String() + `","noAuth":true}`}, "--store=memory", "--log-format", "json", "--log-level", "info")
	p.write(hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.read()
	p.write(toolCall(2, "workflow_start", `{"execution_id":"m","definition":`+asksModel+`}`))
	if got := structured(p.read()); got["status"] != "completed" {
		t.Errorf("answered %v", got)
	}
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	text := p.stderr.String()
	for line := range strings.Lines(text) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no record: %s", line)
		}
	}
	if !strings.Contains(text, "Unsolicited response") {
		t.Errorf("net/http is silent:\n%s", text)
	}
}

const asksModel = `{"document":{"schema":"s","name":"asks","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
	`{"id":"a","type":"llm_call","config":{"model":"m","prompt":"Hello?"}},{"id":"e","type":"end"}],` +
	`"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"a"},{"source":"a","target":"e"}]}`

// A help or version text that cannot be written is a failure.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"--help", "--version"} {
		reader, writer := io.Pipe()
		reader.CloseWithError(errors.New("no space left"))
		var stderr bytes.Buffer
		if got := run(t.Context(), []string{flag}, strings.NewReader(""), writer, &stderr); got != exitFailed || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: exit status %d, %q", flag, got, &stderr)
		}
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args   []string
		status int
		stdout string
		stderr string
	}{
		{[]string{"--help"}, 0, "--store-path", ""},
		{[]string{"-h"}, 0, "Usage:", ""},
		{[]string{"--version"}, 0, "workflows-engine-mcp ", ""},
		{[]string{"--stor", "memory"}, 2, "", "unknown flag: --stor"},
		{[]string{"--store"}, 2, "", "--store"},
		{[]string{"--store", "redis"}, 2, "", "sqlite, postgres or memory"},
		{[]string{"--store", "postgres"}, 2, "", "WORKFLOW_ENGINE_STORE_URL"},
		{[]string{"serve"}, 2, "", `"serve"`},
		{[]string{"--max-message-bytes=0"}, 2, "", "--max-message-bytes"},
		{[]string{"--max-message-bytes=x"}, 2, "", `expected a whole number`},
		{[]string{"--tools", "workflow_go"}, 2, "", `unknown tool "workflow_go"`},
		{[]string{"--work", "some"}, 2, "", `invalid value "some" for --work`},
		{[]string{"--wait-limit=5m1s"}, 2, "", "at most 5m0s"},
		{[]string{"--profile", "prod"}, 2, "", "--profile"},
		{[]string{"--store-path", filepath.Join(t.TempDir(), "missing", "runs.db")}, 2, "", "not found"},
		{[]string{"--db", filepath.Join(t.TempDir(), "missing", "runs.db")}, 2, "", "not found"},
		{[]string{"--store-path", t.TempDir()}, 1, "", "workflows-engine-mcp: "},
	} {
		cmd := command(t, tt.args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Run() // the status is looked at below
		if got := cmd.ProcessState.ExitCode(); got != tt.status {
			t.Errorf("%v: exit status %d, want %d\n%s", tt.args, got, tt.status, stderr.String())
		}
		if !strings.Contains(stdout.String(), tt.stdout) || tt.stdout == "" && stdout.Len() > 0 || !strings.Contains(stderr.String(), tt.stderr) {
			t.Errorf("%v: stdout %q, stderr %q", tt.args, stdout.String(), stderr.String())
		}
	}
}

// client connects the SDK's client to a server process.
func client(t *testing.T, cmd *exec.Cmd) *mcp.ClientSession {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	stderr := new(tail)
	cmd.Stderr = stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%s", err, stderr)
	}
	return session
}
