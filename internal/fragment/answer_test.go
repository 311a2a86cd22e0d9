package fragment_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

type values = map[string][]string

func shown(v any) any { return v }

func canonical(v any) string { return string(jsonvalue.Canonical(v)) }

// asking returns the wait of an agent that wants calls approved.
func asking(calls []agentsteps.Ask) *view.Pending {
	var list []any
	for _, c := range calls {
		list = append(list, map[string]any{"key": c.Key, "tool": c.Tool, "digest": c.Digest})
	}
	return &view.Pending{WaitInfo: machine.WaitInfo{Kind: machine.WaitInterrupt, Show: map[string]any{"about": "approval", "calls": list}}}
}

// TestDecisions: each of an agent's calls has its own decision, bound to the arguments that were shown.
func TestDecisions(t *testing.T) {
	t.Parallel()
	calls := []agentsteps.Ask{{Key: "t1.c1", Tool: "pay", Digest: "d1"}, {Key: "t1.c2", Tool: "mail"}, {Key: "t1.c3", Tool: "call"}, {Key: "t1.c4", Tool: "log"}}
	payload, mistakes := fragment.AnswerOf(asking(calls), shown, values{
		"d0": {"approve"}, "t0": {"ignored"}, "d1": {"deny"}, "t1": {"not now"}, "d2": {"edit"}, "a2": {`{"to":"kim"}`}, "d3": {"respond"}, "t3": {"done by hand"},
	})
	want := `{"calls":{"t1.c1":{"decision":"approve","digest":"d1"},"t1.c2":{"decision":"deny","reason":"not now"},` +
		`"t1.c3":{"arguments":{"to":"kim"},"decision":"edit"},"t1.c4":{"decision":"respond","result":"done by hand"}}}`
	if got := canonical(payload); got != want || len(mistakes) != 0 {
		t.Errorf("decided %s, %v", got, mistakes)
	}
	payload, _ = fragment.AnswerOf(asking(calls[:2]), shown, values{"all": {"deny"}, "reason": {"no"}, "d0": {"deny"}})
	if got := canonical(payload); got != `{"calls":{"t1.c1":{"decision":"deny","digest":"d1","reason":"no"},"t1.c2":{"decision":"deny","reason":"no"}}}` {
		t.Errorf("decided %s", got)
	}
	_, mistakes = fragment.AnswerOf(asking(calls), shown, values{"d0": {"edit"}, "a0": {"{"}, "d1": {"respond"}, "d2": {"sing"}})
	for _, field := range []string{"a0", "t1", "d2", "d3"} {
		if mistakes[field] == "" {
			t.Errorf("no mistake at %s: %v", field, mistakes)
		}
	}
}

// TestContradictions: a button does not override what was chosen or typed for a call, and a key sends nothing.
func TestContradictions(t *testing.T) {
	t.Parallel()
	calls := []agentsteps.Ask{{Key: "c1", Tool: "pay"}, {Key: "c2", Tool: "mail"}}
	for name, c := range map[string]struct {
		values  values
		mistake string // "" for none
	}{
		"none":                         {values{"all": {"approve"}, "t0": {" "}, "a0": {"{}"}}, ""},
		"the same":                     {values{"all": {"approve"}, "d0": {"approve"}}, ""},
		"denied":                       {values{"all": {"approve"}, "d1": {"deny"}}, "d1"},
		"edited":                       {values{"all": {"approve"}, "d0": {"edit"}, "a0": {`{"to":"kim"}`}}, "d0"},
		"a reason alone":               {values{"all": {"approve"}, "t1": {"too much"}}, "t1"},
		"arguments alone":              {values{"all": {"approve"}, "a1": {`{"to":"kim"}`}}, "a1"},
		"arguments of an approval":     {values{"d0": {"approve"}, "a0": {`{"to":"kim"}`}, "d1": {"deny"}}, "a0"},
		"broken arguments of approval": {values{"d0": {"approve"}, "a0": {`{`}, "d1": {"deny"}}, "a0"},
		"arguments of a denial":        {values{"d0": {"deny"}, "a0": {`{"to":"kim"}`}, "d1": {"deny"}}, ""},
		"a key":                        {values{"d0": {"deny"}, "d1": {"deny"}, fragment.KeyField: {"yes"}}, fragment.KeyField},
	} {
		payload, mistakes := fragment.AnswerOf(asking(calls), shown, c.values)
		if (payload == nil) != (c.mistake != "") || c.mistake != "" && mistakes[c.mistake] == "" || c.mistake == "" && len(mistakes) > 0 {
			t.Errorf("%s: %s, %v", name, canonical(payload), mistakes)
		}
	}
	for _, values := range []values{{"f0": {"x"}, fragment.KeyField: {"yes"}}, {fragment.JSONField: {"{}"}, fragment.KeyField: {"yes"}}} {
		if payload, mistakes := fragment.PayloadOf(nil, values); payload != nil || mistakes[fragment.KeyField] == "" {
			t.Errorf("a key sends %v", payload)
		}
	}
}

// TestTypedTextsStay: a text that comes back to be corrected is the one that was typed, and acts on no other part of the page.
func TestTypedTextsStay(t *testing.T) {
	t.Parallel()
	p := &view.Pending{ID: "r:ask#1", ExecutionID: "r", ResumeSchema: map[string]any{"type": "object", "properties": map[string]any{
		"short": map[string]any{"type": "string", "maxLength": 20.0}, "long": map[string]any{"type": "string", "maxLength": 5000.0},
	}}}
	field := regexp.MustCompile(`(?s)<input id="(f\d)"[^>]* value="([^"]*)"|<textarea id="(f\d)"[^>]*>\n(.*?)</textarea>`)
	for _, typed := range []string{"\u05e9\u05dc\u05d5\u05dd\u200f!", "\u202ex\u2066", "\nsecond line\n", "a\u200db", "bell\x07", `</textarea>"><script>`, "&amp;lt;", "\u2028"} {
		filled := &fragment.Filled{Values: map[string][]string{"f0": {typed}, "f1": {typed}}}
		page, err := fragment.Render(fragment.AskOf(p, func(v any) any { return v }, fragment.Post{}, filled))
		if err != nil {
			t.Fatal(err)
		}
		found := field.FindAllStringSubmatch(string(page), -1)
		if len(found) != 2 || strings.ContainsFunc(string(page), jsonvalue.IsControl) || strings.Contains(string(page), "<script") {
			t.Fatalf("%q is shown as %s", typed, page)
		}
		for _, m := range found {
			if text := html.UnescapeString(m[2] + m[4]); text != typed {
				t.Errorf("%q comes back as %q in %s", typed, text, m[1]+m[3])
			}
		}
	}
}
