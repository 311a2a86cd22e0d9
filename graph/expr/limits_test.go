package expr_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// endless are programs that would run for ever, or fill the memory, if nothing stopped them (spec: definition, 14.3).
var endless = slices.Concat(large, deep(3000, 200_000), []string{
	// Steps without end.
	`[repeat(1)]`,
	`def f: f; f`,
	`def f: 1 + f; f`,
	`def f: f, f; f`,
	`last(range(1e12))`,
	`reduce range(1e12) as $i (0; . + 1)`,
	`first(range(1e12) | select(. < 0))`,
	`[range(1e9)]`,
	`[recurse([.])]`,
	`[limit(1e9; repeat("x"))] | length`,
	`until(false; .)`,
	`[.[]?, repeat(.)] | length`,
	`label $out | repeat(1) | empty`,

	// Outputs.
	`range(1e6)`,
	`repeat(.)`,

	// Much in one step.
	`"a" * 1e9`,
	`"ab" * 1e12 | length`,
	`[range(1e5)] - [range(1e5)]`,
	`null | .[500000000] = 1`,
	`null | setpath([500000000]; 1)`,
	`reduce range(100) as $i ("ab"; . + .)`,
	`reduce range(100) as $i ([1]; . + .)`,
	`reduce range(100) as $i ("ab"; "\(.)\(.)")`,
	`reduce range(100) as $i ("ab"; [., .] | add)`,
	`reduce range(100) as $i ("ab"; . as $s | [$s, $s] | join($s))`,
	`"<" * 1e7 | @html`,
	`"é" * 5e6 | @uri`,
	`reduce range(100) as $i ("\u0000"; tojson)`,
	`reduce range(100) as $i ("ab"; gsub("(?<x>.)"; .x + .x))`,
	`reduce range(100) as $i ([[1]]; [.[0], .[0]] | [add])`,
	`reduce range(100) as $i ([1, 2]; [., .] | flatten)`,
	`reduce range(100) as $i ({a: "a"}; {"\(.a)\(.a)"} | {a: keys[0]})`,
	`[range(3000)] as $row | [$row, (range(3000) | [])] | transpose | length`,
	`[range(100000) | tostring] as $l | [range(1000) | $l | join("xxxxxxxxxxxxxxxx")] | length`,
	`("a" * 1e6) as $s | [range(1e5) | $s | length] | length`,
	`("a" * 1e6) as $s | [range(1e5) | $s | explode] | length`,
	`("a" * 1e6) as $s | [range(1e5) | $s | test("b")] | length`,
	`("a" * 1e6) as $s | [range(1e5) | $s[1:2]] | length`,
	`[range(1e5)] as $l | [range(1e5) | first($l[])] | length`,
	`[range(1e5)] as $l | [range(1e5) | $l | any] | length`,
	`[range(1e5) | {key: tostring, value: .}] | from_entries as $o | [range(1e5) | $o | keys] | length`,
	`[range(1e4)] as $l | reduce range(1e4) as $i ([]; . + $l) | length`,
	`[range(2e4)] as $l | [range(2e4) | $l | .[0] = 1] | length`,
	`[range(2e4)] as $l | [range(2e4) | $l | del(.[0])] | length`,
	`"1" * 4000 | [range(1e6) | jn(1e7; 1e7 + .)] | length`,
	`("[a-z]{500}" * 200) as $re | [range(100) | "aaa" | test($re + tostring)] | length`,

	// Expressions that read to the end of the text for each match, or in many ways at once.
	`("x" * 200000) | [match("x.*y|x"; "g")] | length`,
	`"a" * 30000 | [match("(a*)*b|a"; "g")] | length`,
	`"a" * 100000 | test("(a?){100}a{100}b")`,
	`"a" * 5000 | [match("(a*)(?=b)|a"; "g")] | length`,
	`("ab" * 300000) | gsub("a"; "b") | length`,
	`"x" * 1000000 | [splits("x")] | length`,

	// Calls that are not finished: their frames are memory.
	`def f: try f catch .; f`,
	`def f: f // f; f`,
	`def f(x): f(x | x); f(.)`,
	`def f: label $x | f; f`,
	`def f: [f]; f`,
	`def f: path(f); f`,
	`def f($a; $b; $c; $d): f($a; $b; $c; $d) + 1; f(1; 2; 3; 4)`,
	`def f: reduce range(3) as $i ([]; . + [f]); f`,
	`def f: "\(f)"; f`,
	`def f: f |= 1; f`,
	`repeat(., .) | empty`,

	// Much that is held at a time.
	`[range(300000) | tostring] | group_by(.) | length`,
	`[range(1000) | [range(1000)]] | flatten | add`,
	`[range(1000)] as $l | [range(1000) | $l] | [paths] | length`,
	`[range(1e6) | {a: 1}] | length`,
	`[range(1e6) | gmtime] | length`,
	`[range(1e5) | tostring] | map({key: ., value: 1}) | from_entries | length`,
	`"x" * 1000000 | explode | implode | length`,
	`("[" * 500 + "]" * 500) as $s | [range(1e5) | $s | fromjson] | length`,

	// Lists and objects that the interpreter makes, and those of its functions that make some.
	`[range(1e9) | [range(100)]] | length`,
	`[range(1e9) | [.]] | length`,
	`[range(1e9) | [., ., ., .]] | length`,
	`[range(1e9) | {a: .}] | length`,
	`[range(1e9) | {a: ., b: 1, c: 1, d: 1, e: 1, f: 1, g: 1, h: 1, i: 1}] | length`,
	`[range(1e9) | tostring] | length`,
	`[range(1e9) | . / 7] | length`,
	`[range(1e9) | toarray] | length`,
	`[range(1e9) | frexp] | length`,
	`[range(1e9) | "2020" | strptime("%Y")] | length`,
	`[range(1e9) | env] | length`,
	`[range(1e9) | [1, 2][0:1]] | length`,
	`reduce range(1e9) as $i ({}; .[$i | tostring] = $i) | length`,
	`reduce range(1e9) as $i ([]; . + [$i]) | length`,
	`reduce range(1e9) as $i ([]; .[$i] = $i) | length`,
	`reduce range(1e9) as $i (""; . + "x") | length`,
	`[[range(4e5)]] | transpose | length`,
	`[range(4e5) | [.]] | add | length`,
	`"x" * 3e6 | [match("x"; "g")] | length`,
	`("x" * 5e6) as $s | [range(100) | $s | tojson] | length`,

	// Comparisons, sorts and errors.
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v == $v)`,
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v | sort)`,
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v | group_by(.))`,
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v | min)`,
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v | index({a: 1}))`,
	`[range(3000) | {a: ., b: "x"}] as $v | last(range(1e9) | $v - ($v | reverse))`,
	`[range(1e4) | {key: tostring, value: .}] | from_entries as $v | last(range(1e9) | $v == $v)`,
	`[range(2e4)] as $v | last(range(1e9) | $v | try from_entries catch 0)`,
	`[range(1e4)] as $v | last(range(1e9) | $v | .[] |= 1)`,
	`last(range(1e9) | try ([.] | tonumber) catch 0)`,
	`last(range(1e9) | try ({a: .} | -.) catch 0)`,

	// Steps that read all of a value.
	`[range(1000)] as $l | [range(1e5) | $l[[1]]] | length`,
	`("a" * 1e6) as $s | [range(1e6) | $s[0]] | length`,
	`("a" * 1e6) as $s | [range(1e6) | $s | first] | length`,
	`[range(1e5)] as $p | [range(1e6) | null | getpath($p)] | length`,
	`[[range(1e5)]] as $l | [range(1e5) | $l | first(combinations)] | length`,
	`("a" * 1e6) as $s | [range(1e5) | try ([] | has($s)) catch length] | length`,
	`[range(1e5) | {key: tostring, value: 1}] | from_entries as $o | [range(1e5) | ($o | -.)?] | length`,

	// Small values that are large once they are written out.
	`reduce range(40) as $i (0; [., .])`,
	`reduce range(40) as $i (0; [., .]) | tojson`,
	`reduce range(40) as $i (0; [., .]) | "\(.)"`,
	`reduce range(40) as $i (0; [., .]) | . == .`,
	`reduce range(40) as $i (0; [., .]) | . < .`,
	`reduce range(40) as $i (0; [., .]) | flatten`,
	`reduce range(40) as $i (0; [., .]) | sort`,
	`reduce range(40) as $i (0; [., .]) | unique`,
	`reduce range(40) as $i (0; [., .]) | group_by(.)`,
	`reduce range(40) as $i (0; [., .]) | min`,
	`reduce range(40) as $i (0; [., .]) | contains([[1]])`,
	`reduce range(40) as $i (0; [., .]) | . as $x | [$x, $x] | index([$x])`,
	`reduce range(40) as $i (0; [., .]) | @csv`,
	`reduce range(40) as $i (0; [., .]) | @html`,
	`reduce range(40) as $i (0; [., .]) | . - .`,
	`reduce range(40) as $i (0; [., .]) | IN([., .][])`,
	`reduce range(40) as $i (0; [., .]) | [..] | length`,
	`reduce range(40) as $i (0; [., .]) | walk(.)`,
	`reduce range(40) as $i (0; {a: ., b: .})`,
	`reduce range(40) as $i (0; {a: ., b: .}) | . * .`,
	`reduce range(40) as $i (0; {a: ., b: .}) | . == .`,

	// Deep values.
	`reduce range(9000) as $i (null; {a: .}) | [paths] | length`,
	`reduce range(20000) as $i (0; [.])`,
	`reduce range(20000) as $i (0; [.]) | tojson`,
	`reduce range(20000) as $i (0; [.]) | . == .`,
	`reduce range(20000) as $i (0; [.]) | flatten`,
	`reduce range(20000) as $i (0; {a: .}) | . * .`,
	`reduce range(20000) as $i (0; {a: .}) as $d | $d < $d`,
	`[range(20000) | "a"] as $path | setpath($path; 1)`,
	`reduce range(400000) as $i (0; [., 1]) | walk(.)`,
	`reduce range(100000) as $i (0; {a: ., b: 1}) | last(..)`,
	`reduce range(400000) as $i (0; [., 1]) | last(tostream)`,
	`reduce range(25) as $i (0; [., .])`,
})

// named is a program as the name of a test.
func named(src string) string { return src[:min(len(src), 100)] }

// TestFramesAreMemory: a recursion ends long before its steps do, with what it holds.
func TestFramesAreMemory(t *testing.T) {
	t.Parallel()
	for _, src := range []string{`def f: try f catch .; f`, `def f: 1 + f; f`, `def f: f // f; f`, `def f(x): f(x | x); f(.)`} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units := 0
		_, err = p.EvalWith(nil, expr.Env{Spent: &units}, expr.Limits{Memory: 4 << 20})
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Message, "calls itself too deeply") {
			t.Errorf("%s: %v", src, err)
		}
		if units > 2_000_000 {
			t.Errorf("%s: %d units", src, units)
		}
	}
}

