package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestForgiven: harmless deviations in arguments are accepted.
func TestForgiven(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	step, err := json.Marshal(definitionFile(t, "step"))
	if err != nil {
		t.Fatal(err)
	}
	yaml := "document: {schema: s, name: y, version: '1'}\nstate_schema: {type: object}\n" +
		"nodes:\n- {id: a, type: start}\n- {id: b, type: end}\n" +
		"edges:\n- {source: __start__, target: a}\n- {source: a, target: b}\n"
	for name, tt := range map[string]struct {
		args   any
		status string
	}{
		"null is absent": {object{"definition": definitionFile(t, "step"), "input": nil, "execution_id": nil, "wait_ms": nil, "branch_order": nil}, "awaiting_activity"},
		"JSON text":      {object{"definition": string(step), "input": `{"a":1}`}, "awaiting_activity"},
		"spaces":         {object{"definition": " \n" + string(step)}, "awaiting_activity"},
		"YAML text":      {object{"definition": yaml}, "completed"},
		"all as text":    {`{"definition":` + string(step) + `}`, "awaiting_activity"},
	} {
		if r := h.raw("workflow_start", tt.args); r.content["status"] != tt.status {
			t.Errorf("%s: %s", name, r.text)
		}
	}
}

// TestNumbersOutOfRange: every number that a tool takes is refused outside its range, before anything is done.
func TestNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	started := h.ok("workflow_start", object{"definition": definitionFile(t, "step")})
	id := started["execution_id"]
	needed := map[string]object{
		"workflow_start":           {"definition": definitionFile(t, "step")},
		"workflow_submit_activity": {"node_id": "step", "outcome": object{"ok": true, "result": object{}}},
		"workflow_resume":          {"resume_payload": object{}},
		"workflow_signal":          {"signal_name": "x"},
		"workflow_validate":        {"definition": definitionFile(t, "step")},
		"workflow_fork":            {"seq": 1},
	}
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, tool := range list.Tools {
		text, _ := json.Marshal(tool.InputSchema)
		var schema struct {
			Properties map[string]struct {
				Type             string
				Minimum, Maximum *float64
			}
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		for name, p := range schema.Properties {
			if p.Type != "integer" {
				continue
			}
			if p.Minimum == nil {
				t.Errorf("%s.%s has no least value", tool.Name, name)
				continue
			}
			wrong := []float64{*p.Minimum - 1, -1, *p.Minimum + 0.5, 1e18}
			if p.Maximum != nil {
				wrong = append(wrong, *p.Maximum+1)
			}
			for _, n := range wrong {
				args := object{}
				if _, takes := schema.Properties["execution_id"]; takes && tool.Name != "workflow_start" {
					args["execution_id"] = id
				}
				maps.Copy(args, needed[tool.Name])
				args[name] = n
				tried++
				if r := h.raw(tool.Name, args); r.code != "VALIDATION_ERROR" || !strings.Contains(r.text, "arguments."+name+": expected a whole number from ") || strings.Count(r.text, "expected") != 1 {
					t.Errorf("%s %s %v: %s", tool.Name, name, n, r.text)
				}
			}
		}
	}
	if tried < 80 {
		t.Errorf("only %d calls were made", tried)
	}
	if now := h.ok("workflow_status", object{"execution_id": id}); now["seq"] != started["seq"] {
		t.Errorf("a refused call changed the run: %v", now)
	}
}

