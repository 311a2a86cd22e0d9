package expr_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// farLookups are programs that read a variable or a parameter N times, from within as many calls as DEEP says.
var farLookups = []string{
	`1 as $v | def g: if . > DEEP then last(range(N) | $v) else . + 1 | first(g) end; 0 | g`,
	`1 as $v | def h(k): [k][0]; def g: if . > DEEP then last(range(N) | $v) else . + 1 | h(g) end; 0 | g`,
	`1 as $v | def s: $v; def g: if . > DEEP then last(range(N) | s) else . + 1 | first(g) end; 0 | g`,
	`1 as $v | def s: $v; def r: s; def g: if . > DEEP then last(range(N) | r) else . + 1 | first(g) end; 0 | g`,
	`1 as $v | def g: def h: if . > DEEP then last(range(N) | $v) else . + 1 | g end; h; 0 | g`,
	`def o($v): def g: if . > DEEP then last(range(N) | $v) else . + 1 | first(g) end; g; 0 | o(1)`,
	`def o(v): def g: if . > DEEP then last(range(N) | v) else . + 1 | first(g) end; g; 0 | o(1)`,
	`[1] as [$v] | def g($x): if $x > DEEP then last(range(N) | {$v}) else first(g($x + 1)) end; g(0) | .v`,
	`reduce 1 as $v (0; def g: if . > DEEP then last(range(N) | $v) else . + 1 | first(g) end; g)`,
	`1 as $v | def g: def h: def i: if . > DEEP then last(range(N) | $v) else . + 1 | first(h) end; first(i); first(h); 0 | g`,
	`1 as $v | def g(k): if . > DEEP then last(range(N) | k) else . + 1 | g($v | k) end; 0 | g($v)`,
}

// deep are the programs with numbers in them.
func deep(calls, lookups int) (programs []string) {
	for _, text := range farLookups {
		programs = append(programs, strings.NewReplacer("DEEP", fmt.Sprint(calls), "N", fmt.Sprint(lookups)).Replace(text))
	}
	return programs
}

// TestFarLookupsCostTheirWay: the interpreter passes every unfinished call on its way to a variable, and that is counted.
func TestFarLookupsCostTheirWay(t *testing.T) {
	t.Parallel()
	const n = 200
	for i := range farLookups[:len(farLookups)-1] { // the last one is a chain of parameters, each call of which is a step
		cost := func(calls, lookups int) int {
			src := deep(calls, lookups)[i]
			p, err := expr.Compile(src)
			if err != nil {
				t.Fatal(err)
			}
			units, err := expr.Cost(p, nil)
			if err != nil {
				t.Fatalf("%s: %v", src, err)
			}
			return units
		}
		near, far := cost(2, n)-cost(2, 1), cost(2000, n)-cost(2000, 1)
		if far-near < (n-1)*2000/8 {
			t.Errorf("%s: %d lookups from afar cost %d units, near by %d", farLookups[i], n, far, near)
		}
	}
	for _, src := range []string{
		`1 as $v | ` + strings.Repeat("first(", 2000) + `last(range(200) | $v)` + strings.Repeat(")", 2000),
		`1 as $v | def a0: last(range(200) | $v); ` + chain(2000) + ` a2000`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if units, err := expr.Cost(p, nil); err != nil || units < 200*2000/8 {
			t.Errorf("%.60s…: %d units, %v", src, units, err)
		}
	}
}

// chain is a definition for each function a1 to an, which calls the one before it.
func chain(n int) string {
	var defs strings.Builder
	for i := range n {
		fmt.Fprintf(&defs, "def a%d: a%d; ", i+1, i)
	}
	return defs.String()
}

// TestNearLookupsCostNothing: programs without long ways are as they would be without the counting.
func TestNearLookupsCostNothing(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`.items as $all | def total: if type == "array" then map(total) | add else .k end; $all | total`,
		`. as $root | def get(k): $root | k; [get(.n), get(.s)] | map(. as $x | [$x, $root.n])`,
		`def walk2(f): def visit: if type == "array" then [.[] | visit] else . end | f; visit; .m | walk2(.)`,
		`5 as $v | def count: if . >= $v then . else . + 1 | count end; 0 | count`,
	} {
		if far, err := expr.FarLookups(src); err != nil || far > 0 {
			t.Errorf("%s: %d far lookups, %v", src, far, err)
		}
	}
	if far := expr.FarLookupsOfPrelude(); far > 0 {
		t.Errorf("the prelude has %d far lookups", far)
	}
}

