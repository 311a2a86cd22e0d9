package expr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// nested is a text around another, n times.
func nested(n int, before, inside, after string) string {
	return strings.Repeat(before, n) + inside + strings.Repeat(after, n)
}

// labels are n labels, functions n definitions of which each calls the one inside it.
func labels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "label $l%d | ", i)
	}
	return b.String()
}

func functions(n int, inside string) string {
	b := inside
	for i := range n {
		b = fmt.Sprintf("def a%d: %s; a%d", i, b, i)
	}
	return b
}

// doubled is a chain of n functions of which each leaves twice as much behind as the one before it.
func doubled(n int) string {
	b := "def g0: 1, 2; "
	for i := range n {
		b += fmt.Sprintf("def g%d: g%d | g%d; ", i+1, i, i)
	}
	return b + fmt.Sprintf("last(g%d)", n)
}

// large are programs whose calls keep much each, and about how many bytes the interpreter keeps in the time of a step.
var large = []string{
	`def f: f` + strings.Repeat(",1", 1000) + `; f`,
	`def f: ` + nested(10, "[", "f", "]") + `; f`,
	`def f: ` + nested(300, "[", "f", "]") + `; f`,
	`def f: ` + nested(300, "{a: ", "f", "}") + `; f`,
	`def f: ` + nested(200, "try (", "f", ")") + `; f`,
	`def f: ` + nested(1000, "(", "f", " // 1)") + `; f`,
	`def f: ` + nested(300, "first(", "f", ")") + `; f`,
	`def f: ` + nested(200, "limit(1; ", "f", ")") + `; f`,
	`def f: ` + nested(100, "reduce (1, 2) as $x (0; ", "f", ")") + `; f`,
	`def f: ` + nested(100, "foreach (1, 2) as $x (0; ", "f", "; .)") + `; f`,
	`def f: ` + labels(1000) + `f; f`,
	`def f: ` + functions(100, "f") + `; f`,
	`def f: ` + strings.Repeat("(., .) | ", 100) + `f; f`,
	`def f: ` + strings.Repeat("(1, 2) as $x | ", 100) + `f; f`,
	`def f: {` + strings.Repeat("a: 1, ", 500) + `x: f}; f`,
	`def r(g): g | r(g); r(.` + strings.Repeat(", .", 1000) + `)`,
	`last(recurse(.` + strings.Repeat(", .", 1000) + `))`,
	doubled(22),
	`def t(g): g | g | g; last(` + nested(13, "t(", "(1, 2)", ")") + `)`,
	`def a: ` + strings.Repeat("(1, 2) | ", 30) + `1; last(` + strings.Repeat("a | ", 5000) + `1)`,
	`reduce range(5000) as $i (0; [., 1]) | . as $d | def f: ($d | .. | select(. == 0)) | f; f`,
	`reduce range(9000) as $i (0; [., 1]) | . as $d | [range(100) | $d | last(tostream)] | length`,
}

// TestFramesGrowWithTheBody: a call is charged for all that it keeps. That costs memory long before it costs steps.
func TestFramesGrowWithTheBody(t *testing.T) {
	t.Parallel()
	for _, src := range large {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units := 0
		_, err = p.EvalWith(nil, expr.Env{Spent: &units}, expr.Limits{Memory: 8 << 20})
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Message, "calls itself too deeply") {
			t.Errorf("%.60s…: %v", src, err)
		}
		if units > 600_000 {
			t.Errorf("%.60s…: %d units", src, units)
		}

	}
}

// TestFramesLeaveRoom: functions that call themselves for each part of a large value stay within the limits.
func TestFramesLeaveRoom(t *testing.T) {
	t.Parallel()
	state := bigState(1 << 20)
	for _, src := range []string{
		`def total: if type == "array" then map(total) | add else .score end; .items | total`,
		`def visit(f): if type == "object" then map_values(visit(f)) elif type == "array" then map(visit(f)) else f end; visit(.) | length`,
		`def size: if type == "array" or type == "object" then [.[] | size] | add // 0 else 1 end; size`,
		`def norm: (.title // .id) as $t | try ($t | ascii_downcase) catch "" | select(. != ""); [.items[] | norm] | length`,
		`def down: if . == 0 then 0 else . - 1 | down | . + 1 end; 20000 | down`,
		`[.items[] | [..] | length] | add`,
		`[.items[] | walk(.)] | length`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Eval(state); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}
