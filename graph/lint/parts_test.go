package lint_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// base reads one of the small documents that the tests of graph/definition change.
func base(t testing.TB, name string) map[string]any {
	t.Helper()
	src, err := os.ReadFile("../definition/testdata/bases/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Decode(src)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v.(map[string]any)
}

// partsOf compiles a document and lints its parts.
func partsOf(t testing.TB, v any) (*definition.Document, *definition.Program, problem.Findings) {
	t.Helper()
	d, err := definition.FromValue(v)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := definition.Compile(d, definition.Options{})
	return d, p, lint.Parts(d)
}

func codes(findings problem.Findings) string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Code))
	}
	return strings.Join(out, " ")
}

// list writes findings, one a line.
func list(findings problem.Findings) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s %s -> %s\n", f.Severity, f.Code, f.At.Pointer, f.Message, f.Hint)
	}
	return b.String()
}

// TestPartsBesideErrors: errors elsewhere in a document do not hide the findings about its parts, nor do nodes with errors have any.
func TestPartsBesideErrors(t *testing.T) {
	t.Parallel()
	const change = "set /nodes/1/config/timeout \"2s\"\nset /nodes/1/retry {\"max_attempts\":1,\"jitter\":0.5}\n"
	want := "FIELD_IGNORED RETRY_POLICY"
	for _, fault := range []string{``, `set /edges/0/target "nowhere"`, `del /state_schema`, `set /nodes/2 {"id":7}`, `set /nodes/- {"id":"greet","type":"end"}`, `set /edges {}`} {
		d, err := definition.FromValue(enginetest.Patch(t, base(t, "linear"), change+fault))
		if err != nil {
			t.Fatal(err)
		}
		program, findings := lint.Compile(d, lint.Options{})
		if (program == nil) != (fault != "") || findings.HasErrors() != (fault != "") {
			t.Errorf("%s: program %v\n%s", fault, program != nil, list(findings))
		}
		var got []string
		for _, f := range findings {
			if strings.Contains(want, string(f.Code)) {
				got = append(got, string(f.Code))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got\n%s", fault, list(findings))
		}
	}
	for _, root := range []any{nil, []any{}, map[string]any{}, map[string]any{"nodes": []any{nil, 1.0, map[string]any{}}}} {
		d, err := definition.FromValue(root)
		if err != nil {
			t.Fatal(err)
		}
		if p, findings := lint.Compile(d, lint.Options{}); p != nil || !findings.HasErrors() {
			t.Errorf("%v: accepted", root)
		}
	}
}

func TestProgramWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ program, want string }{
		{`.x`, ``},
		{`.state.x`, `EXPRESSION_STATE_ROOT`},
		{`{a: .state.x, b: .y}`, `EXPRESSION_STATE_ROOT`},
		{`if .state["x"] then 1 else 2 end`, `EXPRESSION_STATE_ROOT`},
		{`.x as $v | .state.y + $v`, `EXPRESSION_STATE_ROOT`},
		{`.state`, ``},
		{`.order | .state.x`, ``},
		{`[.items[] | select(.state.code == "NY")]`, ``},
		{`now`, ``},
		{`.now`, ``},
		{`.x | test("^[a-z]+\\z")`, ``},
		{`.x | test("\\d+")`, ``},
		{`.x | sub("a$"; "b")`, ``},
		{`.x | test("foo(?=bar)")`, ``},
		{`.x | test("foo(?=bar")`, `EXPRESSION_REGEX`},
		{`.x | test("é"; "i")`, `EXPRESSION_REGEX`},
		{`.x | test("[[:alpha:]]")`, ``},
		{`.x | split("\\s")`, ``},
		{`.x | split("("; null)`, `EXPRESSION_REGEX`},
		{`.x | test("[$]\\$")`, ``},
		{`.x | test("\\\\d")`, ``},
		{`.x | test(.pattern)`, ``},
	} {
		doc := base(t, "compute")
		doc["nodes"].([]any)[3].(map[string]any)["config"] = map[string]any{"assignments": map[string]any{"x": map[string]any{"jq": tt.program}}}
		_, p, findings := partsOf(t, doc)
		if p == nil || codes(findings) != tt.want {
			t.Errorf("%s: got %q, want %q\n%s", tt.program, codes(findings), tt.want, list(findings))
		}
	}
	doc := enginetest.Patch(t, base(t, "compute"), "set /nodes/3/config/assignments/y/jq \".state.x\"\nset /state_schema/properties/state {\"type\":\"object\"}")
	if _, _, findings := partsOf(t, doc); len(findings) > 0 {
		t.Errorf("a declared property named state:\n%s", list(findings))
	}
}

