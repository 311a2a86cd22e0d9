package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/internal/cli"
)

// The secrets of this test. Nothing that the engine stores, prints, logs or answers may hold one of them, whatever the
// providers, tools and programs that receive them do.
const (
	modelKey = "sk-sentinel/model+4f9cZq81=="
	toolKey  = "sk-sentinel/tools+77aTb0x9=="
)

// asTools makes the test binary an MCP server that repeats its key at every opportunity.
const asTools = "WORKFLOWS_ENGINE_MCP_TEST_AS_TOOLS"

func serveTools() {
	key := os.Getenv("API_KEY")
	fmt.Fprintln(os.Stderr, "started with", key)
	fmt.Println("no message, but", key)
	server := mcp.NewServer(&mcp.Implementation{Name: "indiscreet", Version: "1"}, nil)
	type result struct {
		Key  string            `json:"key"`
		More map[string]string `json:"more"`
	}
	add := func(name string, h mcp.ToolHandlerFor[map[string]any, result]) {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "knows " + key}, h)
	}
	add("tell", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, result, error) {
		return nil, result{Key: "it is " + key, More: map[string]string{key: "x"}}, nil
	})
	add("fail", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, result, error) {
		return nil, result{}, errors.New(key + " is refused")
	})
	add("die", func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, result, error) {
		fmt.Fprintln(os.Stderr, "last words: "+key)
		os.Exit(3)
		return nil, result{}, nil
	})
	_ = server.Run(context.Background(), &mcp.StdioTransport{})
}