// TestRefusedArguments: every other deviation is refused; the answer names all of them.
func TestRefusedArguments(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	for _, tt := range []struct {
		name, tool string
		args       any
		texts      []string
	}{
		{"nothing", "workflow_start", nil, []string{`arguments: missing field "definition"`}},
		{"two definitions", "workflow_start", object{"definition": object{}, "definition_ref": "x"}, []string{"arguments.definition_ref: expected one of definition and definition_ref, found both"}},
		{"a typing error in the mode's name", "workflow_start", object{"definition_ref": "x", "activity_excution_mode": "in_process"},
			[]string{`unknown field "activity_excution_mode"; did you mean "activity_execution_mode"?`}},
		{"a typing error in the mode", "workflow_start", object{"definition_ref": "x", "activity_execution_mode": "host-mediated"},
			[]string{`activity_execution_mode: expected in_process or host_mediated, found "host-mediated"`, `did you mean "host_mediated"?`}},
		{"camelCase", "workflow_status", object{"executionId": "x"}, []string{`did you mean "execution_id"?`, `missing field "execution_id"`}},
		{"a stranger", "workflow_status", object{"execution_id": "x", "verbose": true}, []string{"known fields: execution_id, wait_ms"}},
		{"kinds", "workflow_start", object{"definition": 5, "input": []any{}, "execution_id": 7, "allow_existing_execution_id": "yes", "wait_ms": -1},
			[]string{"definition: expected object", "input: expected object, found array", "execution_id: expected string, found number",
				"allow_existing_execution_id: expected boolean, found string", "wait_ms: expected a whole number from 0 to 300000, found -1"}},
		{"fractions", "workflow_list", object{"limit": 1.5}, []string{"limit: expected a whole number from 1 to 100, found 1.5"}},
		{"beyond", "workflow_list", object{"limit": 101}, []string{"limit: expected a whole number from 1 to 100, found 101"}},
		{"no time", "workflow_list", object{"updated_after": "hello"}, []string{`updated_after: expected a time such as 2026-11-21T01:03:49Z, found "hello"`}},
		{"no phase", "workflow_list", object{"phase": "awaiting"}, []string{"phase: expected running, completed"}},
		{"a status that is no phase", "workflow_list", object{"phase": []any{"awaiting_timer"}},
			[]string{"phase.0: expected running, completed", "use the phase of runs with this status: running"}},
		{"quotes of other languages", "workflow_status", object{"execution_id": "x", "select": ".a == 'x'"},
			[]string{`select: the program`, `Texts take double quotes: .name == "x".`}},
		{"another word for a payload", "workflow_resume", object{"execution_id": "x", "payload": object{}}, []string{`unknown field "payload"; did you mean "resume_payload"?`}},
		{"another word for a run", "workflow_cancel", object{"id": "x"}, []string{`unknown field "id"; did you mean "execution_id"?`}},
		{"another word for a phase", "workflow_list", object{"status": "running"}, []string{`unknown field "status"; did you mean "phase"?`}},
		{"another word for a result", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{"ok": true, "output": object{}}},
			[]string{`outcome: unknown field "output"; did you mean "result"?`}},
		{"another word for an outcome", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "output": object{}},
			[]string{`unknown field "output"; did you mean "outcome"?`}},
		{"empty", "workflow_cancel", object{"execution_id": "x", "reason": ""}, []string{"reason: must not be empty"}},
		{"text that is no object", "workflow_resume", object{"execution_id": "x", "resume_payload": "yes"}, []string{"resume_payload: expected object, found string"}},
		{"text that is no object any more", "workflow_resume", object{"execution_id": "x", "resume_payload": `{"a":`}, []string{"not the JSON text of one: invalid JSON at line 1, column 6"}},
		{"text that holds no object", "workflow_resume", object{"execution_id": "x", "resume_payload": "[1]"}, []string{"resume_payload: expected object, found the JSON text of array"}},
		{"no outcome", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n"}, []string{`missing field "outcome"`}},
		{"ok missing", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{}}, []string{`outcome: missing field "ok"`}},
		{"ok as text", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{"ok": "true"}}, []string{"outcome.ok: expected boolean, found string"}},
		{"no error", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{"ok": false}}, []string{`outcome: missing field "error"`}},
		{"a lost result", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{"ok": true, "results": object{}}},
			[]string{`outcome: unknown field "results"; did you mean "result"?`}},
		{"no outcome around it", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "ok": true, "externalTaskId": "t"},
			[]string{`unknown field "ok"; it belongs in outcome`, `unknown field "externalTaskId"; it belongs in outcome`, `missing field "outcome"`}},
		{"half a span", "workflow_submit_activity", object{"execution_id": "x", "node_id": "n", "outcome": object{"ok": true}, "parallel_span": object{"branchName": "b"}},
			[]string{`parallel_span: missing field "parallel_node_id"`, `parallel_span: missing field "join_target_id"`}},
		{"an array", "workflow_status", []any{1}, []string{"arguments: expected object, found array"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := h.raw(tt.tool, tt.args)
			if r.code != "VALIDATION_ERROR" {
				t.Fatalf("%s", r.text)
			}
			for _, text := range tt.texts {
				if !strings.Contains(r.text, text) {
					t.Errorf("%s\ndoes not say %q", r.text, text)
				}
			}
			issues := r.details()["issues"].([]any)
			if len(issues) == 0 || at(t, issues, 0, "path") == nil || at(t, issues, 0, "message") == "" {
				t.Errorf("issues %v", issues)
			}
		})
	}
}