// TestListsThatGrowAreMemory: a list is counted as it grows, whether it is ever complete or not, and one that is complete has
// given back what it took beyond its length.
func TestListsThatGrowAreMemory(t *testing.T) {
	t.Parallel()
	for _, src := range []string{`[range(1e9)]`, `[range(1e9) | [range(100)]]`, `[repeat(1)]`, `[range(1e9)] | length`} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units := 0
		_, err = p.EvalWith(nil, expr.Env{Spent: &units}, expr.Limits{Memory: 4 << 20})
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Message, "makes too much data") {
			t.Errorf("%s: %v", src, err)
		}
		if units > 900_000 {
			t.Errorf("%s: %d units", src, units)
		}
	}
	p, err := expr.Compile(`[range(40) | [range(2000)] | length] | add`)
	if err != nil {
		t.Fatal(err)
	}
	if _, bytes, err := expr.Taken(p, nil); err != nil || bytes < 40*2000*24 || bytes > 40*2000*48 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}

// TestCopiesOfTheResultAreMemory: a result of small text that shares its parts is copied to make its numbers doubles.
func TestCopiesOfTheResultAreMemory(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`reduce range(19) as $i (0; {a: ., b: .})`) // 7 MB of text
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Eval(nil)
	if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Message, "makes too much data") {
		t.Errorf("%v", err)
	}
}

