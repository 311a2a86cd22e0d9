package fragment_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// TestGolden renders each view.
func TestGolden(t *testing.T) {
	t.Parallel()
	post := &fragment.Post{Action: "/runs/r/cancel", Token: "T"}
	rows := []fragment.Row{
		{ID: "r/1", Title: "Pay <17>", Workflow: "pay", State: fragment.PhaseState(history.PhaseInterrupted), WaitsFor: "asks: Pay?", Changed: noon},
		{ID: "..", Workflow: "pay", State: fragment.PhaseState(history.PhaseFailed), Error: "no money", Changed: noon, Handled: "handled"},
	}
	schema := map[string]any{"type": "object", "required": []any{"approved"}, "properties": map[string]any{
		"approved": map[string]any{"type": "boolean", "title": "Approve it?"}, "amount": map[string]any{"type": "integer", "minimum": 1.0, "default": 3.0},
		"kind": map[string]any{"enum": []any{"a", "b"}, "default": "b"}, "note": map[string]any{"type": "string", "maxLength": 2000.0},
	}}
	flat, err := form.Of(schema)
	if err != nil {
		t.Fatal(err)
	}
	var others []form.Field
	for _, f := range flat.Fields {
		if f.ID != flat.Decision().ID {
			others = append(others, f)
		}
	}
	show := fragment.Lay(map[string]any{
		"text": "one\ntwo", "lines": []any{map[string]any{"item": "pen", "price": 2.0}, map[string]any{"item": "ink", "price": 7.5}},
		"deep": map[string]any{"a": map[string]any{"b": map[string]any{"c": 1.0}}}, "list": []any{"x", true, nil}, "none": map[string]any{},
	}, nil)
	large := fragment.NewValue(strings.Repeat("x", fragment.MaxValue+1), "/all")
	large.Text = large.Text[:8]
	visits := &fragment.Visits{Before: 3, History: "/h", List: []fragment.Visit{
		{Name: "ask", Kind: "interrupt", Path: "/v", State: fragment.StatusState(machine.Interrupted), Number: 2, Took: "3s", Details: []string{"2 attempts"}},
		{Name: "both", Kind: "parallel", Path: "/v", State: fragment.StatusState(machine.Failed), Number: 1, Error: "no", Inner: []*fragment.Visits{
			{Name: "left", State: fragment.StatusState(machine.Completed), List: []fragment.Visit{{Name: "a", Path: "/a", State: fragment.StatusState(machine.Completed)}}, After: 9, History: "/h"},
		}},
	}}
	for name, v := range map[string]fragment.View{
		"layout":  &fragment.Layout{Title: "T", Body: "<p>x</p>", Path: "/runs?a=b&c=d", Style: "/s.css", Scripts: []string{"/s.js"}, Version: "1", Actor: "kim (page)", Out: fragment.Post{Action: "/out", Token: "T"}},
		"failure": &fragment.Failure{Message: "run \"x\" not found", Hint: "List the runs.", Code: "EXECUTION_NOT_FOUND", Links: []fragment.Link{{Text: "y", Path: "/runs/y"}}},
		"runs": &fragment.RunList{
			Phases: []fragment.Choice{{Value: "failed", Text: "failed", Selected: true}}, Active: []fragment.Link{{Text: "state failed", Path: "/runs"}}, Rows: rows, Older: "/runs?cursor=1",
		},
		"runs_empty":   &fragment.RunList{},
		"runs_nomatch": &fragment.RunList{Active: []fragment.Link{{Text: "state failed", Path: "/runs"}}},
		"home":         &fragment.Home{Asking: fragment.ShortList{Rows: rows[:1], Count: "1,000+", All: "/runs?phase=interrupted"}, Open: "7"},
		"run": &fragment.Run{
			ID: "r/1", Title: "Pay", Workflow: "pay", Version: "1", WorkflowPath: "/workflows/pay", Labels: []fragment.Pair{{Name: "customer", Value: "kim"}},
			State: fragment.StatusState(machine.Interrupted), Began: noon, Changed: noon, Took: time.Minute, By: "kim", Records: 12,
			Questions: []fragment.QuestionLink{{Prompt: "Pay?", Path: "/q", Node: "ask", Since: noon, Deadline: noon.Add(time.Hour)}},
			Waits:     []fragment.Wait{{Text: "the signal paid", Node: "hold", NodePath: "/v", Since: noon, LastError: "late"}},
			Notices:   []fragment.Notice{{Message: "nearly full", Hint: "End it."}}, Visits: visits, StateValue: fragment.NewValue(map[string]any{"a": 1.0}, ""),
			Actions: &fragment.Actions{Cancel: post, Signal: post, Fork: post, Signals: []string{"paid"}, Last: 12},
		},
		"run_failed": &fragment.Run{
			ID: "r", State: fragment.StatusState(machine.Failed), Final: true, Failure: &fragment.RunFailure{Error: "no\nway", Code: "X", Node: "n", NodePath: "/v", Hint: "A retry continues after t1."},
			Actions: &fragment.Actions{Retry: &fragment.Retry{Post: *post, Options: []fragment.Choice{{Value: "anew", Text: "Start the failed node again", Selected: true}}, Definition: &fragment.Choice{Value: "h", Text: "Follow version 2"}, Correction: `{"a": "<b>"}`, Sent: true}, Handle: post},
		},
		"question": &fragment.Question{
			Prompt: "Pay?", Run: "r", RunPath: "/runs/r", Node: "ask", Workflow: "pay", Asked: noon, Show: &show, State: large,
			Form: &fragment.Form{Post: *post, Fields: fragment.Fields(others, nil, nil), Decision: flat.Decision(), Submit: "Send"},
		},
		"question_refused": &fragment.Question{
			Prompt: "Pay?", Run: "r", RunPath: "/runs/r", Node: "ask", Refused: &fragment.Failure{Message: "refused"},
			Form: &fragment.Form{
				Post: *post, Submit: "Send",
				Fields: fragment.Fields(flat.Fields, map[string][]string{"f0": {"true"}, "f1": {"many"}}, map[string]string{"f1": "This is not a number."}),
			},
		},
		"question_json": &fragment.Question{
			Run: "r", RunPath: "/runs/r", Node: "ask",
			Form: &fragment.Form{Post: *post, Submit: "Send", JSON: &fragment.JSONArea{Text: "{}", Schema: `{"type":"object"}`, Mistake: "not valid JSON"}},
		},
		"question_calls": &fragment.Question{
			Prompt: "May I?", Run: "r", RunPath: "/runs/r", Node: "agent", Form: &fragment.Form{Post: *post, Calls: []fragment.Call{
				{Index: 0, Tool: "mail", Allowed: "may change things", Arguments: fragment.Lay(map[string]any{"to": "kim"}, nil), JSON: `{"to":"kim"}`, MayHaveHappened: true},
				{Index: 1, Tool: "mail", Decision: "deny", Text: "why", Mistake: "choose"},
			}},
		},
		"question_answered": &fragment.Question{Prompt: "Pay?", Run: "r", RunPath: "/runs/r", Node: "ask", Answer: &fragment.Answer{By: "kim (page)", At: noon, Value: &show}},
		"visit": &fragment.VisitPage{
			Run: "r", Node: "n", Kind: "llm_call", Number: 2, State: fragment.StatusState(machine.Completed), Began: noon, Ended: noon, Took: "1s",
			Attempts: []fragment.Attempt{{
				Number: 1, State: fragment.StatusState(machine.Failed), Began: noon, Error: "no", Facts: []string{"1+2 tokens"}, Request: large,
				Entries: []fragment.Entry{{Key: "t1", Kind: "reply", By: "m", Text: "calls mail", Raw: "/raw", Facts: []string{"$0.1"}}},
			}},
			Waits:   []fragment.Waited{{Text: "question", By: "kim", Answer: "{}", Began: noon, Ended: noon}},
			Changes: &fragment.Changes{List: []fragment.Change{{Pointer: "/a", Value: fragment.NewValue(1.0, "")}, {Pointer: "/b", Gone: true}}, Rest: 3}, AfterPath: "/after",
			Earlier: "/e",
		},
		"history": &fragment.History{ID: "r", From: 201, Earlier: "/e", Later: "/l", Records: []fragment.Record{
			{Seq: 201, Kind: "event", Name: "StateUpdated", Node: "n", NodePath: "/v", At: noon, Payload: fragment.NewValue(map[string]any{}, ""), Raw: "/raw", StatePath: "/s"},
		}},
		"state":     &fragment.StateAt{ID: "r", Seq: 9, Set: 8, Earlier: 3, History: "/h", EarlierPath: "/e", State: fragment.NewValue(map[string]any{}, ""), Changes: &fragment.Changes{}},
		"workflows": &fragment.Workflows{Registered: []fragment.Workflow{{Name: "pay", Version: "1", Path: "/w", Description: "Pays.", Source: "pay.yaml"}}, Broken: []fragment.Notice{{Message: "x.yaml", Hint: "line 3"}}},
		"workflow":  &fragment.WorkflowPage{Name: "pay", Version: "1", Hash: "ab", Description: "Pays.", Runs: rows, Form: &fragment.Form{Post: *post, Submit: "Start", JSON: &fragment.JSONArea{Text: "{}"}}},
		"system": &fragment.System{Version: "1", Settings: []fragment.Pair{{Name: "db", Value: "runs.db"}}, Fleet: &fragment.Fleet{
			Processes: []fragment.Process{{Name: "box:7", Role: "all", Version: "1", Load: "3/100", Queues: "all", Performs: "step:a", Waiting: 2, Runs: 5, Started: noon}, {Name: "old"}},
			Lanes:     []fragment.Lane{{Name: "default/step:a", Runs: "12", Workers: 1, Since: noon}, {Name: "default/step:b", Runs: "1", Since: noon, Advice: "Start one."}},
		}, Redeliver: post, Deliveries: []fragment.Delivery{
			{ID: "d", Run: "r", RunPath: "/runs/r", Event: "failed", Target: "ops", State: "failed", Result: "status 500", Attempts: 3, Created: noon, Again: true},
		}},
	} {
		body, err := fragment.Render(v)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		path := filepath.Join("testdata", name+".html")
		if *update {
			if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || string(want) != string(body) {
			t.Errorf("%s differs (%v; -update rewrites it)\n%s", path, err, body)
		}
	}
}

// TestEmptyStates: an empty list is stated with its subject, so that the sentence reads without the heading above it.
func TestEmptyStates(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		view fragment.View
		want []string
	}{
		{&fragment.Home{}, []string{"No run waits for an answer.", "No unhandled failures.", "No orphaned runs."}},
		{&fragment.RunList{}, []string{"No runs yet."}},
		{&fragment.Workflows{}, []string{"No workflows yet."}},
		{&fragment.WorkflowPage{}, []string{"No runs yet."}},
		{&fragment.System{Fleet: &fragment.Fleet{}}, []string{"No live processes.", "No run waits for a worker.", "No orphaned runs.", "No webhook deliveries."}},
		{&fragment.History{From: 9}, []string{"No records from 9 onwards."}},
		{&fragment.StateAt{}, []string{"No state recorded yet."}},
	} {
		body, err := fragment.Render(tt.view)
		if err != nil {
			t.Fatalf("%T: %v", tt.view, err)
		}
		for _, want := range tt.want {
			if !strings.Contains(string(body), ">"+want) {
				t.Errorf("%T does not state %q:\n%s", tt.view, want, body)
			}
		}
	}
	words := regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|(is|are|has|have) none)\b`)
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := words.FindAll(text, -1); found != nil {
			t.Errorf("%s: %q: name the subject", file, found)
		}
	}
}

// TestLargeValues: a large value shows its beginning and its size, and takes no longer for being larger.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	list := make([]any, 20_000)
	for i := range list {
		list[i] = map[string]any{"name": "ä", "n": float64(i)}
	}
	for _, v := range []any{strings.Repeat("ä", 10_000), list, map[string]any{"a": strings.Repeat("x", 1<<20)}} {
		value := fragment.NewValue(v, "/all")
		if len(value.Text) > fragment.MaxValue || value.Size != fragment.WholeSize(v) || value.Path != "/all" || !strings.Contains(string(fragment.Whole(v)), value.Text[:100]) {
			t.Errorf("%d bytes of %d at %q: %.200s", len(value.Text), value.Size, value.Path, value.Text)
		}
	}
	if v := fragment.NewValue(map[string]any{"a": 1.0}, "/all"); v.Size != 0 || v.Text != "{\n  \"a\": 1\n}" {
		t.Errorf("%+v", v)
	}
}

// TestTableOfObjects: objects that have most fields in common are a table, in which what one of them lacks is empty; others are not.
func TestTableOfObjects(t *testing.T) {
	t.Parallel()
	row := func(fields ...string) any {
		object := map[string]any{}
		for _, name := range fields {
			object[name] = name
		}
		return object
	}
	for _, tt := range []struct {
		list []any
		head string
	}{
		{[]any{row("a", "b", "c"), row("a", "c")}, "a b c"}, {[]any{row("a", "b"), row("b", "a")}, "a b"},
		{[]any{row("a", "b"), row("a")}, ""}, {[]any{row("a"), "a"}, ""}, {[]any{row("a")}, ""}, {[]any{row("a", "b"), row()}, ""},
	} {
		l := fragment.Lay(tt.list, nil)
		if got := strings.Join(l.Head, " "); got != tt.head {
			t.Errorf("%v: columns %q, want %q", tt.list, got, tt.head)
		}
		if len(tt.head) == 5 && (l.Rows[1][1].Text != "" || l.Rows[1][2].Text != "c") {
			t.Errorf("%v: %v", tt.list, l.Rows)
		}
	}
}
