package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// boundedHost is a host whose server keeps to the usual size of answers.
func boundedHost(t *testing.T) *host {
	t.Helper()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
	return connectHost(t, runner, mcpserver.Options{Definitions: store, DefaultMode: machine.HostMediated})
}

// TestWhatIsLeftOutCanBeRead: every reference of an answer leads to its value, by workflow_status and by a resource, and a text
// can be read in pieces.
func TestWhatIsLeftOutCanBeRead(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	input := object{"documents": documents(50_000), "text": strings.Repeat("Grüße ", 5000), "a/b~c": object{"x": documents(9000)}, "small": 1.0}
	content := h.ok("workflow_start", object{"definition": chainOf(1), "input": input, "execution_id": "run 1"})
	if at(t, content, "state", "small") != 1.0 {
		t.Errorf("%v", content["state"])
	}
	for name := range map[string]bool{"documents": true, "text": true, "a/b~c": true} {
		ref := at(t, content, "state", name).(object)
		if ref["$ref"] == nil { // an object is shown by its members
			ref = ref["x"].(object)
		}
		address := ref["$ref"].(string) + ref["pointer"].(string)
		read := h.ok("workflow_status", object{"execution_id": "run 1", "read": []any{ref["pointer"], address}, "answer_bytes": 1_000_000})
		whole, _ := json.Marshal(at(t, read, "values", 0, "value"))
		if again, _ := json.Marshal(at(t, read, "values", 1, "value")); string(again) != string(whole) || float64(len(whole)) != ref["bytes"] {
			t.Errorf("%s: %d bytes, by the pointer %d: %v", address, len(again), len(whole), ref)
		}
		res, err := h.session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: address})
		if err != nil || !sameJSON(t, []byte(res.Contents[0].Text), whole) {
			t.Errorf("%s: %v", address, err)
		}
	}
	read := h.ok("workflow_status", object{"execution_id": "run 1", "read": []any{"/documents/3", "/nothing", "/documents/99"}, "select": ".text[0:5]"})
	want(t, read, object{"selected": "Grüße"})
	if at(t, read, "values", 0, "value", "title") != "Document 3" || !contains(at(t, read, "values", 1, "error").(string), `no field "nothing"`) ||
		!contains(at(t, read, "values", 2, "error").(string), "0 to 49") {
		t.Errorf("%v", read)
	}
	h.refused("VALIDATION_ERROR", "workflow_status", object{"execution_id": "run 1", "select": ".["})
}

// TestNoAnswerIsLargerThanAsked over sizes and stages of a run with many branches.
func TestNoAnswerIsLargerThanAsked(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int{mcpserver.MinAnswerBytes, 8192, 20_000}[:soak.Size(2, 1, 3)] {
		h := boundedHost(t)
		size := func(content map[string]any) {
			text := jsonvalue.Canonical(content)
			if len(text) > bytes {
				t.Fatalf("%d bytes instead of %d: %.600s", len(text), bytes, text)
			}
		}
		content := h.ok("workflow_start", object{"definition": branchesOf(60), "input": object{"documents": documents(20_000)}, "execution_id": "r", "answer_bytes": bytes})
		for range 60 {
			size(content)
			size(h.ok("workflow_status", object{"execution_id": "r", "answer_bytes": bytes}))
			if content["status"] != "completed" && at(t, content, "pending_total") == nil && len(content["pending"].([]any)) > 9 {
				t.Fatalf("no total: %.600s", fmt.Sprint(content))
			}
			args := at(t, content, "next", "arguments").(map[string]any)
			args["answer_bytes"], args["outcome"] = bytes, object{"ok": true, "result": object{"k" + args["node_id"].(string): strings.Repeat("x", 2000)}}
			content = h.ok("workflow_submit_activity", args)
		}
		size(content)
		want(t, content, object{"status": "completed"})
	}
}

// TestABranchShowsItsOwnState: the state of the run stands once, a branch has what differs from it.
func TestABranchShowsItsOwnState(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	d := branchesOf(2)
	d["nodes"] = append(d["nodes"].([]any), object{"id": "second", "type": "llm_call", "config": promptOfNode})
	for i, e := range d["edges"].([]any) {
		if e.(object)["source"] == "read0" {
			d["edges"].([]any)[i] = object{"source": "read0", "target": "second"}
		}
	}
	d["edges"] = append(d["edges"].([]any), object{"source": "second", "target": "join"})
	content := h.ok("workflow_start", object{"definition": d, "input": object{"documents": documents(5000)}, "execution_id": "r"})
	args := at(t, content, "next", "arguments").(map[string]any)
	args["outcome"] = object{"ok": true, "result": object{"own": "mine"}}
	content = h.ok("workflow_submit_activity", args)
	for i, p := range content["pending"].([]any) {
		state := p.(object)["state"]
		if second := p.(object)["node_id"] == "second"; second && state != nil || !second && !sameValue(state, object{"$ref": "awp://runs/r/state", "changed": object{}, "removed": []any{"own"}}) {
			t.Errorf("entry %d: %.600s", i, fmt.Sprint(p))
		}
	}
}

