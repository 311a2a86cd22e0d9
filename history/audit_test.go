package history_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history"
)

// TestAuditOfSteps: the steps of an attempt are numbered without gaps, also over questions and rests; each attempt begins anew.
func TestAuditOfSteps(t *testing.T) {
	t.Parallel()
	step := func(name history.Name, attempt int, n float64) history.Record {
		return history.Record{Name: name, Payload: payload{NodeID: "n", Attempt: attempt, AgentStep: obj{"key": "k", "kind": "made", "n": n}}}
	}
	requested, failed := history.Record{Name: history.ActivityRequested, Payload: payload{NodeID: "n"}}, history.Record{Name: history.ActivityFailed, Payload: payload{NodeID: "n"}}
	for name, c := range map[string]struct {
		records []history.Record
		want    []string
	}{
		"in order": {[]history.Record{
			requested, step(history.ActivityRequested, 1, 1), step(history.InterruptRaised, 1, 2), step(history.InterruptResumed, 1, 3), step(history.InterruptRaised, 1, 4),
			step(history.InterruptResumed, 1, 5), failed, requested, step(history.ActivityRequested, 2, 1),
		}, nil},
		"a gap":          {[]history.Record{requested, step(history.ActivityRequested, 1, 1), step(history.ActivityRequested, 1, 3), step(history.ActivityRequested, 1, 4)}, []string{"4 AGENT_STEPS_GAP"}},
		"twice":          {[]history.Record{requested, step(history.ActivityRequested, 1, 1), step(history.ActivityRequested, 1, 1), step(history.ActivityRequested, 1, 2)}, []string{"4 AGENT_STEPS_GAP"}},
		"an end twice":   {[]history.Record{requested, step(history.ActivityRequested, 1, 1), failed, step(history.ActivityRequested, 1, 2), failed}, []string{"6 OUTCOME_TWICE"}},
		"without number": {[]history.Record{requested, {Name: history.ActivityRequested, Payload: payload{NodeID: "n", AgentStep: obj{}}}}, []string{"3 AGENT_STEPS_GAP"}},
	} {
		if got := audited(c.records); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// audited returns what an audit finds in events that follow the beginning of a run.
func audited(events []history.Record) []string {
	a := history.Audit{ExecutionID: "x"}
	a.Record(&history.Record{Seq: 1, Kind: history.Event, CreatedAt: time.Unix(0, 0), Name: history.ExecutionStarted, Payload: payload{Mode: "in_process", Branches: "concurrent"}}, nil)
	for i, r := range events {
		r.Seq, r.Kind, r.CreatedAt = int64(i+2), history.Event, time.Unix(0, 0)
		a.Record(&r, nil)
	}
	var got []string
	for _, f := range a.Findings {
		got = append(got, fmt.Sprint(f.Seq, " ", f.Code))
	}
	return got
}

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
		var events []history.Record
		for _, f := range c.facts {
			events = append(events, history.Record{Name: f.name, Payload: payload{NodeID: "n", Span: f.span}})
		}
		if got := audited(events); !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}