// modelAnswers are the answers of a provider, by prompt. Each repeats the key wherever it can.
var modelAnswers = map[string]http.HandlerFunc{
	"fine":      modelSays(`{"n": 7, "key": "` + modelKey + `", "` + modelKey + `": 1}`),
	"text":      modelSays("your key is " + modelKey),
	"violation": modelSays(`{"n": "` + modelKey + `"}`),
	"refused":   modelRefuses(401), "forbidden": modelRefuses(403), "limit": modelRefuses(429), "broken": modelRefuses(500), "redirect": modelRefuses(307),
	"nojson": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "<html>%s", modelKey) },
	"half": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "9999")
		fmt.Fprintf(w, `{"model":%q`, modelKey)
	},
	"dies": func(w http.ResponseWriter, _ *http.Request) {
		if connection, _, err := w.(http.Hijacker).Hijack(); err == nil {
			fmt.Fprintf(connection, "%s\r\n\r\n", modelKey) // what is no status line stands in the client's error
			connection.Close()
		}
	},
	"gateway": func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"error":{"code":503,"message":"upstream refuses %s"}}`, strings.ReplaceAll(modelKey, "/", `\/`))
	},
	"hangs": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

func modelSays(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{
			"model":   "m " + modelKey,
			"choices": []any{map[string]any{"message": map[string]any{"content": content}, "finish_reason": "stop " + modelKey}},
		})
	}
}

func modelRefuses(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Key", modelKey)
		w.Header().Set("Location", "http://127.0.0.1:1/?key="+url.QueryEscape(modelKey))
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": "Incorrect API key provided: " + modelKey, "headers": r.Header}})
	}
}

// TestSentinel runs success and every class of failure with keys from the environment and from a file, and then searches
// every stored and every printed byte for them: the database, its write-ahead log while the server still runs, what the
// server answered and logged, and what the command line prints of the runs.
func TestSentinel(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.HasPrefix(r.URL.Path, "/v1/") { // as an MCP server, which refuses
			http.Error(w, r.Header.Get("Authorization")+" is refused", http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+modelKey {
			t.Errorf("the key does not arrive: %q", r.Header.Get("Authorization"))
		}
		for name, answer := range modelAnswers {
			if strings.Contains(string(body), `"content":"case `+name+`"`) {
				asked <- name
				answer(w, r)
				return
			}
		}
		t.Errorf("unexpected request %s", body)
	}))
	t.Cleanup(provider.Close)
	for from, key := range map[string]string{"environment": `"apiKeyEnv":"MODEL_KEY"`, "file": `"apiKeySecretRef":"file:model.key"`} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			sentinel{t: t, provider: provider.URL, key: key, fromFile: from == "file"}.run()
		})
	}
	t.Cleanup(func() {
		if n := len(asked); n < 2*len(modelAnswers) {
			t.Errorf("the provider was asked %d times: the test proves nothing", n)
		}
	})
}

type sentinel struct {
	t             *testing.T
	provider, key string
	fromFile      bool
}

func (s sentinel) run() {
	t := s.t
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("model.key", modelKey+"\n")
	write("tool.key", toolKey+"\n")
	reference := "env:TOOL_KEY"
	if s.fromFile {
		reference = "file:tool.key"
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"indiscreet": map[string]any{"command": program, "env": map[string]string{asTools: "1", "API_KEY": reference}},
		"remote":     map[string]any{"url": s.provider + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:TOOL_KEY}"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	write("mcp.json", string(manifest))
	db := filepath.Join(folder, "runs.db")
	p := spawnWith(t, folder, []string{
		"WORKFLOW_ENGINE_LLM_CONFIG={\"baseUrl\":\"" + s.provider + "/v1\"," + s.key + "}",
		"WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS=" + program, "MODEL_KEY=" + modelKey, "TOOL_KEY=" + toolKey,
	}, "--store-path", db, "--mcp-config", "mcp.json", "--log-level", "debug")
	var answers []string
	ask := func(line string) map[string]any {
		p.write(line)
		answer := p.read()
		answers = append(answers, p.stdout.Text())
		return answer
	}
	ask(hello)
	calls := 0
	statuses := map[string]string{}
	start := func(name, node string) {
		calls++
		definition := `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"a","type":"start"},` +
			node + `,{"id":"z","type":"end"}],"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"x"},{"source":"x","target":"z"}]}`
		ask(toolCall(calls, "workflow_start", `{"execution_id":"`+name+`","activity_execution_mode":"in_process","wait_ms":20000,"definition":`+definition+`}`))
		statuses[name], _ = structured(ask(toolCall(calls, "workflow_status", `{"execution_id":"`+name+`"}`)))["phase"].(string)
	}
	for name := range modelAnswers {
		schema, timeout := "", ""
		if name == "violation" {
			schema = `,"output_schema":{"type":"object","properties":{"n":{"type":"number"}}}`
		}
		if name == "hangs" {
			timeout = `,"timeout":"100ms"`
		}
		start("llm-"+name, `{"id":"x","type":"llm_call"`+timeout+`,"retry":{"max_attempts":2,"initial_interval":"1ms"},"config":{"model":"m","user_prompt":"case `+name+`"`+schema+`}}`)
	}
	for _, name := range []string{"tell", "fail", "die"} {
		start("tool-"+name, `{"id":"x","type":"tool_call","config":{"server":"indiscreet","tool":"`+name+`"}}`)
	}
	start("tool-remote", `{"id":"x","type":"tool_call","config":{"server":"remote","tool":"any"}}`)
	ask(toolCall(99, "workflow_list", `{}`))
	for name, status := range statuses {
		want := "failed"
		if name == "llm-fine" || name == "llm-text" || name == "tool-tell" {
			want = "completed"
		}
		if status != want {
			t.Errorf("%s is %q, want %q", name, status, want)
		}
	}

	everything := map[string]string{"the answers of the tools": strings.Join(answers, "\n")}
	keep := func(when string) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if text, err := os.ReadFile(db + suffix); err == nil {
				everything["the database"+suffix+" "+when] = string(text)
			}
		}
	}
	keep("while the server runs")
	if everything["the database-wal while the server runs"] == "" {
		t.Error("there is no write-ahead log: the test proves less than it says")
	}
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	keep("at the end")
	everything["the log"] = p.stderr.String()
	for _, args := range [][]string{{"list"}, {"list", "--json"}} {
		everything["workflows-engine "+strings.Join(args, " ")] = commandLine(t, db, args...)
	}
	for name := range statuses {
		for _, args := range [][]string{{"history", name}, {"history", name, "--json", "--reveal"}, {"history", name, "--activities", "--json"}, {"status", name}, {"status", name, "--json"}} {
			everything["workflows-engine "+strings.Join(args, " ")] = commandLine(t, db, args...)
		}
	}
	noneHolds(t, everything, modelKey, toolKey)
	// A mask must replace each key.
	for where, mask := range map[string]string{
		"the database at the end": "[secret]", "the answers of the tools": "[secret]", "the log": "[REDACTED]",
		"workflows-engine history tool-tell --json --reveal": "[REDACTED]", "workflows-engine history llm-refused --json --reveal": "[secret]",
		// What was sent is among what was searched, with the address of the server whose headers hold a key.
		"workflows-engine history llm-fine --json --reveal":    `"request":{"endpoint":"http`,
		"workflows-engine history tool-remote --json --reveal": `"request":{"arguments":{},"endpoint":"http`,
	} {
		if !strings.Contains(everything[where], mask) {
			t.Errorf("%s do not hold %s: the test proves nothing", where, mask)
		}
	}
}

