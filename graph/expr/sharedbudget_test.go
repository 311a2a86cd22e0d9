package expr_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// TestSharedBudget: evaluations that share a budget may together take what one may. Which of them ends does not depend on
// anything else.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	if soak.UnderRace {
		t.Skip("one goroutine computes: there is no race to find")
	}
	for src, most := range map[string]int{
		`"x" * 8e6 | ascii_upcase | length`:     8,  // memory
		`("x" * 4e6) as $s | $s | test("[yz]")`: 30, // work
	} {
		p, err := expr.Compile(src)
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for range 2 {
			var budget expr.Budget
			rounds := 1
			for ; rounds < 200; rounds++ {
				if _, err = p.EvalAt(nil, expr.Env{Budget: &budget}); err != nil {
					break
				}
			}
			if e, ok := problem.As(err); !ok || e.Code != problem.ExpressionLimit || !strings.Contains(e.Message, "together with the expressions of the node") {
				t.Errorf("%s, round %d: %v", src, rounds, err)
			}
			if rounds < 2 || rounds > most || ended != 0 && ended != rounds {
				t.Errorf("%s: ended in round %d, before in %d", src, rounds, ended)
			}
			ended = rounds
		}
	}
}