// TestMemoryLeavesRoom: programs that make much and keep little of it stay within the limits.
func TestMemoryLeavesRoom(t *testing.T) {
	t.Parallel()
	state := map[string]any{"text": strings.Repeat("x", 1<<20), "list": []any{}}
	for range 20_000 {
		state["list"] = append(state["list"].([]any), "an element of some length")
	}
	for _, src := range []string{
		`[range(100) | "x" * 1e5 | length] | add`,
		`[range(100) | [range(1000)] | length] | add`,
		`[range(30) as $i | .list | map(.) | length] | add`,
		`[range(20000) as $i | .text] | length`,
		`[range(1000)] as $l | [range(20000) | $l] | length`,
		`def f: if . > 1e5 then . else . + 1 | f end; 0 | f`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.EvalLimits(state, expr.Limits{}); err != nil {
			t.Errorf("%s: %v", src, err)
		}
	}
}

func TestEndlessProgramsEnd(t *testing.T) {
	t.Parallel()
	for _, src := range endless {
		t.Run(named(src), func(t *testing.T) {
			t.Parallel()
			p, err := expr.Compile(src)
			if err != nil {
				t.Fatal(err)
			}
			// A small part of the defaults, to be quick about it.
			limits, part := expr.DefaultLimits(), soak.Size(100, 100, 20)
			v, err := p.EvalLimits(map[string]any{"n": 1.0}, expr.Limits{
				Cost: limits.Cost / part, Memory: limits.Memory / part * 2, ResultBytes: limits.ResultBytes / part,
			})
			e, ok := problem.As(err)
			if !ok || e.Code != problem.ExpressionLimit {
				t.Fatalf("%T, %v; want it to end at a limit", v, err)
			}
			if e.Hint == "" {
				t.Error("no hint")
			}
		})
	}
}