// noneHolds searches texts for keys, in every form in which one may be written.
func noneHolds(t *testing.T, everything map[string]string, keys ...string) {
	t.Helper()
	for where, text := range everything {
		for _, key := range keys {
			for _, form := range []string{
				key, "sentinel", strings.ReplaceAll(key, "/", `\/`), url.QueryEscape(key), url.PathEscape(key), hex.EncodeToString([]byte(key)),
				base64.StdEncoding.EncodeToString([]byte(key)), base64.URLEncoding.EncodeToString([]byte(key)),
			} {
				if i := strings.Index(text, form); i >= 0 {
					t.Errorf("%s hold a key: …%q…", where, text[max(0, i-60):min(len(text), i+40)])
					break
				}
			}
		}
	}
}

// TestShownRecordsHideSecrets: an input holds a key of the settings, a short one, and a token of its own. Every door that shows
// records hides all three, and answers hide the long one; the run computes with what was sent.
func TestShownRecordsHideSecrets(t *testing.T) {
	const shortKey, token = "hunter2-x", "tok-sentinel-91"
	folder := t.TempDir()
	db := filepath.Join(folder, "runs.db")
	manifest, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"remote": map[string]any{"url": "http://127.0.0.1:1/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:TOOL_KEY}", "X-Api-Key": shortKey}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "mcp.json"), manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	p := spawnWith(t, folder, []string{"TOOL_KEY=" + toolKey, "WORKFLOW_ENGINE_REDACT=iban, tax id"}, "--store-path", db, "--mcp-config", "mcp.json", "--log-level", "debug")
	var answers []string
	ask := func(line string) map[string]any {
		p.write(line)
		answer := p.read()
		answers = append(answers, p.stdout.Text())
		return answer
	}
	ask(hello)
	input := `{"note":"` + toolKey + ` and ` + shortKey + `","access_token":"` + token + `","` + toolKey + `":1,"taxId":"` + token + `"}`
	ask(toolCall(1, "workflow_start", `{"execution_id":"r","input":`+input+`,"definition":{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},`+
		`"nodes":[{"id":"a","type":"start"},{"id":"x","type":"set_state","config":{"assignments":{"length":{"jq":"(.note|length) + (.access_token|length)"}}}},`+
		`{"id":"i","type":"interrupt","config":{"prompt":"p","resume_schema":{"type":"object"}}},{"id":"z","type":"end","config":{"output_mapping":"{length}"}}],`+
		`"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"x"},{"source":"x","target":"i"},{"source":"i","target":"z"}]}}`))
	status := ask(toolCall(2, "workflow_status", `{"execution_id":"r"}`))
	p.write(`{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"awp://runs/r/history"}}`)
	p.read()
	resource := p.stdout.Text()
	done := ask(toolCall(4, "workflow_resume", `{"execution_id":"r","resume_payload":{}}`))
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	want := float64(len(toolKey) + len(" and ") + len(shortKey) + len(token))
	if got := structured(done)["result"]; fmt.Sprint(got) != fmt.Sprint(map[string]any{"length": want}) {
		t.Errorf("computed %v, want %v; %v", got, want, structured(done))
	}
	if text := strings.Join(answers, "\n"); strings.Contains(text, toolKey) || !strings.Contains(text, token) {
		t.Errorf("the answers hide %v: %s", structured(status), text)
	}

	t.Chdir(folder)
	t.Setenv("TOOL_KEY", toolKey)
	t.Setenv("WORKFLOW_ENGINE_REDACT", "iban, tax id")
	t.Setenv("WORKFLOW_ENGINE_MCP_CONFIG", "mcp.json")
	shown := map[string]string{"the resource": resource, "the log": p.stderr.String()}
	for _, args := range [][]string{{"history", "r"}, {"history", "r", "--json"}, {"export", "r", "--redact"}, {"list", "--json"}} {
		shown[strings.Join(args, " ")] = commandLine(t, db, args...)
	}
	for where, text := range shown {
		for _, secret := range []string{toolKey, shortKey, token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %s in %s", where, secret, text)
			}
		}
		if where != "the log" && where != "list --json" && where != "history r" && !strings.Contains(text, "[REDACTED]") {
			t.Errorf("%s hides nothing: the test proves nothing: %s", where, text)
		}
	}
	for _, args := range [][]string{{"status", "r"}, {"status", "r", "--json"}} {
		if text := commandLine(t, db, args...); strings.Contains(text, toolKey) {
			t.Errorf("%v: %s", args, text)
		}
	}
	if text := commandLine(t, db, "export", "r"); !strings.Contains(text, toolKey) {
		t.Error("a whole export lacks what an import needs")
	}
}

// commandLine returns everything that a command prints.
func commandLine(t *testing.T, db string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	args = append(args, "--store-path", db)
	if status := cli.Main(t.Context(), args, strings.NewReader(""), &out, &out); status != 0 {
		t.Errorf("%v: exit status %d\n%s", args, status, out.String())
	}
	return out.String()
}
