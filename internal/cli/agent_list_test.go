package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// What only shows or compares the names of agents needs none of the servers, steps, secrets and folders that their list names; and a run
// that is refused because it names no agent says which one it means.
func TestNamesOfAgents(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	full := write("full.json", `{"models":{"m":{"model":"x","endpoint":{"baseUrl":"http://localhost:1/v1","apiKeyEnv":"NOT_SET"}}},
		"agents":{"clerk":{"instructions":"Answer.","tools":[{"server":"files"},{"step":"urn:x","name":"x","description":"X."},{"skills":["s"]}]}},
		"skills":{"path":"nowhere"}}`)
	plain := write("plain.json", `{"models":{"m":{"model":"x","endpoint":{"baseUrl":"http://localhost:1/v1","noAuth":true}}},
		"agents":{"clerk":{"instructions":"Answer."}}}`)
	definition := write("letter.workflow.yaml", `document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: letter, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: answer, type: agent_delegate, config: {agent_id: clrek, protocol: sdk, input_mapping: {task: "x"}}}
  - {id: end, type: end}
edges:
  - {source: __start__, target: start}
  - {source: start, target: answer}
  - {source: answer, target: end}
`)
	command := func(want int, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &out, now: time.Now, env: config.Environment{
			GOOS: runtime.GOOS, Home: folder, Directory: folder, ReadFile: os.ReadFile,
		}}
		if got := a.execute(t.Context(), args); got != want {
			t.Fatalf("%q: status %d, want %d\n%s", args, got, want, out.String())
		}
		return out.String()
	}
	for want, got := range map[string]string{
		"clerk  m       files, x":                  command(exitOK, "agent", "list", "--agents", full),
		`hint: did you mean "clerk"?`:              command(exitOK, "validate", definition, "--agents", full),
		`Agent "clrek": did you mean "clerk"? Con`: command(exitFailed, "run", definition, "--agents", plain, "--store", "memory"),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s lacks %s", got, want)
		}
	}
	if got := command(exitUsage, "agent", "list", "--agents", write("bad.json", `{"models":{}}`)); !strings.Contains(got, "agent validate") {
		t.Error(got)
	}
}
