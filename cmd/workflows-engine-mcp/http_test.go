package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

const httpToken = "a-token-of-some-length"

// webServer is a server that listens. Its input has ended before it begins.
type webServer struct {
	*process
	url string
	// progress gets a value when a client hears of some.
	progress chan struct{}
}

// spawnHTTP starts a server that listens on a free port, and waits until it says where.
func spawnHTTP(t *testing.T, variables []string, args ...string) *webServer {
	t.Helper()
	p := spawnWith(t, "", variables, append([]string{"--transport", "http", "--listen", "127.0.0.1:0"}, args...)...)
	p.stdin.Close()
	at := regexp.MustCompile(`serves MCP at (http://[\d.:]+/mcp)`)
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if m := at.FindStringSubmatch(p.stderr.String()); m != nil {
			return &webServer{p, m[1], make(chan struct{}, 1)}
		}
		if time.Since(began) > patience {
			t.Fatalf("it does not listen:\n%s", p.stderr)
		}
	}
}

// connect connects the SDK's client.
func (s *webServer) connect(token string) (*mcp.ClientSession, error) {
	heard := func(context.Context, *mcp.ProgressNotificationClientRequest) {
		select {
		case s.progress <- struct{}{}:
		default:
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "0"}, &mcp.ClientOptions{ProgressNotificationHandler: heard})
	return client.Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: bearer(token)},
	}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
}

type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r = r.Clone(r.Context()); token != "" {
		r.Header.Set("Authorization", "Bearer "+string(token))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// call calls a tool, and returns the structured content and the text.
func (s *webServer) call(session *mcp.ClientSession, tool string, args any) (map[string]any, string) {
	s.t.Helper()
	res, err := session.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", tool, err, s.stderr)
	}
	content, _ := res.StructuredContent.(map[string]any)
	return content, res.Content[0].(*mcp.TextContent).Text
}

// health asks for the health, and returns the status and the text.
func (s *webServer) health() (int, string) {
	s.t.Helper()
	resp, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + "/healthz")
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// TestHTTPServer drives a run over HTTP through the death of the server: the run is there when a client connects to the next one. The end
// of its input is nothing to a server that listens; SIGTERM ends it within seconds, though a call waits and a client listens.
func TestHTTPServer(t *testing.T) {
	t.Parallel()
	db := database(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("\n"+httpToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	definition := json.RawMessage(walk(anySchema, `"type":"step","config":{"handler":"h"}`, `"type":"wait","config":{"kind":"duration","duration_ms":240000}`))
	first := spawnHTTP(t, nil, "--store-path", db, "--token-file", file)
	if _, err := first.connect(""); err == nil {
		t.Error("let in without a token")
	}
	session, err := first.connect(httpToken)
	if err != nil {
		t.Fatalf("%v\n%s", err, first.stderr)
	}
	if got, text := first.call(session, "workflow_start", map[string]any{"execution_id": "r", "definition": definition}); got["status"] != "awaiting_activity" {
		t.Fatal(text)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.end()

	second := spawnHTTP(t, []string{"WORKFLOW_ENGINE_HTTP_TOKEN=" + httpToken}, "--store-path", db)
	if session, err = second.connect(httpToken); err != nil {
		t.Fatalf("%v\n%s", err, second.stderr)
	}
	if status, text := second.health(); status != 200 || text != "ok\n" {
		t.Errorf("health: %d %s", status, text)
	}
	type result struct {
		*mcp.CallToolResult
		error
	}
	waits := make(chan result, 1)
	submit := &mcp.CallToolParams{Name: "workflow_submit_activity", Arguments: map[string]any{
		"execution_id": "r", "node_id": "n0", "outcome": map[string]any{"ok": true, "result": map[string]any{}}, "wait_ms": 300_000,
	}}
	submit.SetProgressToken("p")
	go func() {
		res, err := session.CallTool(context.Background(), submit)
		waits <- result{res, err}
	}()
	select {
	case got := <-waits:
		t.Fatalf("the call does not wait: %v", got)
	case <-second.progress:
	}
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGTERM")
	}
	began := time.Now()
	if err := second.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := <-waits; got.error != nil {
		t.Errorf("the call that waits: %v", got.error)
	} else if text := got.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "awaiting_timer") {
		t.Errorf("the call that waits: %s", text)
	}
	status := second.end()
	if took := time.Since(began); status != 0 || took > 5*time.Second {
		t.Errorf("exit status %d after %s\n%s", status, took, second.stderr)
	}
	if text := first.stderr.String() + second.stderr.String(); strings.Contains(text, httpToken) || strings.Contains(text, "require a token") {
		t.Errorf("stderr:\n%s", text)
	}
}

// TestHTTPSettings: what would let in more than the operator knows, or cannot work, is refused at the start.
// TestHTTPServerEndsWithItsDatabase: its service manager starts it again, and it then uses the file that is there.
func TestHTTPServerEndsWithItsDatabase(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps files that are open from being moved")
	}
	db := database(t)
	s := spawnHTTP(t, nil, "--store-path", db)
	if status, text := s.health(); status != http.StatusOK { // it has opened the file
		t.Fatal(status, text)
	}
	if err := os.Rename(db, db+".old"); err != nil {
		t.Fatal(err)
	}
	if status := s.end(); status != exitFailed || !strings.Contains(s.stderr.String(), "STORE_REPLACED") {
		t.Errorf("exit status %d\n%s", status, s.stderr)
	}
}

