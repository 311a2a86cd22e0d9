package mcpserver_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// TestNobodyAnswersBlind: a form whose author shows nothing has the state that the question is about, without secrets; what the author shows
// is readable; a value that is missing is seen.
func TestNobodyAnswersBlind(t *testing.T) {
	eachRevision(t, []string{lastAsking}, func(t *testing.T, revision string) {
		templates := object{"uses": []any{"templates"}}
		shows := formNode("ask", "Publish?", object{"ok": object{"type": "boolean"}}, "ok")
		shows["show"] = "{title, report}"
		holes := formNode("ask", "Pay ${ .amount } to ${ .payee }?", object{"ok": object{"type": "boolean"}}, "ok")
		holes["prompt_templates"] = true
		for _, c := range []struct {
			node       object
			has, lacks []string
		}{
			{approval, []string{"Refund 10 €?\n\nState of the run:\n", "report:\n  one\n  two", "title: T\n"}, []string{"hunter2", `\n`}},
			{shows, []string{"Publish?\n\ntitle: T\nreport:\n  one\n  two"}, []string{"What the run has", `"report"`}},
			{holes, []string{"Pay (nothing) to Ada?"}, nil},
		} {
			p := says(accepts(object{"approve": true, "ok": true}))
			definition := walk(c.node)
			definition["x-workflows-engine"] = templates
			oneHost(t, revision, elicit.Auto, p).ok("workflow_start", object{"definition": definition,
				"input": object{"title": "T", "report": "one\ntwo", "payee": "Ada", "password": "hunter2"}})
			asked := p.questions()[0]
			for _, want := range c.has {
				if !contains(asked, want) {
					t.Errorf("%q is not in\n%s", want, asked)
				}
			}
			for _, lack := range c.lacks {
				if contains(asked, lack) {
					t.Errorf("%q is in\n%s", lack, asked)
				}
			}
		}
	})
}
