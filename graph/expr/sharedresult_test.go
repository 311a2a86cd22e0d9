package expr_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
)

// TestSharedResultsAreWork: what a result shares with itself is written out many times, which is charged for; what is too
// large is refused before it is made.
func TestSharedResultsAreWork(t *testing.T) { // not parallel: it counts allocations
	for src, least := range map[string]int{
		`reduce range(18) as $i (0; [., .])`:                             1 << 18,
		`[range(1000)] as $l | [range(400) | $l]`:                        400_000 / 2,
		`reduce range(16) as $i ({}; {a: ., b: .})`:                      1 << 16,
		`("x" * 1e6) as $s | $s, $s, $s`:                                 3e6 / 16,
		`[limit(40; repeat([range(100)]))] | [., .], [., .], [., .] | .`: 6 * 4000 / 2,
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		if units, err := expr.Cost(p, nil); err != nil || units < least {
			t.Errorf("%s: %d units, %v; want %d or more", src, units, err, least)
		}
	}
	p, err := expr.Compile(`reduce range(25) as $i (0; [., .])`)
	if err != nil {
		t.Fatal(err)
	}
	if made := testing.AllocsPerRun(1, func() { p.Eval(nil) }); made > 10_000 {
		t.Errorf("%.0f allocations for a result that is refused", made)
	}
}
