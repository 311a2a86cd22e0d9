package expr_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestNothingStandsBehindANullCharacter: the parser takes it for the end of the program.
func TestNothingStandsBehindANullCharacter(t *testing.T) {
	t.Parallel()
	for _, src := range []string{"1\x00 not jq", ". # comment\x00", "\"a\x00b\"", "\x00"} {
		_, err := expr.Compile(src)
		e, ok := problem.As(err)
		if !ok || e.Code != problem.ExpressionInvalid || e.Details["offset"] != float64(strings.IndexByte(src, 0)) {
			t.Errorf("%q: %v", src, err)
		}
	}
	check(t, `"a\u0000b" | length`, `{}`, `3`)
}

// TestNumbersTooLargeAreNotNull: a program computes in doubles, whose largest stands for what is larger. Of data that is an
// error.
func TestNumbersTooLargeAreNotNull(t *testing.T) {
	t.Parallel()
	digits := strings.Repeat("9", 400)
	for _, src := range []string{`1e400`, `[1e400][0]`, `"1e400" | tonumber`, digits, `"` + digits + `" | tonumber`, digits + " + 1"} {
		check(t, src, `{}`, `1.7976931348623157e+308`)
	}
	for _, text := range []string{"1e400", "[1, " + digits + "]", `{\"a\": -1e999}`} {
		p, err := expr.Compile(`"` + text + `" | fromjson`)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := p.Eval(nil); !errors.Is(err, problem.ExpressionFailed) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v, %v", text, v, err)
		}
	}
	check(t, `"12345678901234567890" | fromjson`, `{}`, `12345678901234567000`)
}

// TestResultsNestedTooDeeply: what no reader could follow is no result.
func TestResultsNestedTooDeeply(t *testing.T) {
	t.Parallel()
	for src, passes := range map[string]bool{
		`reduce range(512) as $i (0; [.]) | .`: true, `reduce range(513) as $i (0; [.])`: false,
		`reduce range(512) as $i (0; {a: .})`: true, `reduce range(513) as $i (0; {a: .})`: false,
		`reduce range(3000) as $i (0; [.])`: false, `reduce range(3000) as $i (0; [.]) | flatten`: true,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Eval(nil)
		if e, ok := problem.As(err); (err == nil) != passes || !passes && (!ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Hint, "512")) {
			t.Errorf("%s: %v", src, err)
		}
	}
}
