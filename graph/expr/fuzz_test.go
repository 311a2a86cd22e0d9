package expr_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// FuzzEval: nothing panics or takes long, the state stays as it is, and the same program has the same outcome again.
func FuzzEval(f *testing.F) {
	for _, src := range same {
		f.Add(src, `{"n":5,"l":[1,2],"o":{"a":{"b":null}},"s":"a b"}`)
	}
	for _, src := range endless {
		f.Add(src, `{}`)
	}
	for _, row := range differences {
		f.Add(row.program, row.state)
	}
	limits := expr.Limits{Cost: 20_000, Outputs: 100, ResultBytes: 1 << 16}
	f.Fuzz(func(t *testing.T, src, text string) {
		p, err := expr.Compile(src)
		if err != nil {
			if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionInvalid {
				t.Fatalf("%v", err)
			}
			return
		}
		decoded, err := jsonvalue.Decode([]byte(text))
		state, ok := decoded.(map[string]any)
		if err != nil || !ok {
			return
		}
		before := string(jsonvalue.Canonical(state))
		first, firstErr := p.EvalLimits(state, limits)
		if after := string(jsonvalue.Canonical(state)); after != before {
			t.Fatalf("the state %s was changed to %s", before, after)
		}
		if e, ok := problem.As(firstErr); firstErr != nil && (!ok || e.Code != problem.ExpressionFailed && e.Code != problem.ExpressionLimit) {
			t.Fatalf("%v", firstErr)
		}
		if firstErr == nil {
			isModel(t, src, first)
			if jsonvalue.Size(first, limits.ResultBytes) > limits.ResultBytes {
				t.Fatal("the result is too large")
			}
		}
		again, err := p.EvalLimits(state, limits)
		if (err == nil) != (firstErr == nil) || err != nil && err.Error() != firstErr.Error() || !jsonvalue.Equal(first, again) {
			t.Fatalf("%s, %v; again %s, %v", jsonvalue.Canonical(first), firstErr, jsonvalue.Canonical(again), err)
		}
	})
}

// FuzzMapping: whatever stands in a mapping, it compiles to something that can be evaluated.
func FuzzMapping(f *testing.F) {
	for _, value := range []string{`"${ .x }"`, `"${}"`, `{"jq":".a"}`, `{"literal":1}`, `{"jq":5}`, `[1]`, `"\u2028${ .\n }"`} {
		f.Add(`{"m":` + value + `}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decoded, err := jsonvalue.Decode([]byte(text))
		raw, ok := decoded.(map[string]any)
		if err != nil || !ok {
			return
		}
		m, problems := expr.CompileMapping(raw)
		got, err := m.Eval(map[string]any{"x": 1.0})
		if err == nil && (len(got) != len(raw) || len(problems) > 0) {
			t.Fatalf("%v with problems %v", got, problems)
		}
	})
}