// An answer lists the first of many mistakes and counts the rest.
func TestRefusedArgumentsAreCounted(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	args := object{"execution_id": 1.0}
	for i := range 5_000 {
		args[fmt.Sprint("n", i)] = i
	}
	r := h.refused("VALIDATION_ERROR", "workflow_status", args)
	if issues := r.details()["issues"].([]any); len(issues) != 20 || !strings.Contains(r.text, "; and 4981 more") || len(r.text) > 10_000 {
		t.Errorf("%d issues listed: %s", len(issues), r.text)
	}
}

// The problems of a definition have the tool's code for them.
func TestRefusedDefinitionsByTool(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "x"})
	for tool, tt := range map[string]struct {
		code string
		args object
	}{
		"workflow_start":           {"VALIDATION_ERROR", object{}},
		"workflow_resume":          {"INVALID_RESUME_PAYLOAD", object{"execution_id": "x", "resume_payload": object{}}},
		"workflow_submit_activity": {"SUBMIT_VALIDATION_ERROR", object{"execution_id": "x", "node_id": "work", "outcome": object{"ok": true}}},
		"workflow_signal":          {"SIGNAL_VALIDATION_ERROR", object{"execution_id": "x", "signal_name": "s"}},
	} {
		tt.args["definition"] = `{"document": 1,, }`
		r := h.refused(tt.code, tool, tt.args)
		if line := at(t, r.details(), "errors", 0, "line"); line != 1.0 {
			t.Errorf("%s: errors %v", tool, r.details())
		}
	}
}

// The problems of an input are in the text once, and completely in details.
func TestRefusedInputIsSaidOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	definition := definitionFile(t, "step")
	definition["nodes"].([]any)[0].(map[string]any)["config"] = object{"input_schema": object{
		"required": []any{"who"}, "properties": object{"order": object{"type": "integer"}},
	}}
	for input, want := range map[string]string{
		`{"who":1,"order":"x"}`: "VALIDATION_ERROR: the input breaks input_schema: /order must be integer, not string\nNext: ",
		`{"order":"x"}`: "VALIDATION_ERROR: the input breaks input_schema: the input must have the member \"who\" (and 1 more error)\n" +
			"- /order: must be integer, not string\nNext: ",
	} {
		r := h.refused("VALIDATION_ERROR", "workflow_start", object{"definition": definition, "input": json.RawMessage(input)})
		if !strings.HasPrefix(r.text, want) {
			t.Errorf("%s: got %q", input, r.text)
		}
		if listed, _ := r.details()["errors"].([]any); r.details()["errorCount"] != float64(len(listed)) ||
			at(t, listed, len(listed)-1, "instancePath") != "/order" {
			t.Errorf("%s: details %v", input, r.details())
		}
	}
}

