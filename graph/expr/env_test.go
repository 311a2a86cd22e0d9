package expr_test

import (
	"errors"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestAnEvaluationIsAbandoned: whatever a program does, it ends soon after Stop says so, and cannot catch that.
func TestAnEvaluationIsAbandoned(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`repeat(1) | empty`,
		`try repeat(1) catch 2 | empty`,
		`def f: (try error catch f)?; f // f`,
		`[range(1e5)] - [range(1e5)]`,
		`reduce range(40) as $i (0; [., .]) | tojson`,
		`("a" * 1e4) as $s | [range(1e5) | $s | explode | length]`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		looks, spent := 0, 0
		v, err := p.EvalAt(nil, expr.Env{Spent: &spent, Stop: func() bool { looks++; return looks >= 10 }})
		if _, ok := problem.As(err); err != expr.ErrAbandoned || ok || v != nil {
			t.Errorf("%s: %v, %v", src, v, err)
		}
		if looks != 10 {
			t.Errorf("%s: stopped after %d looks", src, looks)
		}
		if spent < 500 || spent > 50*expr.UnitsPerMillisecond {
			t.Errorf("%s: %d units", src, spent)
		}
	}
}

// TestAbandonedIsNoFailure: mappings and templates pass it on as it is.
func TestAbandonedIsNoFailure(t *testing.T) {
	t.Parallel()
	env := expr.Env{Stop: func() bool { return true }}
	m, problems := expr.CompileMapping(map[string]any{"x": "${ last(range(1e6)) }"})
	if problems != nil {
		t.Fatal(problems)
	}
	if _, err := m.EvalAt(nil, env); err != expr.ErrAbandoned {
		t.Errorf("mapping: %v", err)
	}
	template, err := expr.ParseTemplate("a ${ last(range(1e6)) } b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.EvalAt(func() map[string]any { return nil }, env); err != expr.ErrAbandoned {
		t.Errorf("template: %v", err)
	}
}

// TestCostIsTold: it is the same each time, grows with the work, and is told of failures too.
func TestCostIsTold(t *testing.T) {
	t.Parallel()
	cost := func(src string) (spent int) {
		t.Helper()
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = p.EvalAt(nil, expr.Env{Spent: &spent}); err != nil && !errors.Is(err, problem.ExpressionFailed) {
			t.Fatalf("%s: %v", src, err)
		}
		return spent
	}
	least := cost(`.`)
	if least < 1 || least > 100 {
		t.Errorf("the shortest program costs %d units", least)
	}
	for _, pair := range [][2]string{
		{`[range(100)] | length`, `[range(1000)] | length`},
		{`"x" * 1e5 | explode | length`, `"x" * 1e6 | explode | length`},
		{`[range(1000)] | sort | error`, `[range(10000)] | sort | error`},
	} {
		few, many := cost(pair[0]), cost(pair[1])
		if many < 8*few || few != cost(pair[0]) {
			t.Errorf("%s costs %d units, then %d, and %s %d", pair[0], few, cost(pair[0]), pair[1], many)
		}
	}
}
