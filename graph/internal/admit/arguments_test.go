package admit_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestExecutionIDsThatHideWhatStandsThereAreRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", " \t", "r", "a b/c?#%", "Bestellung-ü-7", "注文", "👍🏽", strings.Repeat("i", admit.MaxExecutionID)} {
		if err := admit.ExecutionID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"a\nb", "a\x00", "\x1b[2Ja", "a\u202eb", "a\u2028b", "a\u200bb", "\ufeffa", "a\xff", strings.Repeat("i", admit.MaxExecutionID+1), "a:sub:b", "a:sub"} {
		err := admit.ExecutionID(id)
		if e, ok := problem.As(err); !ok || e.Code != problem.ValidationError || strings.ContainsAny(e.Message, "\x1b\n\u202e") {
			t.Errorf("%q: %v", id, err)
		}
	}
}
