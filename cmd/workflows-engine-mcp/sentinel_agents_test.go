package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// agentKey is the key of the agents' model in TestSentinelOfAgents.
const agentKey = "sk-sentinel/agent+31Xd8kRw=="

// TestSentinelOfAgents is TestSentinel for agents, as delegations and as an llm_call, streamed and not: their model says its own key, that of
// a tool's server, and that of other models, in texts, thoughts, calls and errors; their tools and servers do the same. Transcripts are
// searched too.
func TestSentinelOfAgents(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	said := "keys: " + agentKey + " " + toolKey + " " + modelKey
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			http.Error(w, r.Header.Get("Authorization")+" is refused", http.StatusUnauthorized)
			return
		}
		asked.Add(1)
		var request struct {
			Messages []struct{ Role, Content string }
			Stream   bool
		}
		if err := json.Unmarshal(body, &request); err != nil || r.Header.Get("Authorization") != "Bearer "+agentKey {
			t.Errorf("%v, key %q", err, r.Header.Get("Authorization"))
		}
		for _, m := range request.Messages {
			if strings.Contains(m.Content, "sentinel") {
				t.Errorf("the model reads %q", m.Content)
			}
		}
		last := request.Messages[len(request.Messages)-1]
		calls := func(names ...string) []any {
			var list []any
			for i, name := range names {
				arguments, _ := json.Marshal(map[string]any{"say": said, toolKey: 1})
				list = append(list, map[string]any{"index": i, "id": "call " + name + toolKey, "type": "function", "function": map[string]any{"name": name, "arguments": string(arguments)}})
			}
			return list
		}
		message := map[string]any{"role": "assistant", "content": said, "reasoning_content": said}
		switch {
		case strings.Contains(last.Content, "refuse"):
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, said)
			return
		case last.Role == "user" && strings.Contains(last.Content, "break"):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", said)
			return
		case last.Role == "user" && strings.Contains(last.Content, "work"):
			message["tool_calls"] = calls("indiscreet__tell", "indiscreet__fail", "indiscreet__die", toolKey, "ask_person")
		}
		model := "m " + toolKey
		if !request.Stream {
			_ = json.NewEncoder(w).Encode(map[string]any{"model": model, "choices": []any{map[string]any{"message": message, "finish_reason": "stop"}}})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta map[string]any, finish any) {
			text, _ := json.Marshal(map[string]any{"model": model, "choices": []any{map[string]any{"delta": delta, "finish_reason": finish}}})
			fmt.Fprintf(w, "data: %s\n\n", text)
			w.(http.Flusher).Flush()
		}
		for at := 0; at < len(said); at += 7 { // no piece has a whole key
			send(map[string]any{"content": said[at:min(at+7, len(said))]}, nil)
		}
		delete(message, "content")
		send(message, "stop")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(provider.Close)

	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	manifest, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"indiscreet": map[string]any{"command": program, "env": map[string]string{asTools: "1", "API_KEY": "env:TOOL_KEY"}},
		"remote":     map[string]any{"url": provider.URL + "/mcp", "headers": map[string]string{"Authorization": "Bearer ${env:TOOL_KEY}"}},
	}})
	write("mcp.json", string(manifest))
	write("agent.key", agentKey+"\n")
	agents, _ := json.Marshal(map[string]any{
		"models": map[string]any{
			"m": map[string]any{"model": "m", "endpoint": map[string]any{"baseUrl": provider.URL + "/v1", "apiKeySecretRef": "file:agent.key"}},
			"o": map[string]any{"model": "o", "endpoint": map[string]any{"baseUrl": provider.URL + "/v1", "apiKeyEnv": "MODEL_KEY"}},
		},
		"agents": map[string]any{
			"quiet":  map[string]any{"instructions": "Do it.", "model": "m", "tools": []any{map[string]any{"server": "indiscreet"}, map[string]any{"builtin": "ask_person"}}},
			"stream": map[string]any{"instructions": "Do it.", "model": "m", "stream": true, "modelRetry": map[string]any{"maxAttempts": 2, "initialIntervalMs": 1}, "tools": []any{map[string]any{"server": "indiscreet"}}},
			"remote": map[string]any{"instructions": "Do it.", "model": "m", "tools": []any{map[string]any{"server": "remote"}}},
		},
	})
	write("agents.json", string(agents))
	db := filepath.Join(folder, "runs.db")
	p := spawnWith(t, folder, []string{
		"WORKFLOW_ENGINE_AGENTS=agents.json", "WORKFLOW_ENGINE_MCP_ALLOW_COMMANDS=" + program, "MODEL_KEY=" + modelKey, "TOOL_KEY=" + toolKey,
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
		ask(toolCall(calls, "workflow_start", `{"execution_id":"`+name+`","activity_execution_mode":"in_process","wait_ms":30000,"definition":`+definition+`}`))
		statuses[name], _ = structured(ask(toolCall(calls, "workflow_status", `{"execution_id":"`+name+`","wait_ms":30000}`)))["phase"].(string)
	}
	delegate := func(agent, task string) string {
		return `{"id":"x","type":"agent_delegate","config":{"agent_id":"` + agent + `","protocol":"sdk","input_mapping":{"task":{"literal":"` + task + `"}}}}`
	}
	start("works", delegate("stream", "work"))
	start("fails", delegate("quiet", "refuse"))
	start("breaks", delegate("stream", "break"))
	start("unlisted", delegate("remote", "work"))
	start("node", `{"id":"x","type":"llm_call","config":{"agent":"quiet","user_prompt":"say it","stream":true}}`)
	for name, want := range map[string]string{"works": "completed", "fails": "failed", "breaks": "failed", "unlisted": "failed", "node": "completed"} {
		if statuses[name] != want {
			t.Errorf("%s is %q, want %q", name, statuses[name], want)
		}
	}
	everything := map[string]string{"the answers": strings.Join(answers, "\n")}
	keep := func(when string) {
		for _, suffix := range []string{"", "-wal"} {
			if text, err := os.ReadFile(db + suffix); err == nil {
				everything["the database"+suffix+" "+when] = string(text)
			}
		}
	}
	keep("while the server runs")
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	keep("at the end")
	everything["the log"] = p.stderr.String()
	for name := range statuses {
		for _, args := range [][]string{{"history", name}, {"history", name, "--json", "--reveal"}, {"status", name, "--json"}, {"agent", "transcript", name}, {"agent", "transcript", name, "--json"}} {
			everything["workflows-engine "+strings.Join(args, " ")] = commandLine(t, db, args...)
		}
	}
	noneHolds(t, everything, agentKey, toolKey, modelKey)
	for where, mask := range map[string]string{
		"workflows-engine agent transcript works --json": "[REDACTED] [REDACTED]", "workflows-engine agent transcript node": "[REDACTED]", "workflows-engine history fails --json --reveal": "[secret]",
	} {
		if !strings.Contains(everything[where], mask) {
			t.Errorf("%s does not hold %s: the test proves nothing:\n%s", where, mask, everything[where])
		}
	}
	if asked.Load() < 6 {
		t.Errorf("the model was asked %d times: the test proves nothing", asked.Load())
	}
}
