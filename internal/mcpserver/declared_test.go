package mcpserver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestAnswersHaveNoUndeclaredMember: what the answers of the transcripts have, the tools' output schemas declare or testdata/mcp-tools.md
// explains, in the entries of pending and in next too.
func TestAnswersHaveNoUndeclaredMember(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	declared := map[string]object{}
	for _, tool := range enginetest.Must(h.session.ListTools(t.Context(), nil)).Tools {
		declared[tool.Name] = properties(tool.OutputSchema)
	}
	status := declared["workflow_status"]
	entries, next := properties(status["pending"].(object)["items"]), properties(status["next"])
	page := string(enginetest.Must(os.ReadFile("testdata/mcp-tools.md")))
	seen := 0
	undeclared := func(file, what string, members map[string]any, schema object) {
		for name := range members {
			if seen++; schema[name] == nil && !strings.Contains(page, "`"+name+"`") {
				t.Errorf("%s: %s has %q, which neither its schema nor testdata/mcp-tools.md explains", file, what, name)
			}
		}
	}
	files, _ := filepath.Glob("testdata/transcripts/*.txt")
	for _, file := range files {
		tools := map[string]string{}
		for line := range strings.Lines(string(enginetest.Must(os.ReadFile(file)))) {
			var m struct {
				ID     any
				Params struct{ Name string }
				Result struct {
					IsError           bool
					StructuredContent map[string]any
				}
			}
			text, isMessage := strings.CutPrefix(line, "> ")
			text, isAnswer := strings.CutPrefix(text, "< ")
			if !isMessage && !isAnswer || json.Unmarshal(definitionName.ReplaceAll([]byte(text), []byte("{}")), &m) != nil {
				continue // a comment, or a message that is no JSON
			}
			id := string(enginetest.Must(json.Marshal(m.ID)))
			if isMessage {
				tools[id] = m.Params.Name
				continue
			}
			content := m.Result.StructuredContent
			if m.Result.IsError || content == nil {
				continue
			}
			undeclared(file, tools[id], content, declared[tools[id]])
			pending, _ := content["pending"].([]any)
			for _, p := range pending {
				undeclared(file, "an entry of pending", p.(map[string]any), entries)
			}
			if call, ok := content["next"].(map[string]any); ok {
				undeclared(file, "next", call, next)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d members were looked at", seen)
	}
}

// definitionName stands for a definition in a transcript.
var definitionName = regexp.MustCompile(`@\w+@`)

// properties are the members that a schema declares, by name.
func properties(schema any) object {
	m, _ := schema.(map[string]any)
	p, _ := m["properties"].(map[string]any)
	return p
}

// TestAResultThatBreaksOutputSchemaIsSentAgain: the model learns what is wrong and that the attempt is still open, and how many
// attempts there are after a failure that it reports.
func TestAResultThatBreaksOutputSchemaIsSentAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	answer := h.ok("workflow_start", object{"definition": definitionFile(t, "tickets"), "input": object{"ticket": "x"}})
	if note := at(t, answer, "next", "note").(string); !contains(note, "Attempt 1 of 3: if you report a failure, 2 attempts are left.") {
		t.Errorf("next: %s", note)
	}
	args := at(t, answer, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": true, "result": object{"intent": 5}}
	for range 4 {
		r := h.raw("workflow_submit_activity", args)
		if r.code != "SUBMIT_VALIDATION_ERROR" || !contains(r.text, "the output breaks output_schema") || !contains(r.text, "attempt 1 of 3 is still open") {
			t.Errorf("the answer reads %s", r.text)
		}
	}
	for attempt, note := range []string{"Attempt 2 of 3: if you report a failure, 1 attempt is left.", "Attempt 3, the last: a failure that you report fails the node."} {
		args["outcome"] = object{"ok": false, "error": "the model is away"}
		answer = h.ok("workflow_submit_activity", args)
		if said := at(t, answer, "next", "note").(string); !contains(said, note) {
			t.Errorf("after failure %d next says: %s", attempt+1, said)
		}
		args = at(t, answer, "next", "arguments").(map[string]any)
	}
}

// TestAModeThatIsIgnoredIsNoted: a repeated start in another mode says that the run keeps its own; one that names none does not.
func TestAModeThatIsIgnoredIsNoted(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	args := object{"definition": definitionFile(t, "approval"), "input": object{}, "execution_id": "r", "activity_execution_mode": "host_mediated"}
	h.ok("workflow_start", args)
	args["allow_existing_execution_id"], args["activity_execution_mode"] = true, "in_process"
	r := h.raw("workflow_start", args)
	if !contains(r.text, `keeps mode "host_mediated"`) || at(t, r.content, "warnings", 0, "code") != "MODE_NOT_CHANGED" {
		t.Errorf("the answer reads %s", r.text)
	}
	delete(args, "activity_execution_mode")
	if r := h.raw("workflow_start", args); contains(r.text, "MODE_NOT_CHANGED") {
		t.Errorf("without a mode the answer reads %s", r.text)
	}
}