// Any arguments are either read or refused with issues.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `[]`, `"{}"`, `{"definition":"a: b"}`, `{"definition":"{"}`, `{"wait_ms":1e400}`, `{"input":"{\"a\":[]}"}`,
		`{"parallel_span":{"branchName":1}}`, `{"\ud800":1}`, `{"definition":"&a [*a]"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, tool := range order {
			err := mcpserver.ReadArguments(tool, raw)
			if err == nil {
				continue
			}
			e, ok := problem.As(err)
			if !ok || len(e.Details) == 0 && len(e.Findings) == 0 {
				t.Errorf("%s: %v names no issue", tool, err)
			}
		}
	})
}

// An integer or a text that would be recorded as another one is refused with its place, wherever it stands.
func TestArgumentsThatWouldChange(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	h.ok("workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "x"})
	for name, tt := range map[string]struct{ tool, args, want string }{
		"input":   {"workflow_start", `{"definition_ref":"x","input":{"a":[{"id":1234567890123456789}]}}`, "arguments.input.a.0.id: the integer 1234567890123456789 cannot be kept exactly"},
		"text":    {"workflow_start", `{"definition_ref":"x","input":"{\"id\":1234567890123456789}"}`, "arguments.input.id: the integer 1234567890123456789 cannot be kept exactly"},
		"result":  {"workflow_submit_activity", `{"execution_id":"x","node_id":"work","outcome":{"ok":true,"result":{"id":-9223372036854775808}}}`, "arguments.outcome.result.id: the integer -9223372036854775808"},
		"answer":  {"workflow_resume", `{"execution_id":"x","resume_payload":{"n":1e400}}`, "arguments.resume_payload.n: the number is too large"},
		"signal":  {"workflow_signal", `{"execution_id":"x","signal_name":"s","payload":{"s":"\ud83d"}}`, "arguments.payload.s: the escape is one half of a surrogate pair"},
		"all":     {"workflow_signal", `"{\"execution_id\":\"x\",\"signal_name\":\"s\",\"payload\":{\"n\":9007199254740993}}"`, "arguments.payload.n: the integer 9007199254740993"},
		"defined": {"workflow_start", `{"definition":{},"input":{"definition":{"n":9007199254740993}}}`, "arguments.input.definition.n: the integer 9007199254740993"},
	} {
		if r := h.raw(tt.tool, json.RawMessage(tt.args)); r.code != "VALIDATION_ERROR" || !strings.Contains(r.text, tt.want) {
			t.Errorf("%s: %s", name, r.text)
		}
	}
	done := h.raw("workflow_submit_activity", json.RawMessage(`{"execution_id":"x","node_id":"work","outcome":{"ok":true,"result":{"id":9007199254740992,"n":0.1}}}`))
	if strings.Contains(done.text, "cannot be kept") {
		t.Error(done.text)
	}
}

// TestArgumentsThatTakeTooMuch: where none of them was read, none is said to be missing.
func TestArgumentsThatTakeTooMuch(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	many := json.RawMessage("[" + strings.Repeat(`{"":0},`, 600_000) + "0]")
	r := h.refused("VALIDATION_ERROR", "workflow_status", object{"execution_id": "r", "pad": many})
	issues, _ := r.details()["issues"].([]any)
	if len(issues) != 1 || !strings.Contains(r.text, "MiB of memory") || strings.Contains(r.text, "missing") {
		t.Errorf("%d issues: %s", len(issues), r.text)
	}
}

// TestArgumentsGivenTwice: which of two values was meant is not guessed, at any depth and in large calls too.
func TestArgumentsGivenTwice(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	step, err := json.Marshal(definitionFile(t, "step"))
	if err != nil {
		t.Fatal(err)
	}
	for args, member := range map[string]string{
		`{"execution_id":"r","definition":` + string(step) + `,"execution_id":"s"}`:                                            "execution_id",
		`{"definition":` + string(step) + `,"input":{"a":{"b":1,"b":1}}}`:                                                      "b",
		`{"definition":` + string(step) + `,"input":{"a":1,"a":2,"pad":"` + strings.Repeat("x", 70_000) + `"}}`:                "a",
		`{"definition":` + string(step) + `,"input":"{\"a\":1,\"a\":2}"}`:                                                      "a",
		`{"definition":` + string(step) + `,"definition":` + string(step) + `}`:                                                "definition",
		`{"definition":` + strings.Replace(string(step), `"config":{`, `"config":{"handler":"x",`, 1) + `,"execution_id":"r"}`: "handler",
	} {
		r := h.raw("workflow_start", json.RawMessage(args))
		if r.code != "VALIDATION_ERROR" || !strings.Contains(r.text, `duplicate field "`+member+`"`) {
			t.Errorf("%.60s: %.400s", args, r.text)
		}
	}
}