// TestLimitsCannotBeCaught: a program does not go on after a limit.
func TestLimitsCannotBeCaught(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`try ("a" * 1e9) catch "caught"`,
		`("a" * 1e9)?`,
		`try (reduce range(40) as $i (0; [., .]) | tojson) catch "caught"`,
		`[.[]?, ("a" * 1e9)?] | length`,
		`("a" * 1e9) // 1`,
		`label $out | ("a" * 1e9), break $out`,
		`try repeat(.) catch "caught"`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.EvalLimits(nil, expr.Limits{Cost: 100_000})
		if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit {
			t.Errorf("%s: %v, %v", src, v, err)
		}
	}
}

func TestLimitsAreExact(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`[.l[] | . + 1] | add`)
	if err != nil {
		t.Fatal(err)
	}
	state := map[string]any{"l": []any{1.0, 2.0, 3.0}}
	cost, err := expr.Cost(p, state)
	if err != nil || cost < 20 {
		t.Fatalf("%d units, %v", cost, err)
	}
	for _, test := range []struct {
		limits expr.Limits
		passes bool
	}{
		{expr.Limits{}, true},
		{expr.Limits{Cost: cost}, true},
		{expr.Limits{Cost: cost - 1}, false},
		{expr.Limits{ResultBytes: 1}, true},
	} {
		v, err := p.EvalLimits(state, test.limits)
		if (err == nil) != test.passes {
			t.Errorf("%+v: %v, %v", test.limits, v, err)
		}
	}
}

// TestEveryInstructionIsCounted: the interpreter asks for the context's end before each of its instructions. If it
// ever asks less often, the limit on steps has to be chosen anew.
func TestEveryInstructionIsCounted(t *testing.T) {
	t.Parallel()
	count := func(src string) int {
		t.Helper()
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		units, err := expr.Cost(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return units
	}
	if n := count(`.`); n != 3 { // scope, return; and the end of the program once more
		t.Errorf("the shortest program takes %d steps", n)
	}
	few, many := count(`[range(100)]`), count(`[range(1100)]`)
	if perRound := (many - few) / 1000; perRound < 3 || perRound > 30 {
		t.Errorf("%d steps for each element of a range", perRound)
	}
}

func TestOutputAndResultLimits(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		src    string
		limits expr.Limits
		passes bool
	}{
		{`range(3)`, expr.Limits{Outputs: 3}, true},
		{`range(4)`, expr.Limits{Outputs: 3}, false},
		{`range(10000)`, expr.Limits{}, true},
		{`range(10001)`, expr.Limits{}, false},
		{`"abc"`, expr.Limits{ResultBytes: 5}, true},
		{`"abcd"`, expr.Limits{ResultBytes: 5}, false},
		{`"\n\n"`, expr.Limits{ResultBytes: 5}, false},
		{`"a", "b"`, expr.Limits{ResultBytes: 7}, true},
		{`"a", "b"`, expr.Limits{ResultBytes: 6}, false},
		{`{a: [1, null]}`, expr.Limits{ResultBytes: 14}, true},
		{`{a: [1, null]}`, expr.Limits{ResultBytes: 13}, false},
		{`.s`, expr.Limits{ResultBytes: 6}, true},
		{`.s`, expr.Limits{ResultBytes: 5}, false},
		{`.`, expr.Limits{ResultBytes: 12}, true},
		{`.`, expr.Limits{ResultBytes: 11}, false},
	} {
		p, err := expr.Compile(test.src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.EvalLimits(map[string]any{"s": "four"}, test.limits)
		if e, ok := problem.As(err); (err == nil) != test.passes || err != nil && (!ok || e.Code != problem.ExpressionLimit) {
			t.Errorf("%s with %+v: %v, %v", test.src, test.limits, v, err)
		}
	}
}

func TestLongProgramsAreRefused(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		strings.Repeat(" ", 1<<16) + ".",
		strings.Repeat("(", 40_000),
	} {
		if _, err := expr.Compile(src); err == nil {
			t.Errorf("a program of %d bytes compiles", len(src))
		}
	}
	if soak.UnderRace {
		return // one goroutine computes: there is no race to find
	}
	// Deep, and within the limit.
	deep := strings.Repeat("[", 30_000) + strings.Repeat("]", 30_000)
	p, err := expr.Compile(deep)
	if err != nil {
		return // also an answer
	}
	if _, err := p.Eval(nil); err == nil {
		t.Error("a result of 30,000 levels")
	}
}
