package expr_test

import (
	"errors"
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
	limits.Steps = 200
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
	limits.Steps = 100_000
	if v, err := p.EvalLimits(nil, limits); !errors.Is(err, problem.ExpressionLimit) {
		t.Errorf("%v, %v", v, err)
	}
}
