package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRevisions: the tools work with every protocol revision that the SDK supports, and with hosts that ask for an unknown one.
func TestRevisions(t *testing.T) {
	t.Parallel()
	const statelessSince = "2026-07-28"
	newest := ""
	for _, revision := range append(mcp.SupportedProtocolVersions(), "2024-10-07", "2099-01-01", "nonsense") {
		if revision < statelessSince && revision > newest {
			newest = revision
		}
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWire(t)
				if revision == statelessSince {
					stateless(t, w, revision)
					return
				}
				answer := w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`, revision))
				got := at(t, decode(t, answer), "result", "protocolVersion")
				if got != revision && got != "2025-11-25" || supported(revision) && got != revision {
					t.Errorf("asked for %s, got %v", revision, got)
				}
				w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				drive(t, w, "")
			})
		})
	}
	if newest != "2025-11-25" {
		t.Errorf("the newest revision with a handshake is %s: has the SDK a new one?", newest)
	}
}

func supported(revision string) bool {
	for _, v := range mcp.SupportedProtocolVersions() {
		if v == revision {
			return true
		}
	}
	return false
}

// stateless drives a run without a handshake: each request names its revision.
func stateless(t *testing.T, w *wire, revision string) {
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"}},`, revision)
	answer := decode(t, w.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+strings.TrimSuffix(meta, ",")+`}}`))
	if instructions, _ := at(t, answer, "result", "instructions").(string); instructions == "" {
		t.Errorf("discover: %v", answer)
	}
	drive(t, w, meta)
}

// TestDiscoverWithoutARevision: the refusal has the code by which clients know that they have to begin with initialize, and says what else
// would do.
func TestDiscoverWithoutARevision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		for _, params := range []string{"", `,"params":{}`, `,"params":{"_meta":{}}`} {
			answer := decode(t, w.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover"`+params+`}`))
			message, _ := at(t, answer, "error", "message").(string)
			if at(t, answer, "error", "code") != -32601.0 || !strings.Contains(message, "io.modelcontextprotocol/protocolVersion") || !strings.Contains(message, "initialize") {
				t.Errorf("%s: %v", params, answer)
			}
		}
	})
}

// drive lists the tools and drives a run to its end.
func drive(t *testing.T, w *wire, meta string) {
	t.Helper()
	list := decode(t, w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+strings.TrimSuffix(meta, ",")+`}}`))
	if n := len(at(t, list, "result", "tools").([]any)); n != len(order) {
		t.Errorf("%d tools", n)
	}
	for i, step := range []struct{ call, status string }{
		{`"name":"workflow_start","arguments":{"definition":@step@,"execution_id":"r"}`, "awaiting_activity"},
		{`"name":"workflow_submit_activity","arguments":{"execution_id":"r","node_id":"work","outcome":{"ok":true}}`, "completed"},
	} {
		answer := decode(t, w.send(expand(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s%s}}`, i+2, meta, step.call))))
		if got := at(t, answer, "result", "structuredContent", "status"); got != step.status {
			t.Errorf("status %v, want %s", got, step.status)
		}
	}
}

func decode(t *testing.T, lines []string) map[string]any {
	t.Helper()
	if len(lines) != 1 {
		t.Fatalf("answered %d lines: %v", len(lines), lines)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestBatches: revision 2025-03-26 still has them.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
		var answers []map[string]any
		lines := w.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"workflow_list"}}]`)
		if len(lines) != 1 || json.Unmarshal([]byte(lines[0]), &answers) != nil || len(answers) != 2 {
			t.Errorf("batch answered with %v", lines)
		}
	})
}

// TestDeepArguments: arguments that are nested deeper than the SDK reads are refused by what the engine takes, with what to do.
func TestDeepArguments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		w.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`)
		definition, err := json.Marshal(definitionFile(t, "step"))
		if err != nil {
			t.Fatal(err)
		}
		for _, levels := range []int{600, 890, 990, 1010, 9000} {
			deep := strings.Repeat("[", levels) + strings.Repeat("]", levels)
			answer := decode(t, w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"workflow_start","arguments":{"definition":`+string(definition)+`,"input":{"a":`+deep+`}}}}`))
			if answer["result"] == nil {
				t.Errorf("%d levels: %v", levels, answer)
				continue
			}
			if message, _ := at(t, answer, "result", "structuredContent", "error", "message").(string); !strings.Contains(message, "more than 512 levels") {
				t.Errorf("%d levels: %s", levels, message)
			}
			answer = decode(t, w.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"drive_run","arguments":{"execution_id":`+deep+`}}}`))
			if message, _ := at(t, answer, "error", "message").(string); levels > 900 && !strings.Contains(message, "nested more than 900 levels") {
				t.Errorf("%d levels of a prompt: %s", levels, message)
			}
		}
	})
}
