package history_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/workflows-engine/workflows-engine/history"
)

// TestAuditOfAttempts: attempts that follow each other have one outcome each, also where the outcome does not name the
// branch that the request names.
func TestAuditOfAttempts(t *testing.T) {
	t.Parallel()
	other := *someSpan
	other.BranchName = "b2"
	requested, failed, completed := history.ActivityRequested, history.ActivityFailed, history.ActivityCompleted
	type fact struct {
		name history.Name
		span *history.ParallelSpan
	}
	for name, c := range map[string]struct {
		facts []fact
		want  []string
	}{
		"one":                       {[]fact{{requested, nil}, {completed, nil}}, nil},
		"again":                     {[]fact{{requested, nil}, {failed, nil}, {requested, nil}, {completed, nil}}, nil},
		"again in a branch":         {[]fact{{requested, someSpan}, {failed, nil}, {requested, someSpan}, {completed, nil}}, nil},
		"of a host":                 {[]fact{{requested, someSpan}, {failed, someSpan}, {requested, someSpan}, {completed, someSpan}}, nil},
		"of a host in two branches": {[]fact{{requested, someSpan}, {requested, &other}, {completed, someSpan}, {completed, &other}}, nil},
		"twice":                     {[]fact{{requested, nil}, {completed, nil}, {completed, nil}}, []string{"4 OUTCOME_TWICE"}},
		"twice in a branch":         {[]fact{{requested, someSpan}, {failed, nil}, {completed, nil}}, []string{"4 OUTCOME_TWICE"}},
		"twice of a host":           {[]fact{{requested, someSpan}, {completed, someSpan}, {completed, someSpan}}, []string{"4 OUTCOME_TWICE"}},
	} {
		a := history.Audit{ExecutionID: "x"}
		a.Record(&history.Record{Seq: 1, Kind: history.Event, Name: history.ExecutionStarted, Payload: payload{Mode: "in_process", Branches: "concurrent"}}, nil)
		for i, f := range c.facts {
			a.Record(&history.Record{Seq: int64(i + 2), Kind: history.Event, Name: f.name, Payload: payload{NodeID: "n", Span: f.span}}, nil)
		}
		var got []string
		for _, f := range a.Findings {
			got = append(got, fmt.Sprint(f.Seq, " ", f.Code))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}