func TestConditionWarnings(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{
		`.tags[] == "x"`: true, `.a, .b`: true, `.tags[]`: true, `..`: true, `.a[] | select(. > 1)`: true, `range(3)`: true,
		`if .a then .b[] else 1 end`: true, `"\(.a)" , 1`: true, `(.a[])`: true, `.a // .b[]`: true, `try .a[] catch 1`: true, `-(.a[])`: true,
		`{a: .b[]}`: true, `.a[] as $x | $x`: true,
		`any(.tags[]; . == "x")`: false, `[.tags[]] | length > 1`: false, `.a == 1 and .b`: false, `first(.a[])`: false,
		`.a | IN("x", "y")`: false, `reduce .a[] as $x (0; . + $x)`: false, `.a[0]`: false, `.a[1:2]`: false,
		`isempty(.a[])`: false, `.tags | index("x")`: false,
	} {
		doc := base(t, "routing")
		doc["nodes"].([]any)[2].(map[string]any)["config"].(map[string]any)["cases"].([]any)[0].(map[string]any)["when"] = program
		_, _, findings := partsOf(t, doc)
		if got := codes(findings) == string(problem.ExpressionOutputs); got != want || !want && len(findings) > 0 {
			t.Errorf("%s: got\n%s", program, list(findings))
		}
	}
}

// TestConditionsThatReadTheClock are warned of. Other programs may read it: what they give is recorded.
func TestConditionsThatReadTheClock(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		`now > .due`: "EXPRESSION_READS_CLOCK", `.begun | (now - .) > 60`: "EXPRESSION_READS_CLOCK", `def f: now; f > 1`: "EXPRESSION_READS_CLOCK", `.now`: "",
	} {
		doc := base(t, "routing")
		doc["nodes"].([]any)[2].(map[string]any)["config"].(map[string]any)["cases"].([]any)[0].(map[string]any)["when"] = program
		if _, p, findings := partsOf(t, doc); p == nil || codes(findings) != want {
			t.Errorf("%s: got\n%s", program, list(findings))
		}
	}
}

func TestTemplateWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ patch, want string }{
		{`set /nodes/4/config/arguments {"repo":"${ .repo }"}`, `TEMPLATE_IS_LITERAL /nodes/4/config/arguments/repo`},
		{`set /nodes/4/config/arguments {"a":[{"jq":".x"}]}`, `TEMPLATE_IS_LITERAL /nodes/4/config/arguments/a/0`},
		{`set /nodes/4/config/arguments {"price":"$5","jq":1}`, ``},
		{"set /nodes/4/config/arguments {\"repo\":\"${ .repo }\"}\nset /nodes/4/metadata {\"argument_templates\":true}", ``},
		{`set /nodes/1/config/prompt "About {{state.x}}"`, `TEMPLATE_IS_LITERAL /nodes/1/config/prompt`},
		{`set /nodes/3/config/prompt "Is ${ .x } right?"`, `TEMPLATE_IS_LITERAL /nodes/3/config/prompt`},
		{"set /nodes/1/config/prompt \"About ${ .x }\"\nset /nodes/1/metadata {\"prompt_templates\":true}", ``},
		{"set /nodes/1/config/prompt {\"jq\":\".x\"}\nset /nodes/1/metadata {\"prompt_templates\":true}", ``},
		{"set /nodes/1/config/prompt {\"jq\":\".x\"}\nset /nodes/1/metadata {\"prompt_templates\":\"yes\"}", `CONFIG_INVALID /nodes/1/config/prompt`},
		{withPrompt(`"About ${ .x"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{withPrompt(`"About ${ .x | }"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{withPrompt(`"About ${ nosuch(1) }"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{withPrompt(`"About ${}"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{withPrompt(`"About $${ .x | }"`), ``},
		{withPrompt(`"It is ${ now | todate }"`), ``},
		{withPrompt(`"About ${ .state.x }"`), `EXPRESSION_STATE_ROOT /nodes/1/config/prompt`},
		{withPrompt(`"About {{ .x }} and ${ .y }"`), `TEMPLATE_IS_LITERAL /nodes/1/config/prompt`},
		{withPrompt(`{"jq":".x |"}`), `EXPRESSION_INVALID /nodes/1/config/prompt/jq`},
		{withPrompt(`{"jq":".state.x"}`), `EXPRESSION_STATE_ROOT /nodes/1/config/prompt/jq`},
		{withPrompt(`{"literal":"${ .x |"}`), ``},
		{withPrompt(`{"jq":".x","more":1}`), `CONFIG_INVALID /nodes/1/config/prompt`},
		{withPrompt(`{"jq":5}`), `CONFIG_INVALID /nodes/1/config/prompt`},
		{withArguments(`{"a":[{"b":"${ .x | }"}]}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/0/b`},
		{withArguments(`{"a":{"jq":"nosuch"}}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/jq`},
		{withArguments(`{"a":{"jq":5}}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/jq`},
		{withArguments(`{"a":{"jq":".state.x"},"b":{"jq":"now"}}`), `EXPRESSION_STATE_ROOT /nodes/4/config/arguments/a/jq`},
		{withArguments(`{"a":"Hello ${ .x }"}`), `TEMPLATE_IS_LITERAL /nodes/4/config/arguments/a`},
		{withArguments(`{"a":{"literal":"Hello ${ .x }"}}`), ``},
		{withArguments(`{"jq":"{a: 1"}`), `EXPRESSION_INVALID /nodes/4/config/arguments/jq`},
		{withTask(`"${ .task"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{withTask(`"Do ${ .task }"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{withTask(`"${}"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{withTask(`" ${ .task } "`), ``},
		{withTask(`"${ .state.task }"`), `EXPRESSION_STATE_ROOT /nodes/5/config/input_mapping/task`},
		{withTask(`{"jq":"now"}`), ``},
		{withTask(`{"literal":"${ .x"}`), ``},
		{withTask(`"${ .a } and ${ .b }"`), `EXPRESSION_INVALID /nodes/5/config/input_mapping/task`},
		{withTask(`{"jq":5}`), `EXPRESSION_INVALID /nodes/5/config/input_mapping/task`},
	} {
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, "routing"), tt.patch))
		got := ""
		for _, f := range findings {
			got += string(f.Code) + " " + f.At.Pointer
		}
		if p == nil || got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.patch, got, tt.want)
		}
	}
}

// TestMembersOfTheNodeInItsConfig shows that a timeout and a retry policy are missed where no config would refuse them.
func TestMembersOfTheNodeInItsConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, node, member, hint string }{
		{"routing", "1", "timeout", "beside config"},
		{"routing", "1", "retry", "beside config"},
		{"routing", "1", "max_attempts", "belongs to retry"},
		{"routing", "1", "non_retryable_errors", "belongs to retry"},
		{"linear", "1", "timeout", "beside config"},
		{"linear", "1", "retry", "beside config"},
		{"linear", "1", "initial_interval", "belongs to retry"},
		{"linear", "1", "output_schema", "no output of a step is checked"},
		{"linear", "1", "input_schema", "config of the start node"},
		{"linear", "1", "input", "whole state"},
		{"linear", "1", "input_mapping", "whole state"},
		{"linear", "1", "output", "set_state"},
		{"linear", "1", "output_mapping", "set_state"},
		{"linear", "1", "retries", `"max_attempts": 3`},
		{"linear", "1", "on_error", `write "catch" beside config`},
		{"linear", "1", "catch", "beside config"},
		{"routing", "1", "compensate", "beside config"},
		{"linear", "1", "timeout_ms", `"timeout": "30s"`},
		{"linear", "1", "metadata", "beside config"},
		{"linear", "1", "demo_output", "belongs to metadata"},
		{"routing", "1", "input", "into the prompt"},
		{"routing", "1", "output", "set_state"},
		{"routing", "1", "response_format", "output_schema"},
		{"routing", "1", "prompt_templates", "belongs to metadata"},
		{"routing", "1", "max_retries", `"max_attempts": 3`},
		{"routing", "1", "temperature", ""},
		{"linear", "1", "attempts", ""},
	} {
		pointer := "/nodes/" + tt.node + "/config/" + tt.member
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, tt.base), "set "+pointer+` "5s"`))
		if p == nil || tt.hint == "" && len(findings) > 0 {
			t.Errorf("%s of %s:\n%s", pointer, tt.base, list(findings))
		}
		if tt.hint == "" {
			continue
		}
		if len(findings) != 1 || findings[0].Code != problem.FieldIgnored || findings[0].At.Pointer != pointer ||
			!strings.Contains(findings[0].Hint, tt.hint) || !strings.Contains(findings[0].Message, tt.member) {
			t.Errorf("%s of %s: got\n%s", pointer, tt.base, list(findings))
		}
	}
	text, err := os.ReadFile("../definition/testdata/bases/linear.json")
	if err != nil {
		t.Fatal(err)
	}
	d, err := definition.Parse([]byte(strings.Replace(string(text),
		`"config": { "handler": "greet" }`, "\"config\": { \"handler\": \"greet\",\n\"timeout\": \"2s\" }", 1)))
	if err != nil {
		t.Fatal(err)
	}
	findings := lint.Parts(d)
	if len(findings) != 1 || findings[0].At.Line < 2 || findings[0].At.Column != 1 {
		t.Errorf("not at the member's line:\n%s", list(findings))
	}
}

// TestMembersOfTheNodeInItsMetadata: what is written into metadata, where any member may stand, and has an effect only elsewhere.
func TestMembersOfTheNodeInItsMetadata(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, member, hint string }{
		{"linear", "timeout", "beside metadata"},
		{"linear", "retry", "beside metadata"},
		{"linear", "prompt_templates", "only llm_call nodes"},
		{"linear", "argument_templates", "only tool_call nodes"},
		{"routing", "argument_templates", "only tool_call nodes"},
		{"routing", "prompt_templates", ""},
		{"linear", "demo_output", ""},
		{"linear", "owner", ""},
	} {
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, tt.base), "set /nodes/1/metadata {\""+tt.member+"\":{}}"))
		switch {
		case p == nil, tt.hint == "" && len(findings) > 0:
			t.Errorf("%s of %s:\n%s", tt.member, tt.base, list(findings))
		case tt.hint == "":
		case len(findings) != 1 || findings[0].Code != problem.FieldIgnored || findings[0].At.Pointer != "/nodes/1/metadata/"+tt.member || !strings.Contains(findings[0].Hint, tt.hint):
			t.Errorf("%s of %s: got\n%s", tt.member, tt.base, list(findings))
		}
	}
}

// withPrompt and withArguments change nodes whose texts are filled in.
func withPrompt(value string) string {
	return "set /nodes/1/config/prompt " + value + "\nset /nodes/1/metadata {\"prompt_templates\":true}"
}

func withArguments(value string) string {
	return "set /nodes/4/config/arguments " + value + "\nset /nodes/4/metadata {\"argument_templates\":true}"
}

func withTask(task string) string {
	return `set /nodes/5 {"id":"search","type":"agent_delegate","config":{"agent_id":"w","protocol":"sdk","input_mapping":{"task":` + task + `}}}`
}

func TestStateWarnings(t *testing.T) {
	t.Parallel()
	const schema = `set /state_schema {"type":"object","required":["never"],"additionalProperties":false,"properties":{` +
		`"s":{"type":"string"},"list":{"type":"array","items":{"type":"number"},"minItems":3,"reducer":"append"},` +
		`"map":{"type":"object","required":["k"],"properties":{"a":{"type":"number"}},"reducer":"merge"},"ref":{"$ref":"#/$defs/n"},` +
		`"one":{"oneOf":[{"type":"string"},{"type":"number"}]}},"$defs":{"n":{"type":"number"}},"patternProperties":{"^x_":true}}` + "\n"
	for _, tt := range []struct{ key, literal, want string }{
		{"s", `"ok"`, ``},
		{"s", `1`, `"s" is set to a value that does not fit: state_schema forbids it: the value must be string, not number`},
		{"list", `1`, ``},
		{"list", `[1,"a"]`, `"list" is set to a value that does not fit: state_schema forbids it: at /1 it must be number, not string`},
		{"map", `{"a":1}`, ``},
		{"map", `{"a":"x"}`, `"map" is set to a value that does not fit: state_schema forbids it: at /a it must be number, not string`},
		{"map", `5`, `"map" is set to a value that does not fit: merge ignores a value that is not an object`},
		{"ref", `"x"`, `"ref" is set to a value that does not fit: state_schema forbids it: the value must be number, not string`},
		{"one", `"x"`, ``},
		{"one", `null`, `"one" is set to a value that does not fit: state_schema forbids it: the value must be string, not null`},
		{"other", `1`, `"other" is set to a value that does not fit: state_schema has no property "other"`},
		{"x_1", `1`, ``},
	} {
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, "compute"), schema+`set /nodes/3/config/assignments {"`+tt.key+`":{"literal":`+tt.literal+`}}`))
		got := ""
		for _, f := range findings {
			got += f.Message
		}
		if p == nil || got != tt.want {
			t.Errorf("%s = %s: got %q, want %q", tt.key, tt.literal, got, tt.want)
		}
	}
}

// TestMisspeltMembersOfTheConfig: where any member is allowed, one that is nearly the name of another is warned of, and no other.
func TestMisspeltMembersOfTheConfig(t *testing.T) {
	t.Parallel()
	for member, near := range map[string]string{"modle": "model", "system_promt": "system_prompt", "max_token": "max_tokens", "agnet": "agent", "prompt": "", "style": "", "audience": ""} {
		doc, err := definition.Parse([]byte(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"w","version":"1"},"state_schema":{"type":"object"},
			"nodes":[{"id":"s","type":"start"},{"id":"c","type":"llm_call","config":{"model":"m","` + member + `":"x"}},{"id":"e","type":"end"}],
			"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"c"},{"source":"c","target":"e"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		findings := lint.Parts(doc)
		if warned := len(findings) > 0; warned != (near != "") || warned && !strings.Contains(findings[0].Hint, near) {
			t.Errorf("%s: %+v", member, findings)
		}
	}
}

// A text that looks like a template where nothing fills it in is warned of, in the config of every node, at its place.
func TestUnfilledTemplates(t *testing.T) {
	t.Parallel()
	node := func(id, kind string, config map[string]any) map[string]any {
		return map[string]any{"id": id, "type": kind, "config": config}
	}
	for _, tt := range []struct {
		node map[string]any
		want string // the pointer below the node, "" for no warning
	}{
		{node("n", "step", map[string]any{"handler": "book", "seat": "${ .seat }"}), "/config/seat"},
		{node("n", "step", map[string]any{"handler": "book", "rows": []any{"a", map[string]any{"at": "row ${ .row }"}}}), "/config/rows/1/at"},
		{node("n", "step", map[string]any{"handler": "book", "greeting": "{{name}}"}), ""}, // a handler may have templates of its own
		{node("n", "step", map[string]any{"handler": "book", "output_schema": map[string]any{"pattern": "^${"}}), ""},
		{node("n", "llm_call", map[string]any{"model": "${ .model }", "user_prompt": "Hello"}), "/config/model"},
		{node("n", "tool_call", map[string]any{"server": "s", "tool": "${ .tool }"}), "/config/tool"},
		{node("n", "agent_delegate", map[string]any{"agent_id": "${ .who }", "protocol": "sdk", "input_mapping": map[string]any{}}), "/config/agent_id"},
		{node("n", "agent_delegate", map[string]any{"agent_id": "a", "protocol": "sdk", "input_mapping": map[string]any{"x": "${ .who }"}}), ""},
		{node("n", "subworkflow", map[string]any{"workflow_ref": "${ .which }", "input_mapping": map[string]any{}}), "/config/workflow_ref"},
		{node("n", "wait", map[string]any{"kind": "signal", "signal": "${ .name }"}), "/config/signal"},
		{node("n", "interrupt", map[string]any{"prompt": "Go on?", "prompt_ref": "${ .p }", "resume_schema": map[string]any{"type": "object"}}), "/config/prompt_ref"},
	} {
		doc := map[string]any{
			"document":     map[string]any{"schema": "https://agent-workflow.dev/schemas/workflow-definition.json", "name": "d", "version": "1.0.0"},
			"state_schema": map[string]any{"type": "object"},
			"nodes":        []any{map[string]any{"id": "s", "type": "start"}, tt.node, map[string]any{"id": "e", "type": "end"}},
			"edges": []any{
				map[string]any{"source": "__start__", "target": "s"}, map[string]any{"source": "s", "target": "n"}, map[string]any{"source": "n", "target": "e"},
			},
		}
		_, _, findings := partsOf(t, doc)
		var got []string
		for _, f := range findings {
			if f.Code == problem.TemplateLiteral {
				got = append(got, strings.TrimPrefix(f.At.Pointer, "/nodes/1"))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%v: warnings at %q, want %q\n%s", tt.node["config"], got, tt.want, list(findings))
		}
	}
}

// TestOverwriteWarnings: two branches that set the same key of the state, where the join would lose a value.
func TestOverwriteWarnings(t *testing.T) {
	t.Parallel()
	set := func(node, id, assignments string) string {
		return "set /nodes/" + node + ` {"id":"` + id + `","type":"set_state","config":{"assignments":{` + assignments + `}}}` + "\n"
	}
	llm := func(node, id, properties string) string {
		return "set /nodes/" + node + ` {"id":"` + id + `","type":"llm_call","config":{"model":"m","output_schema":{"type":"object","properties":{` + properties + `}}}}` + "\n"
	}
	const jq = `"k":{"jq":".x"}`
	for _, tt := range []struct{ name, patch, want string }{
		{"one key", set("2", "a", jq) + set("3", "b", jq), `/nodes/3/config/assignments/k branches "one" and "two"`},
		{"one warning for three branches", set("2", "a", jq) + set("3", "b", jq) + set("4", "c", jq), `/nodes/3/config/assignments/k branches "one" and "two"`},
		{"what models answer", llm("2", "a", `"k":{}`) + llm("4", "c", `"k":{}`), `/nodes/4/config/output_schema/properties/k branches "one" and "three"`},
		{"a model and an assignment", llm("2", "a", `"k":{}`) + set("4", "c", jq), `/nodes/4/config/assignments/k branches "one" and "three"`},
		{"a tail of two branches", set("3", "b", jq) + `set /edges/3/target "b"`, `/nodes/3/config/assignments/k branches "one" and "two"`},
		{"n_of_m", set("2", "a", jq) + set("3", "b", jq) + "set /nodes/1/config/join \"n_of_m\"\nset /nodes/1/config/n 2", `/nodes/3/config/assignments/k branches "one" and "two"`},
		{"other literals", set("2", "a", `"k":{"literal":1}`) + set("3", "b", `"k":{"literal":2}`), `/nodes/3/config/assignments/k branches "one" and "two"`},
		{
			"a nested block", nestedTail + set("7", "x", jq) + set("4", "c", jq),
			`/nodes/4/config/assignments/k branches "one" and "three"`,
		},

		{"the same literals", set("2", "a", `"k":{"literal":"done"}`) + set("3", "b", `"k":{"literal":"done"}`), ``},
		{"other keys", set("2", "a", jq) + set("3", "b", `"l":{"jq":".x"}`), ``},
		{"a reducer", set("2", "a", `"found":{"jq":".x"}`) + set("3", "b", `"found":{"jq":".x"}`), ``},
		{"an overwrite that is meant", set("2", "a", jq) + set("3", "b", jq) + `set /state_schema/properties/k {"reducer":"overwrite"}`, ``},
		{"any", set("2", "a", jq) + set("3", "b", jq) + `set /nodes/1/config/join "any"`, ``},
		{"twice on one branch", set("2", "a", jq) + set("3", "b", jq) + "set /edges/3/target \"b\"\nset /nodes/1/config/branches/1/entry \"c\"\nset /nodes/1/config/branches/2 {\"name\":\"three\",\"entry\":\"d\"}\n" +
			`set /nodes/- {"id":"d","type":"step","config":{"handler":"h"}}` + "\n" + `set /edges/- {"source":"d","target":"merge"}`, ``},
		{"behind the join", set("2", "a", `"phase":{"jq":".x"}`), ``},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, findings := partsOf(t, enginetest.Patch(t, base(t, "parallel"), tt.patch))
			var got []string
			for _, f := range findings {
				if f.Code == problem.ParallelOverwrite {
					got = append(got, f.At.Pointer+" "+f.Message)
					if f.At.NodeID == "" || !strings.Contains(f.Hint, "/state_schema/properties/k") {
						t.Errorf("node %q, hint %q", f.At.NodeID, f.Hint)
					}
				}
			}
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tt.want)) {
				t.Errorf("got\n%s\nwant %s", list(findings), tt.want)
			}
		})
	}
}

// TestRetryWarnings holds what is said of policies that the protocol accepts and that do something else than they seem to.
func TestRetryWarnings(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		`{"max_attempts":3}`: ``,
		`{"max_attempts":1}`: ``,
		`{"max_attempts":3,"initial_interval":"1s","backoff_coefficient":1,"max_interval":"1s","jitter":0.5}`: ``,
		`{"max_attempts":3,"backoff_coefficient":1,"jitter":0}`:                                               ``,
		`{"max_attempts":3,"initial_interval":"-1s"}`:                                                         `DURATION_INVALID /nodes/1/retry/initial_interval fails where it would be tried again`,
		`{"max_attempts":3,"initial_interval":"1s","max_interval":"1.5s"}`:                                    `DURATION_INVALID /nodes/1/retry/max_interval fails where it would be tried again`,
		`{"max_attempts":3,"initial_interval":"1s","backoff_coefficient":-1}`:                                 `RETRY_POLICY /nodes/1/retry/backoff_coefficient counts as 1`,
		`{"max_attempts":3,"initial_interval":"1s","backoff_coefficient":0}`:                                  `RETRY_POLICY /nodes/1/retry/backoff_coefficient only the second attempt waits`,
		`{"max_attempts":3,"initial_interval":"1s","backoff_coefficient":0.1}`:                                `RETRY_POLICY /nodes/1/retry/backoff_coefficient ever faster`,
		`{"max_attempts":3,"backoff_coefficient":2,"max_interval":"9s"}`:                                      `RETRY_POLICY /nodes/1/retry/backoff_coefficient without an initial_interval`,
		`{"max_attempts":3,"initial_interval":" ","max_interval":"9s"}`:                                       `RETRY_POLICY /nodes/1/retry/max_interval without an initial_interval`,
		`{"max_attempts":3,"initial_interval":"0s","jitter":0.5}`:                                             `RETRY_POLICY /nodes/1/retry/jitter without an initial_interval`,
		`{"max_attempts":3,"initial_interval":"10s","max_interval":"1s"}`:                                     `RETRY_POLICY /nodes/1/retry/max_interval none grows`,
		`{"max_attempts":3,"initial_interval":"10s","max_interval":"0"}`:                                      `RETRY_POLICY /nodes/1/retry/max_interval at once`,
		`{"max_attempts":1,"initial_interval":"10s","backoff_coefficient":0.1}`:                               `RETRY_POLICY /nodes/1/retry/max_attempts counts the first attempt`,
	} {
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, "linear"), `set /nodes/1/retry `+policy))
		if p == nil {
			t.Errorf("%s: refused\n%s", policy, list(findings))
			continue
		}
		var got []string
		for _, f := range findings {
			got = append(got, string(f.Code)+" "+f.At.Pointer+" "+f.Message)
			if f.Severity != problem.SeverityWarning || f.Hint == "" {
				t.Errorf("%s: %+v", policy, f)
			}
		}
		code, text, _ := strings.Cut(want, "retry/")
		_, text, _ = strings.Cut(text, " ")
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], code) || !strings.Contains(got[0], text)) {
			t.Errorf("%s: got %q, want %q", policy, got, want)
		}
	}
}

// TestRetryWarningsOfRepairs: with one attempt an answer that breaks output_schema still gets its repair, without a pause.
func TestRetryWarningsOfRepairs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kind, config, policy, want string }{
		{"llm_call", `{"model":"m","output_schema":{"type":"object"}}`, ``, "an answer that breaks output_schema gets one repair"},
		{"llm_call", `{"model":"m","output_schema":{"type":"object"}}`, `,"non_retryable_errors":["OUTPUT_SCHEMA_VIOLATION"]`, "with 1 nothing is retried"},
		{"llm_call", `{"model":"m"}`, ``, "with 1 nothing is retried"},
		{"step", `{"handler":"urn:x:y","output_schema":{"type":"object"}}`, ``, "with 1 nothing is retried"},
	} {
		_, p, findings := partsOf(t, enginetest.Patch(t, base(t, "linear"),
			`set /nodes/1 {"id":"greet","type":"`+tt.kind+`","config":`+tt.config+`,"retry":{"max_attempts":1,"initial_interval":"1s"`+tt.policy+`}}`))
		findings = slices.DeleteFunc(findings, func(f problem.Finding) bool { return f.Code == problem.FieldIgnored })
		if p == nil || len(findings) != 1 || !strings.Contains(findings[0].Message, tt.want) {
			t.Errorf("%s %s: %s", tt.kind, tt.config, list(findings))
		}
	}
}

// nestedTail makes the first branch a block whose branches share their last node.
const nestedTail = `
set /nodes/2 {"id":"a","type":"parallel","config":{"join":"all","branches":[{"name":"x","entry":"x"},{"name":"y","entry":"y"}]}}
set /nodes/- {"id":"x","type":"step","config":{"handler":"x"}}
set /nodes/- {"id":"y","type":"step","config":{"handler":"y"}}
set /nodes/- {"id":"tail","type":"step","config":{"handler":"tail"}}
set /nodes/- {"id":"joined","type":"step","config":{"handler":"joined"}}
set /edges/3/target "joined"
set /edges/- {"source":"x","target":"tail"}
set /edges/- {"source":"y","target":"tail"}
set /edges/- {"source":"tail","target":"joined"}
set /edges/- {"source":"joined","target":"merge"}
`
