package definition_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func codes(findings problem.Findings) string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Code))
	}
	return strings.Join(out, " ")
}

func TestReducerWarnings(t *testing.T) {
	t.Parallel()
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

// TestAnLLMCallMayNameAnAgent: then it needs no model, else one or a list; its answer is checked all the same, and a name that is none is warned of.
func TestAnLLMCallMayNameAnAgent(t *testing.T) {
	t.Parallel()
	for config, warns := range map[string]string{
		`{"agent":"clerk","output_schema":{"type":"object"}}`: "", `{"agent":"clerk","model":"m"}`: "", `{"agent":" "}`: "agent is the name", `{"agent":7,"model":"m"}`: "agent is the name",
		`{"agent":"clerk","model":7}`: "needs the name of a model", `{}`: "needs the name of a model",
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