func sameValue(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// TestFullAnswers have the whole state, as a flag of the server asks.
func TestFullAnswers(t *testing.T) {
	t.Parallel()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
	h := connectHost(t, runner, mcpserver.Options{Definitions: store, DefaultMode: machine.HostMediated, AnswerBytes: mcpserver.FullAnswers})
	input := object{"documents": documents(50_000)}
	content := h.ok("workflow_start", object{"definition": chainOf(1), "input": input})
	if !sameValue(content["state"], input) {
		t.Errorf("%.300s", fmt.Sprint(content["state"]))
	}
}

// TestTheTextHasASmallState, with what is masked left masked, and only the names of a large one. It says what to do.
func TestTheTextHasASmallState(t *testing.T) {
	t.Parallel()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
	mask := history.Redaction{}.WithMask(func(s string) string { return strings.ReplaceAll(s, "sesame", "***") })
	h := connectHost(t, runner, mcpserver.Options{Definitions: store, DefaultMode: machine.HostMediated, Redaction: mask})
	r := h.raw("workflow_start", object{"definition": chainOf(1), "input": object{"key": "sesame", "city": "Bern"}})
	if !contains(r.text, `State: {"city":"Bern","key":"***"}`) {
		t.Errorf("%s", r.text)
	}
	letter := strings.Repeat("x", 500-len(`{"letter":""}`))
	if r = h.raw("workflow_start", object{"definition": chainOf(1), "input": object{"letter": letter}}); !contains(r.text, `State: {"letter":"`+letter) {
		t.Errorf("a state of 500 bytes: %s", r.text)
	}
	r = h.raw("workflow_start", object{"definition": chainOf(1), "input": object{"letter": "not here" + letter}})
	if contains(r.text, "not here") || !contains(r.text, "State has letter") || !contains(r.text, "Next: workflow_submit_activity {") || !contains(r.text, "Summarise the documents") {
		t.Errorf("%s", r.text)
	}
}

// TestAPageOfTheListFits: a large page is cut, and its cursor leads on.
func TestAPageOfTheListFits(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	for i := range 100 {
		h.ok("workflow_start", object{"definition": chainOf(1), "execution_id": fmt.Sprintf("%03d-%s", i, strings.Repeat("x", 100))})
	}
	seen, cursor := 0, any(nil)
	for page := 0; page == 0 || cursor != nil; page++ {
		content := h.ok("workflow_list", object{"limit": 100, "cursor": cursor})
		if size := len(jsonvalue.Canonical(content)); size > mcpserver.DefaultAnswerBytes || page > 10 {
			t.Fatalf("page %d: %d bytes", page, size)
		}
		seen, cursor = seen+len(content["executions"].([]any)), content["next_cursor"]
	}
	if seen != 100 {
		t.Errorf("%d runs", seen)
	}
}

// TestWhatIsUnchangedIsLeftOut: an answer to a call with since_seq names the members of the state that the caller has seen, if they
// are long, and has the rest. Without since_seq, for another client and for a seq of no answer it has all.
func TestWhatIsUnchangedIsLeftOut(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	input := object{"long": strings.Repeat("x", 500), "a/b": strings.Repeat("y", 500), "short": "z"}
	content := h.ok("workflow_start", object{"definition": chainOf(3), "input": input, "execution_id": "r"})
	want(t, content, object{"state": input, "unchanged": nil})
	args := at(t, content, "next", "arguments").(map[string]any)
	if args["since_seq"] != content["seq"] {
		t.Fatalf("next has %v, seq is %v", args["since_seq"], content["seq"])
	}
	args["outcome"] = object{"ok": true, "result": object{"long": strings.Repeat("n", 500), "new": 1}}
	content = h.ok("workflow_submit_activity", args)
	want(t, content, object{"state": object{"long": strings.Repeat("n", 500), "new": 1, "short": "z"}, "unchanged": []any{"/a~1b"}})
	whole := object{"long": strings.Repeat("n", 500), "new": 1, "short": "z", "a/b": input["a/b"]}
	want(t, h.ok("workflow_status", object{"execution_id": "r"}), object{"state": whole, "unchanged": nil})
	want(t, h.ok("workflow_status", object{"execution_id": "r", "since_seq": 3}), object{"state": whole, "unchanged": nil})
	want(t, h.ok("workflow_status", object{"execution_id": "r", "since_seq": content["seq"]}), object{"state": object{"new": 1, "short": "z"}, "unchanged": []any{"/a~1b", "/long"}})
	for range 2 {
		args = at(t, content, "next", "arguments").(map[string]any)
		args["outcome"] = object{"ok": true}
		content = h.ok("workflow_submit_activity", args)
	}
	want(t, content, object{"status": "completed", "result": whole, "unchanged": nil})
}

// TestThePageShowsAReference: the reference that docs/reference/mcp-tools.md shows has the members of one that an answer has.
func TestThePageShowsAReference(t *testing.T) {
	t.Parallel()
	h := boundedHost(t)
	lines := make([]any, 2000)
	for i := range lines {
		lines[i] = "a short document"
	}
	content := h.ok("workflow_start", object{"definition": chainOf(1), "input": object{"documents": lines}, "execution_id": "r"})
	ref := at(t, content, "state", "documents").(object)
	page, err := os.ReadFile("../../docs/reference/mcp-tools.md")
	shown := regexp.MustCompile("(?s)\n```json\n(.*?)```\n").FindAllSubmatch(page, -1)
	if err != nil || len(shown) != 1 {
		t.Fatalf("%d references (%v)", len(shown), err)
	}
	var want object
	if err := json.Unmarshal(shown[0][1], &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"$ref", "pointer", "kind"} {
		if ref[name] != want[name] {
			t.Errorf("%s is %v, the page shows %v", name, ref[name], want[name])
		}
	}
	if got, want := slices.Sorted(maps.Keys(ref)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, want) {
		t.Errorf("members %v, the page shows %v", got, want)
	}
}
