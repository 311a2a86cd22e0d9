package expr_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A program's cost is that of what it does, not of the state it is given.
func TestW40_CostDoesNotGrowWithTheState(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`[.n, .n + 1] | add`)
	if err != nil {
		t.Fatal(err)
	}
	limits := expr.DefaultLimits()
	limits.Cost = 200
	for _, size := range []int{1, 320 << 10} {
		v, err := p.EvalLimits(map[string]any{"n": 1.0, "blob": strings.Repeat("x", size)}, limits)
		if err != nil || v != 3.0 {
			t.Errorf("over %d bytes: %v, %v", size, v, err)
		}
	}
}

func TestW41_AProgramWithoutEndEnds(t *testing.T) {
	t.Parallel()
	p, err := expr.Compile(`def f: f; f`)
	if err != nil {
		t.Fatal(err)
	}
	limits := expr.DefaultLimits()
	limits.Cost = 100_000
	if v, err := p.EvalLimits(nil, limits); !errors.Is(err, problem.ExpressionLimit) {
		t.Errorf("%v, %v", v, err)
	}
}

// A reduce that builds an object of 5,000 members ends within its budget: it does not copy the object in each round.
func TestReduceBuildsALargeObject(t *testing.T) {
	t.Parallel()
	items := make([]any, 5000)
	for n := range items {
		items[n] = map[string]any{"id": fmt.Sprint("item-", n), "n": float64(n), "tags": []any{"x", "y"}}
	}
	state := map[string]any{"items": items}
	for _, src := range []string{
		`reduce .items[] as $i ({}; .[$i.id] = $i)`,
		`reduce .items[] as $i ({}; .[$i.id] = $i.tags[0])`,
		`reduce .items[] as $i ({}; .[$i.id] = {n: $i.n, twice: ($i.n * 2), tags: [$i.tags[]]})`,
		`reduce .items[] as $i ({}; .["\($i.id)!"] = ($i.id | ascii_upcase))`,
		`reduce .items[] as {$id, $n} ({}; .[$id] = $n)`,
		`reduce .items[] as $i ({}; .[$i.id] += 1)`,
		`reduce .items[] as $i ({}; .[$i.id] += [$i.n])`,
		`reduce .items[] as $i ({}; .[$i.id] |= (. // 0) + 1)`,
		`reduce .items[] as $i ({}; .[$i.id] //= $i.n)`,
		`reduce .items[] as $i ({}; .[$i.id] = (if $i.n > 5 then "many" else "few" end))`,
		`reduce .items[] as $i ({n: 0, by: {}}; .n += 1 | .by[$i.id] = .n) | .by`,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		v, err := p.EvalAt(state, expr.Env{})
		if built, ok := v.(map[string]any); !ok || len(built) != len(items) {
			t.Errorf("%s: %d members, %v", src, len(built), err)
		}
	}
}
