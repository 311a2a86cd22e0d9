package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

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
		_, p, findings := compileValue(t, doc)
		if p == nil || codes(findings) != tt.want {
			t.Errorf("%s: got %q, want %q\n%s", tt.program, codes(findings), tt.want, list(findings))
		}
	}
	doc := patch(t, base(t, "compute"), "set /nodes/3/config/assignments/y/jq \".state.x\"\nset /state_schema/properties/state {\"type\":\"object\"}")
	if _, _, findings := compileValue(t, doc); len(findings) > 0 {
		t.Errorf("a declared property named state:\n%s", list(findings))
	}
}

func codes(findings problem.Findings) string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Code))
	}
	return strings.Join(out, " ")
}

func TestConditionWarnings(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{
		`.tags[] == "x"`: true, `.a, .b`: true, `.tags[]`: true, `..`: true, `.a[] | select(. > 1)`: true, `range(3)`: true,
		`if .a then .b[] else 1 end`: true, `"\(.a)" , 1`: true, `(.a[])`: true, `.a // .b[]`: true, `try .a[] catch 1`: true, `-(.a[])`: true,
		`{a: .b[]}`: true, `.a[] as $x | $x`: true,
		`any(.tags[]; . == "x")`: false, `[.tags[]] | length > 1`: false, `.a == 1 and .b`: false, `first(.a[])`: false,
		`.a | IN("x", "y")`: false, `reduce .a[] as $x (0; . + $x)`: false, `.a[0]`: false, `.a[1:2]`: false, `.a |= .b`: false,
		`isempty(.a[])`: false, `.tags | index("x")`: false,
	} {
		doc := base(t, "routing")
		doc["nodes"].([]any)[2].(map[string]any)["config"].(map[string]any)["cases"].([]any)[0].(map[string]any)["when"] = program
		_, _, findings := compileValue(t, doc)
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
		if _, p, findings := compileValue(t, doc); p == nil || codes(findings) != want {
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
		{prompt(`"About ${ .x"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{prompt(`"About ${ .x | }"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{prompt(`"About ${ nosuch(1) }"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{prompt(`"About ${}"`), `EXPRESSION_INVALID /nodes/1/config/prompt`},
		{prompt(`"About $${ .x | }"`), ``},
		{prompt(`"It is ${ now | todate }"`), ``},
		{prompt(`"About ${ .state.x }"`), `EXPRESSION_STATE_ROOT /nodes/1/config/prompt`},
		{prompt(`"About {{ .x }} and ${ .y }"`), `TEMPLATE_IS_LITERAL /nodes/1/config/prompt`},
		{prompt(`{"jq":".x |"}`), `EXPRESSION_INVALID /nodes/1/config/prompt/jq`},
		{prompt(`{"jq":".state.x"}`), `EXPRESSION_STATE_ROOT /nodes/1/config/prompt/jq`},
		{prompt(`{"literal":"${ .x |"}`), ``},
		{prompt(`{"jq":".x","more":1}`), `CONFIG_INVALID /nodes/1/config/prompt`},
		{prompt(`{"jq":5}`), `CONFIG_INVALID /nodes/1/config/prompt`},
		{arguments(`{"a":[{"b":"${ .x | }"}]}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/0/b`},
		{arguments(`{"a":{"jq":"nosuch"}}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/jq`},
		{arguments(`{"a":{"jq":5}}`), `EXPRESSION_INVALID /nodes/4/config/arguments/a/jq`},
		{arguments(`{"a":{"jq":".state.x"},"b":{"jq":"now"}}`), `EXPRESSION_STATE_ROOT /nodes/4/config/arguments/a/jq`},
		{arguments(`{"a":"Hello ${ .x }"}`), `TEMPLATE_IS_LITERAL /nodes/4/config/arguments/a`},
		{arguments(`{"a":{"literal":"Hello ${ .x }"}}`), ``},
		{arguments(`{"jq":"{a: 1"}`), `EXPRESSION_INVALID /nodes/4/config/arguments/jq`},
		{delegate(`"${ .task"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{delegate(`"Do ${ .task }"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{delegate(`"${}"`), `TEMPLATE_IS_LITERAL /nodes/5/config/input_mapping/task`},
		{delegate(`" ${ .task } "`), ``},
		{delegate(`"${ .state.task }"`), `EXPRESSION_STATE_ROOT /nodes/5/config/input_mapping/task`},
		{delegate(`{"jq":"now"}`), ``},
		{delegate(`{"literal":"${ .x"}`), ``},
		{delegate(`"${ .a } and ${ .b }"`), `EXPRESSION_INVALID /nodes/5/config/input_mapping/task`},
		{delegate(`{"jq":5}`), `EXPRESSION_INVALID /nodes/5/config/input_mapping/task`},
	} {
		_, p, findings := compileValue(t, patch(t, base(t, "routing"), tt.patch))
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
		_, p, findings := compileValue(t, patch(t, base(t, tt.base), "set "+pointer+` "5s"`))
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
	d, err := definition.Parse([]byte(strings.Replace(string(mustRead(t, "testdata/bases/linear.json")),
		`"config": { "handler": "greet" }`, "\"config\": { \"handler\": \"greet\",\n\"timeout\": \"2s\" }", 1)))
	if err != nil {
		t.Fatal(err)
	}
	_, findings := definition.Compile(d, definition.Options{})
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
		_, p, findings := compileValue(t, patch(t, base(t, tt.base), "set /nodes/1/metadata {\""+tt.member+"\":{}}"))
		switch {
		case p == nil, tt.hint == "" && len(findings) > 0:
			t.Errorf("%s of %s:\n%s", tt.member, tt.base, list(findings))
		case tt.hint == "":
		case len(findings) != 1 || findings[0].Code != problem.FieldIgnored || findings[0].At.Pointer != "/nodes/1/metadata/"+tt.member || !strings.Contains(findings[0].Hint, tt.hint):
			t.Errorf("%s of %s: got\n%s", tt.member, tt.base, list(findings))
		}
	}
}

// prompt and arguments change nodes whose texts are filled in.
func prompt(value string) string {
	return "set /nodes/1/config/prompt " + value + "\nset /nodes/1/metadata {\"prompt_templates\":true}"
}

func arguments(value string) string {
	return "set /nodes/4/config/arguments " + value + "\nset /nodes/4/metadata {\"argument_templates\":true}"
}

func delegate(task string) string {
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
		_, p, findings := compileValue(t, patch(t, base(t, "compute"), schema+`set /nodes/3/config/assignments {"`+tt.key+`":{"literal":`+tt.literal+`}}`))
		got := ""
		for _, f := range findings {
			got += f.Message
		}
		if p == nil || got != tt.want {
			t.Errorf("%s = %s: got %q, want %q", tt.key, tt.literal, got, tt.want)
		}
	}
	for _, tt := range []struct{ property, want string }{
		{`{"type":"string","reducer":"append"}`, "REDUCER_TYPE"},
		{`{"type":["string","array"],"reducer":"append"}`, ""},
		{`{"reducer":"append"}`, ""},
		{`{"type":"array","reducer":"merge"}`, "REDUCER_TYPE"},
		{`{"type":"object","reducer":"merge"}`, ""},
		{`{"type":"string","reducer":"overwirte"}`, "REDUCER_UNKNOWN"},
		{`{"type":"string","reducer":null}`, ""},
		{`{"type":"string","nullable":true}`, "SCHEMA_PORTABILITY"},
		{`{"type":"string","reducer":"custom","pattern":"("}`, "STATE_SCHEMA_INVALID REDUCER_CUSTOM"},
	} {
		_, _, findings := compileValue(t, patch(t, base(t, "linear"), `set /state_schema/properties/p `+tt.property))
		if got := strings.Split(codes(findings), " "); !sameLines(got, strings.Split(tt.want, " ")) {
			t.Errorf("%s: got %v, want %q", tt.property, got, tt.want)
		}
	}
}

func TestNumberWarnings(t *testing.T) {
	t.Parallel()
	for text, warned := range map[string]bool{
		"9007199254740993": true, "12345678901234567890": true, "0.1000000000000000055": true, "1e-400": true, "123456789.123456789": true,
		"-9007199254740993": true,
		"9007199254740992":  false, "100000000000000000000": false, "1.10": false, "1e2": false, "1E21": false, "-0.0": false, "0e5": false,
		"0.1": false, "5e-324": false, "1.7976931348623157e308": false, "0.00000010": false, "10.0e-1": false,
	} {
		d, err := definition.Parse([]byte(strings.Replace(string(mustRead(t, "testdata/bases/linear.json")),
			`"config": { "handler": "greet" }`, `"config": { "handler": "greet", "n": [`+text+`] }`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		_, findings := definition.Compile(d, definition.Options{})
		if got := codes(findings) == string(problem.NumberPrecision); got != warned {
			t.Errorf("%s: got\n%s", text, list(findings))
		}
	}
}

func TestCheckpointing(t *testing.T) {
	t.Parallel()
	every := func(n int) definition.CheckpointPolicy {
		return definition.CheckpointPolicy{Enabled: true, Every: n, Interval: true}
	}
	each := definition.CheckpointPolicy{Enabled: true, Every: 1}
	none := definition.CheckpointPolicy{Every: 1}
	for _, tt := range []struct {
		block string
		want  definition.CheckpointPolicy
		codes string
	}{
		{`{}`, each, ``},
		{`{"strategy":""}`, each, ``},
		{`{"strategy":" after_each_node "}`, each, ``},
		{`{"strategy":"every_n_nodes","n":3}`, every(3), ``},
		{`{"strategy":"interval","interval":4}`, every(4), ``},
		{`{"strategy":"interval","n":2,"interval":4}`, every(2), `FIELD_IGNORED`},
		{`{"policy":"every_n_nodes","n":1e300}`, every(1<<31 - 1), ``},
		{`{"strategy":"","policy":"disabled"}`, each, `FIELD_IGNORED`},
		{`{"strategy":"disabled"}`, none, ``},
		{`{"policy":"off"}`, none, ``},
		{`{"strategy":"none","n":3}`, none, `FIELD_IGNORED`},
	} {
		_, p, findings := compileValue(t, patch(t, base(t, "linear"), `set /checkpointing `+tt.block))
		if p == nil || p.Checkpoint != tt.want || codes(findings) != tt.codes {
			t.Errorf("%s: got %+v\n%s", tt.block, p, list(findings))
		}
	}
	for _, block := range []string{`{"strategy":"Disabled"}`, `{"strategy":"every_n_nodes"}`, `{"policy":"sometimes"}`} {
		if _, p, findings := compileValue(t, patch(t, base(t, "linear"), `set /checkpointing `+block)); p != nil ||
			codes(findings) != string(problem.CheckpointPolicyInvalid) {
			t.Errorf("%s: got\n%s", block, list(findings))
		}
	}
}

// TestProblemsStayAtTheirPlace shows that what a run can avoid is kept in the program and fails its node.
func TestProblemsStayAtTheirPlace(t *testing.T) {
	t.Parallel()
	_, p, findings := compileValue(t, patch(t, base(t, "routing"), `
		set /nodes/2/config/cases/1/when ".["
		set /nodes/2/config/cases/1/target "nobody"
		set /nodes/3/config/resume_schema {"type":"objekt"}
		set /nodes/5/timeout "soon"
		set /nodes/5/retry {"max_attempts":2,"initial_interval":"later"}
		set /edges/5/target "nowhere"`))
	if p == nil {
		t.Fatalf("refused\n%s", list(findings))
	}
	when := p.Node("route").Switch.Cases[1]
	if _, err := when.When.EvalAt(map[string]any{}, expr.Env{}); !errors.Is(err, problem.ExpressionInvalid) {
		t.Errorf("the bad condition gives %v", err)
	}
	if when.Target != "nobody" || p.Node("nobody") != nil {
		t.Errorf("the target is %q", when.Target)
	}
	search := p.Node("search")
	if !errors.Is(search.TimeoutErr, problem.DurationInvalid) || search.Retry.Err == nil || search.Next != nil ||
		!errors.Is(search.NextErr, problem.UnknownNode) {
		t.Errorf("got %+v", search)
	}
	if err := p.Node("review").Interrupt.ResumeSchemaErr; !errors.Is(err, problem.SchemaInvalid) {
		t.Errorf("the bad schema gives %v", err)
	}
}

// TestMisspeltMembersOfTheConfig: where any member is allowed, one that is nearly the name of another is warned of, and no other.
func TestMisspeltMembersOfTheConfig(t *testing.T) {
	t.Parallel()
	for member, near := range map[string]string{"modle": "model", "system_promt": "system_prompt", "max_token": "max_tokens", "prompt": "", "style": "", "audience": ""} {
		doc, err := definition.Parse([]byte(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"w","version":"1"},"state_schema":{"type":"object"},
			"nodes":[{"id":"s","type":"start"},{"id":"c","type":"llm_call","config":{"model":"m","` + member + `":"x"}},{"id":"e","type":"end"}],
			"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"c"},{"source":"c","target":"e"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		_, findings := definition.Compile(doc, definition.Options{})
		if warned := len(findings) > 0; warned != (near != "") || warned && !strings.Contains(findings[0].Hint, near) {
			t.Errorf("%s: %+v", member, findings)
		}
	}
}

// TestAnLLMCallMayNameAnAgent: then it needs no model, else one or a list; its answer is checked all the same, and a name that is none is warned of.
func TestAnLLMCallMayNameAnAgent(t *testing.T) {
	t.Parallel()
	for config, warns := range map[string]string{
		`{"agent":"clerk","output_schema":{"type":"object"}}`: "", `{"agent":"clerk","model":"m"}`: "", `{"agent":" "}`: "agent is the name", `{"agent":7,"model":"m"}`: "agent is the name",
		`{"agent":"clerk","model":7}`: "needs the name of a model", `{"agnet":"clerk","model":"m"}`: "nothing reads agnet", `{}`: "needs the name of a model",
		`{"model":["a","b"]}`: "", `{"model":[]}`: "needs the name of a model", `{"model":["a"," "]}`: "needs the name of a model", `{"agent":"clerk","model":["a"]}`: "needs the name of a model",
	} {
		doc, err := definition.Parse([]byte(`{"document":{"schema":"https://agent-workflow.dev/schemas/workflow-definition.json","name":"w","version":"1"},"state_schema":{"type":"object"},
			"nodes":[{"id":"s","type":"start"},{"id":"c","type":"llm_call","config":` + config + `},{"id":"e","type":"end"}],
			"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"c"},{"source":"c","target":"e"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		p, findings := definition.Compile(doc, definition.Options{})
		if warned := len(findings) > 0; warned != (warns != "") || warned && !strings.Contains(findings[0].Message, warns) {
			t.Errorf("%s: %+v", config, findings)
		}
		if p != nil && strings.Contains(config, "output_schema") && p.Node("c").Activity.OutputSchema == nil {
			t.Errorf("%s: the answer is not checked", config)
		}
	}
}

// TestBranchesThatBeginAlike: a branch that begins where another one does is warned of if its name is another node's. Several branches
// may do the same on purpose.
func TestBranchesThatBeginAlike(t *testing.T) {
	t.Parallel()
	const text = `{"document":{"schema":"s","name":"n","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},
		{"id":"p","type":"parallel","config":{"join":"all","branches":[{"name":"left","entry":"left"},{"name":"SECOND","entry":"ENTRY"},{"name":"right","entry":"right"}]}},
		{"id":"left","type":"step","config":{"handler":"h"}},{"id":"right","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],
		"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"p"},{"source":"p","target":"e"},{"source":"left","target":"e"},{"source":"right","target":"e"}]}`
	for _, tt := range []struct{ second, entry, hint string }{
		{"again", "left", ""},
		{"left2", "left", ""},
		{"rigth", "left", `did you mean "right"?`},
		{"other", "right", ""},
	} {
		d, err := definition.Parse([]byte(strings.NewReplacer("SECOND", tt.second, "ENTRY", tt.entry).Replace(text)))
		if err != nil {
			t.Fatal(err)
		}
		_, findings := definition.Compile(d, definition.Options{})
		if tt.hint == "" && len(findings) > 0 ||
			tt.hint != "" && (len(findings) != 1 || findings[0].Code != problem.ParallelEntry || findings[0].Hint != tt.hint) {
			t.Errorf("%+v: got\n%s", tt, list(findings))
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
		_, _, findings := compileValue(t, doc)
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
