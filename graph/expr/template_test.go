package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestTemplate(t *testing.T) {
	t.Parallel()
	state := map[string]any{"name": "Ada", "list": []any{1.0, "x"}, "none": nil}
	for text, want := range map[string]string{
		"":                            "",
		"plain $5 {x}":                "plain $5 {x}",
		"Hello ${ .name }!":           "Hello Ada!",
		"${.list}${.none}${.name}":    `[1,"x"]Ada`,
		"$${ .name } $$${":            "${ .name } $${",
		`${ "}" + "\(.name + "{")" }`: "}Ada{",
		"${ {a: .name} | .a }":        "Ada",
		"${ .list | map(tostring) | join(\", \")}": "1, x",
	} {
		template, err := expr.ParseTemplate(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := template.EvalAt(func() map[string]any { return state }, expr.Env{})
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	holes, err := expr.ParseTemplate("Pay ${ .none } to ${ .payee } (${ .name })?")
	if err != nil {
		t.Fatal(err)
	}
	text, shown, err := holes.EvalShown(func() map[string]any { return state }, expr.Env{})
	if err != nil || text != "Pay  to  (Ada)?" || shown != "Pay (nothing) to (nothing) (Ada)?" {
		t.Errorf("with nulls: %q, shown %q, %v", text, shown, err)
	}
	for _, text := range []string{"${", "${ .a", "${}", "${ }", "${ .a | }", "a ${ b } c", "${ ) }", `${ "}`} {
		if _, err := expr.ParseTemplate(text); !errors.Is(err, problem.ExpressionInvalid) {
			t.Errorf("%s: %v", text, err)
		}
	}
	template, err := expr.TemplateProgram(".name | error")
	if err != nil || len(template.Programs()) != 1 {
		t.Fatalf("%v, %v", template, err)
	}
	if _, err := template.EvalAt(func() map[string]any { return state }, expr.Env{}); !errors.Is(err, problem.ExpressionFailed) {
		t.Errorf("a program that fails: %v", err)
	}
}

// FuzzTemplate: an escaped text comes out as it was, and what is parsed has whole programs.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"", "plain", "${ .a }", "$${", "$$${ x", "${ \"}\" }", `${ "\(1 + "}")" }`, "${ {a: [1}] }", `${ "\`, "${", "$", "${}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		escaped, err := expr.ParseTemplate(strings.ReplaceAll(text, "${", "$${"))
		if err != nil {
			t.Fatalf("%q, escaped: %v", text, err)
		}
		if got, err := escaped.EvalAt(nil, expr.Env{}); err != nil || got != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
		template, err := expr.ParseTemplate(text)
		if err != nil {
			return
		}
		for _, program := range template.Programs() {
			if !strings.Contains(text, "${"+program.Source()+"}") {
				t.Errorf("%q has no program %q", text, program.Source())
			}
		}
	})
}
