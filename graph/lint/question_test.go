package lint_test

import (
	"strings"
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
		blind                                bool
	}{
		{"a result of a model", `{type: object}`, `{id: work, type: llm_call, config: {model: m, system_prompt: s}}`, ``, `prompt: "Publish it?", ` + answer, true},
		{"a declared input", `{type: object, properties: {amount: {type: number}}}`, ``, ``, `prompt: "Pay it?", ` + answer, true},
		{"a template without a program", `{type: object, properties: {amount: {type: number}}}`, ``, `prompt_templates: true, `, `prompt: "Pay $${ it }?", ` + answer, true},
		{"show", `{type: object, properties: {amount: {type: number}}}`, ``, `show: .amount, `, `prompt: "Pay it?", ` + answer, false},
		{"a template", `{type: object, properties: {amount: {type: number}}}`, ``, `prompt_templates: true, `, `prompt: "Pay ${ .amount }?", ` + answer, false},
		{"nothing but the answer", `{type: object, properties: {ok: {type: boolean}}}`, ``, ``, `prompt: "Shall we begin?", ` + answer, false},
		{"a text of the host", `{type: object, properties: {amount: {type: number}}}`, ``, ``, `prompt_ref: "urn:texts:1", ` + answer, false},
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
		blind := false
		for _, f := range findings {
			if f.Code == problem.QuestionShowsNothing {
				blind = f.At.NodeID == "ask" && f.Severity == problem.SeverityWarning && strings.Contains(f.Hint, "show")
			}
		}
		if blind != c.blind {
			t.Errorf("%s: %v", c.name, findings)
		}
	}
}
