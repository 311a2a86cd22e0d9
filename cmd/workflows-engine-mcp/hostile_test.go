package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/soak"
)

var update = flag.Bool("update", false, "rewrite docs/reference/mcp-server.md, and with SOAK=1, which sends all of it, testdata/hostile.txt")

// TestHostile sends the corpus to the real server, and behind each input a ping and a question about another run. Each input has the code
// that testdata/hostile.txt says, and stdout holds messages alone. The long form sends the heavy ones too and reports how long ping and
// question took, and what the server took in memory.
func TestHostile(t *testing.T) {
	t.Parallel()
	want := hostileCodes(t)
	got := map[string]string{}
	kinds := hostileKinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		var inputs []hostile
		for i, in := range kinds[kind] {
			if soak.On() || !in.heavy && i%soak.Size(6, 64, 1) == 0 {
				inputs = append(inputs, in)
			}
		}
		for batch := range slices.Chunk(inputs, soak.Size(20, 20, 5)) {
			t.Run(kind, func(t *testing.T) { sendHostile(t, kind, batch, got) })
		}
	}
	if *update && soak.On() && !t.Failed() {
		var b strings.Builder
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			for _, in := range kinds[kind] {
				fmt.Fprintf(&b, "%s\t%s\t%s\n", kind, in.name, got[kind+"\t"+in.name])
			}
		}
		if err := os.WriteFile("testdata/hostile.txt", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name, code := range got {
		if code != want[name] {
			t.Errorf("%s: got %q, want %q", name, code, want[name])
		}
	}
}

// hostileCodes reads the expected codes: kind, name and code in a line.
func hostileCodes(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/hostile.txt")
	if err != nil && !*update {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		cut := strings.LastIndexByte(line, '\t')
		codes[line[:cut]] = strings.TrimSpace(line[cut+1:])
	}
	return codes
}

// sendHostile sends inputs to one server.
func sendHostile(t *testing.T, kind string, inputs []hostile, codes map[string]string) {
	p := spawn(t, "--store-path", database(t))
	p.stdout.Buffer(nil, 32<<20)
	p.write(hello, toolCall(1, "workflow_start", `{"execution_id":"bystander","definition":`+walk(anySchema, `"type":"step","config":{"handler":"h"}`)+`}`))
	p.read()
	p.read()
	slowestPing, slowestStatus, by := time.Duration(0), time.Duration(0), ""
	for _, in := range inputs {
		text := in.line + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}` + "\n" + toolCall(3, "workflow_status", `{"execution_id":"bystander"}`) + "\n"
		sent := time.Now()
		if _, err := io.WriteString(p.stdin, text); err != nil {
			t.Fatalf("write: %v\n%s", err, p.stderr)
		}
		code := ""
		for open := map[any]bool{1.0: strings.Contains(in.line, `"id":1,"method"`), 2.0: true, 3.0: true}; open[1.0] || open[2.0] || open[3.0]; {
			m := p.read()
			switch took := time.Since(sent); {
			case m["id"] == 2.0:
				slowestPing = max(slowestPing, took)
			case m["id"] == 3.0:
				if took > slowestStatus {
					slowestStatus, by = took, in.name
				}
				if got := structured(m); got["phase"] != "awaiting_activity" {
					t.Errorf("%s %s: the bystander is %v", kind, in.name, got)
				}
			default:
				code = cmp.Or(code, codeOf(m))
				open[1.0] = false // the answer to a line that cannot be read has no id
			}
			open[m["id"]] = false
		}
		codes[kind+"\t"+in.name] = cmp.Or(code, "no answer")
	}
	if soak.On() {
		t.Logf("%s: %d inputs, ping %s, status %s (%s), resident %s", kind, len(inputs), slowestPing.Round(time.Millisecond),
			slowestStatus.Round(time.Millisecond), by, residentPeak(p.cmd.Process.Pid))
	}
	p.stdin.Close()
	if status := p.end(); status != 0 {
		t.Errorf("%s: exit status %d\n%s", kind, status, p.stderr)
	}
}

// codeOf is what an answer says: the code of an error with the engine's own or that of the first finding, or where the run stands.
func codeOf(m map[string]any) string {
	if e, ok := m["error"].(map[string]any); ok {
		return fmt.Sprintf("rpc %v", e["code"])
	}
	got := structured(m)
	e, failed := got["error"].(map[string]any)
	if !failed {
		for _, member := range []string{"status", "phase"} {
			if s, ok := got[member].(string); ok {
				return s
			}
		}
		return "answered"
	}
	code := fmt.Sprint(e["code"])
	var details struct {
		EngineCode, Code string // the second is that of a run that failed
		Errors           []struct{ Code string }
	}
	text, _ := json.Marshal(e["details"])
	json.Unmarshal(text, &details)
	if finer := details.EngineCode + details.Code; finer != "" {
		code += " " + finer
	}
	if len(details.Errors) > 0 {
		code += " " + details.Errors[0].Code
	}
	return code
}

// residentPeak is the most memory that a process has had, where the system says it.
func residentPeak(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if size, found := strings.CutPrefix(line, "VmHWM:"); found {
			return strings.TrimSpace(size)
		}
	}
	return "unknown"
}
