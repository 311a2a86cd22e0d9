package temporal

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
)

func TestPriorityAndFairness(t *testing.T) {
	t.Parallel()
	for priority, key := range map[int]int{-50: 5, -10: 5, -9: 4, 0: 3, 1: 2, 9: 2, 10: 1, 99: 1} {
		in := runInput{Config: machine.Config{ExecutionID: "r", Priority: priority}, Labels: map[string]string{"customer": "c"}}
		if p := in.priority("customer"); p.PriorityKey != key || p.FairnessKey != "c" {
			t.Errorf("priority %d: %+v", priority, p)
		}
		if p := in.priority(""); p.FairnessKey != "r" {
			t.Errorf("without a label: %+v", p)
		}
	}
	in := runInput{Labels: map[string]string{"customer": strings.Repeat("c", 100)}}
	if p := in.priority("customer"); len(p.FairnessKey) > maxFairnessKey || p.FairnessKey == "" {
		t.Errorf("a long label: %+v", p)
	}
}

func TestVisibilityQueries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		q    history.ListQuery
		want string
	}{
		{history.ListQuery{}, ofRuns},
		{history.ListQuery{Phase: history.PhaseInterrupted}, ofRuns + " AND AwpPhase IN ('interrupted') AND ExecutionStatus NOT IN ('Terminated', 'TimedOut', 'Failed', 'Canceled')"},
		{history.ListQuery{Phase: history.PhaseFailed}, ofRuns + " AND (AwpPhase IN ('failed') OR ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed', 'Canceled'))"},
		{history.ListQuery{DefinitionName: "it's", Roots: true}, ofRuns + ` AND AwpDefinition = 'it\'s' AND AwpParent IS NULL`},
		{history.ListQuery{Labels: map[string]string{"b": "2", "a": "1"}}, ofRuns + " AND AwpLabels = 'a=1' AND AwpLabels = 'b=2'"},
		{history.ListQuery{Below: "r"}, ofRuns + " AND WorkflowId STARTS_WITH 'r:sub:'"},
	} {
		if got, err := visibilityQuery(test.q); err != nil || got != test.want {
			t.Errorf("%+v\n got %s (%v)\nwant %s", test.q, got, err, test.want)
		}
	}
}