func TestHTTPSettings(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	folder := t.TempDir()
	for name, text := range map[string]string{"short": "x", "blank": "  \n", "two": "a token of some length", "good": httpToken} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const web = "--transport=http"
	for _, c := range []struct {
		args      []string
		variables []string
		says      string
	}{
		{[]string{"--transport", "sse"}, nil, `invalid value "sse"`},
		{[]string{"--listen", "127.0.0.1:0"}, nil, "no effect without --transport http"},
		{[]string{"--token-file", "good"}, nil, "no effect without --transport http"},
		{[]string{web, "--listen", "0.0.0.0:0"}, nil, "requires a token"},
		{[]string{web, "--listen", ":0"}, nil, "requires a token"},
		{[]string{web, "--listen", "[::]:0"}, nil, "requires a token"},
		{[]string{web, "--listen", "nonsense"}, nil, "invalid address"},
		{[]string{web, "--listen", taken.Addr().String()}, nil, "cannot listen on"},
		{[]string{web, "--token-file", "gone"}, nil, "cannot read --token-file gone"},
		{[]string{web, "--token-file", "."}, nil, "not a regular file"},
		{[]string{web, "--token-file", "short"}, nil, "found 1"},
		{[]string{web, "--token-file", "blank"}, nil, "found 0"},
		{[]string{web, "--token-file", "two"}, nil, "white space"},
		{[]string{web, "--token-file", "short"}, []string{"WORKFLOW_ENGINE_HTTP_TOKEN=" + httpToken}, "found 1"}, // the flag wins
		{[]string{web}, []string{"WORKFLOW_ENGINE_HTTP_TOKEN=short"}, "WORKFLOW_ENGINE_HTTP_TOKEN"},
		{[]string{web}, []string{"WORKFLOW_ENGINE_LOG_LEVEL=loud"}, "loud"}, // what is said of it could not be logged
		{[]string{web, "--allow-origin", "https://good.example,*"}, nil, `invalid origin "*"`},
		{[]string{web, "--allow-host", "https://flows.example"}, nil, "invalid host name"},
	} {
		t.Run(fmt.Sprint(c.args, c.variables), func(t *testing.T) {
			t.Parallel()
			p := spawnWith(t, folder, c.variables, append(c.args, "--store", "memory")...)
			status := p.end() // its input is open
			if text := p.stderr.String(); status != exitUsage || !strings.Contains(text, "USAGE_ERROR") || !strings.Contains(text, c.says) {
				t.Errorf("exit status %d\n%s", status, text)
			}
		})
	}
}

// TestHTTPWarnings: what an operator should know of the door is said at the start, by lines or by records.
func TestHTTPWarnings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(httpToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"no token":      {nil, []string{"user of this machine can connect"}},
		"a loose file":  {[]string{"--token-file", file}, []string{"token is readable by every user of this machine (mode 0644)"}},
		"not this host": {[]string{"--token-file", file, "--listen", "0.0.0.0:0"}, []string{"TLS"}},
		"records":       {[]string{"--log-format", "json"}, []string{"user of this machine can connect", `"msg":"serves MCP at http://`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS == "windows" && name == "a loose file" {
				t.Skip("Windows has other permissions")
			}
			p := spawnWith(t, "", nil, append([]string{"--transport", "http", "--listen", "127.0.0.1:0", "--store", "memory"}, c.args...)...)
			for began := time.Now(); !strings.Contains(p.stderr.String(), "ready, default mode"); time.Sleep(time.Millisecond) {
				if time.Since(began) > patience {
					t.Fatalf("not ready:\n%s", p.stderr)
				}
			}
			text := p.stderr.String()
			for _, said := range c.says {
				if !strings.Contains(text, said) {
					t.Errorf("no %q in\n%s", said, text)
				}
			}
			if name == "records" {
				for line := range strings.Lines(text) {
					if !json.Valid([]byte(line)) {
						t.Errorf("no record: %s", line)
					}
				}
			}
		})
	}
}

