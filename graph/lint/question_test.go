package lint_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestBlindQuestions: a question that takes nothing from the run is warned of where the run has something to show.
func TestBlindQuestions(t *testing.T) {
	t.Parallel()
	const answer = `resume_schema: {type: object, properties: {ok: {type: boolean}}}`
	for _, c := range []struct {
		name, state, before, members, config string
		show                                 string // of the hint, "" without a warning
	}{
		{"a result of a model", `{type: object}`, `{id: work, type: llm_call, config: {model: m, system_prompt: s}}`, ``, `prompt: "Publish it?", ` + answer, "."},
		{"a declared input", `{type: object, properties: {amount: {type: number}}}`, ``, ``, `prompt: "Pay it?", ` + answer, ".amount"},
		{"a property that is no jq name", `{type: object, properties: {ok: {}, "the draft": {type: string}}}`, ``, ``, `prompt: "Pay it?", ` + answer, "."},
		{"a template without a program", `{type: object, properties: {amount: {type: number}}}`, ``, `prompt_templates: true, `, `prompt: "Pay $${ it }?", ` + answer, ".amount"},
		{"show", `{type: object, properties: {amount: {type: number}}}`, ``, `show: .amount, `, `prompt: "Pay it?", ` + answer, ""},
		{"a template", `{type: object, properties: {amount: {type: number}}}`, ``, `prompt_templates: true, `, `prompt: "Pay ${ .amount }?", ` + answer, ""},
		{"nothing but the answer", `{type: object, properties: {ok: {type: boolean}}}`, ``, ``, `prompt: "Shall we begin?", ` + answer, ""},
		{"a text of the host", `{type: object, properties: {amount: {type: number}}}`, ``, ``, `prompt_ref: "urn:texts:1", ` + answer, ""},
	} {
		first, work := "ask", ""
		if c.before != "" {
			first, work = "work", "  - {source: work, target: ask}\n"
			c.before = "  - " + c.before + "\n"
		}
		text := "document: {schema: 'https://agent-workflow.dev/schemas/workflow-definition.json', name: n, version: 1.0.0}\n" +
			"x-workflows-engine: {uses: [templates]}\nstate_schema: " + c.state + "\nnodes:\n  - {id: begin, type: start}\n" + c.before +
			"  - {id: ask, type: interrupt, " + c.members + "config: {" + c.config + "}}\n  - {id: finish, type: end}\nedges:\n" +
			"  - {source: __start__, target: begin}\n  - {source: begin, target: " + first + "}\n" + work + "  - {source: ask, target: finish}\n"
		doc, err := definition.ParseYAML([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		program, findings := lint.Compile(doc, lint.Options{})
		if program == nil {
			t.Fatalf("%s: %v", c.name, findings)
		}
		hint, want := "", ""
		if c.show != "" {
			want = `beside config, add the values that the person must see, such as "show": "` + c.show + `", and "templates" to the uses of x-workflows-engine`
		}
		for _, f := range findings {
			if f.Code == problem.QuestionShowsNothing {
				if hint = f.Hint; f.At.NodeID != "ask" || f.Severity != problem.SeverityWarning {
					t.Errorf("%s: %v", c.name, f)
				}
			}
		}
		if hint != want {
			t.Errorf("%s: hint %q, want %q", c.name, hint, want)
		}
	}
}