// TestRandomRecursionsAreTheInterpreters: functions that call themselves, with variables from outside, arguments, caught
// errors, labels and several outputs, have the same outputs as with the interpreter alone.
func TestRandomRecursionsAreTheInterpreters(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(9, 10))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	var body func(depth int) string
	body = func(depth int) string {
		if depth == 0 {
			return pick(`.`, `$v`, `$w`, `.[1]`, `k`, `k`, `empty`, `break $out`, `error($w)`, `again`, `again`, `again`, `other`, `[again]`, `g(k)`, `g($v)`)
		}
		l, r := body(depth-1), body(depth-1)
		return pick("("+l+" | "+r+")", "("+l+", "+r+")", "("+l+" // "+r+")", "first("+l+")", "limit(2; "+l+")", "(try ("+l+") catch "+r+")",
			"(label $out | "+l+")", "("+l+")?", "(reduce ("+l+") as $w (0; "+r+"))", "(foreach ("+l+") as [$w] (.; "+r+"))", "isempty("+l+")",
			"(["+l+"] | map("+r+"))", "("+l+" as $w | "+r+")", "{$v, x: ["+l+"]}", "([.[]?] | any("+l+"; "+r+"))", "("+l+" as [$w] ?// $w | "+r+")",
			"(def other: "+l+"; "+r+")", "(def g(k): "+l+"; "+r+")", "(def again: other; "+r+")", "g("+l+")", "\"\\("+l+")\\("+r+")\"", "path(..)", "(. + ["+l+"])?")
	}
	agreed, far := 0, 0
	programs := soak.Size(200, 100, 8000)
	for range programs {
		round := `if (.[0] // 0) > ` + pick("1", "2", "20") + ` then [.[0], $v] else [(.[0] // 0) + 1, $w] | `
		src := `label $out | 7 as $v | [8] as [$w] | def other: $w; def g(k): k; def f(k): def again: if type != "array" then . else first(f(k)) end; ` +
			round + body(1+random.IntN(3)) + ` end; [limit(20; [0, 9] | f($v))]`
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		got, gotErr := p.EvalLimits(nil, expr.Limits{Cost: 100_000})
		if e := expr.ErrorCode(gotErr); e == "EXPRESSION_LIMIT_EXCEEDED" {
			continue
		}
		want, wantErr := expr.Interpreter(src, map[string]any{})
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !jsonvalue.Equal(got, want) {
			t.Fatalf("%s: %s, %v; the interpreter gives %s, %v", src, jsonvalue.Canonical(got), gotErr, jsonvalue.Canonical(want), wantErr)
		}
		agreed++
		if n, err := expr.FarLookups(src); err == nil && n > 0 {
			far++
		}
	}
	if agreed < programs/2 || far < programs/4 {
		t.Errorf("only %d programs ended, %d of them with far lookups", agreed, far)
	}
}

// TestFarLookupsAreTheInterpreters: the programs that are charged for far lookups have the same outputs.
func TestFarLookupsAreTheInterpreters(t *testing.T) {
	t.Parallel()
	for _, src := range append(deep(30, 3),
		`label $out | 1 as $v | def g: if . > 30 then range(3) | $v, break $out else . + 1 | first(g) end; 0 | g`,
		`1 as $v | def f: 2; def g: if . > 30 then [$v, f] else . + 1 | first(g) end; def f($x): 3; [0 | g, f, f(1)]`,
		`1 as $v | def g: if . > 30 then $v else . + 1 | first(g) end; def g($x): $x; [(0 | g), g(5)]`,
		`def o(v): def g: if . > 30 then path(v) else . + 1 | first(g) end; g; {a: 1} as $s | 0 | o($s | .a)?`,
		`1 as $v | def g($n; k): if $n > 30 then k, $v else first(g($n + 1; k | . + $v)) end; [g(0; $v)]`,
	) {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		got, gotErr := p.Eval(nil)
		want, wantErr := expr.Interpreter(src, map[string]any{})
		if (gotErr != nil) != (wantErr != nil) || gotErr == nil && !jsonvalue.Equal(got, want) {
			t.Errorf("%s: %s, %v; the interpreter gives %s, %v", src, jsonvalue.Canonical(got), gotErr, jsonvalue.Canonical(want), wantErr)
		}
	}
}