// TestHTTPTroubleIsTold: a server that listens and cannot open its database, or has wrong settings, says so to its clients, and by its
// health; once the cause is gone it works.
func TestHTTPTroubleIsTold(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "later")
	s := spawnHTTP(t, nil, "--db", filepath.Join(folder, "runs.db"))
	session, err := s.connect("")
	if err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	if instructions := session.InitializeResult().Instructions; !strings.HasPrefix(instructions, "This server does not work") {
		t.Errorf("instructions begin %.200q", instructions)
	}
	if _, text := s.call(session, "workflow_list", map[string]any{}); !strings.Contains(text, "not found") {
		t.Error(text)
	}
	if status, text := s.health(); status != 503 || text != "unavailable\n" {
		t.Errorf("health: %d %s", status, text)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if status, _ := s.health(); status == 200 {
			break
		}
		if time.Since(began) > patience {
			t.Fatalf("the server does not recover\n%s", s.stderr)
		}
	}
	if got, text := s.call(session, "workflow_start", map[string]any{"definition": json.RawMessage(nap(0))}); got["status"] != "completed" {
		t.Error(text)
	}

	s = spawnHTTP(t, []string{"WORKFLOW_ENGINE_LLM_CONFIG={"})
	if session, err = s.connect(""); err != nil {
		t.Fatalf("%v\n%s", err, s.stderr)
	}
	if _, text := s.call(session, "workflow_list", map[string]any{}); !strings.Contains(text, "WORKFLOW_ENGINE_LLM_CONFIG") {
		t.Error(text)
	}
	if status, _ := s.health(); status != 503 {
		t.Errorf("health: %d", status)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := s.end(); status != exitUsage {
		t.Errorf("exit status %d\n%s", status, s.stderr)
	}
}

// differs are the hostile inputs that are answered otherwise over HTTP, where a request is one message, and no answer has its end.
var differs = map[string]string{
	"frame\tan empty line":       "rpc -32600", // of standard input it is skipped
	"frame\twhite space":         "rpc -32600",
	"frame\t1,000 notifications": "rpc -32700",
}

// TestHostileOverHTTP sends what TestHostile sends as frames and payloads over HTTP: each has the code that it has over standard input and
// output, and the server goes on. The other inputs take the same way from there. The long form sends the large ones too.
func TestHostileOverHTTP(t *testing.T) {
	t.Parallel()
	s := spawnHTTP(t, nil, "--store-path", database(t))
	post := func(line string, headers ...string) map[string]any {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.stderr)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
			lines := bufio.NewScanner(strings.NewReader(string(text)))
			for lines.Buffer(nil, 32<<20); lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					text = []byte(data)
				}
			}
		}
		m := map[string]any{"session": resp.Header.Get("Mcp-Session-Id")}
		if len(text) > 0 && json.Unmarshal(text, &m) != nil {
			t.Errorf("%.100s: answered %.300s", line, text)
		}
		return m
	}
	headers := []string{"Mcp-Protocol-Version", "2025-06-18", "Mcp-Session-Id", fmt.Sprint(post(hello)["session"])}
	post(toolCall(1, "workflow_start", `{"execution_id":"bystander","definition":`+walk(anySchema, `"type":"step","config":{"handler":"h"}`)+`}`), headers...)
	want, sent := hostileCodes(t), 0
	for kind, inputs := range map[string][]hostile{"frame": hostileFrames(), "payload": hostilePayloads()} {
		for _, in := range inputs {
			if in.heavy && !soak.On() {
				continue
			}
			sent++
			name := kind + "\t" + in.name
			m := post(in.line, headers...)
			code := "no answer"
			if m["error"] != nil || m["result"] != nil {
				code = codeOf(m)
			}
			expected, ok := differs[name]
			if !ok {
				expected = want[name]
			}
			if code != expected {
				t.Errorf("%s: got %q, want %q", name, code, expected)
			}
		}
	}
	if sent < 30 {
		t.Errorf("only %d inputs", sent)
	}
	if got := structured(post(toolCall(3, "workflow_status", `{"execution_id":"bystander"}`), headers...)); got["phase"] != "awaiting_activity" {
		t.Errorf("the bystander is %v", got)
	}
}
