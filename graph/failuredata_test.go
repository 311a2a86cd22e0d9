package graph_test

import (
	"context"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestWhatAFailureCarriesIsRecorded: each failed attempt has the data of its failure, the last one's reaches the catch or the end of the run, and
// another process, which has only the history, finds the same.
func TestWhatAFailureCarriesIsRecorded(t *testing.T) {
	t.Parallel()
	busy, down := object{"class": "busy", "status": 429}, object{"class": "down"}
	fails := answers{"a": func(_ context.Context, req activities.Request) (any, error) {
		failure := activities.Fail("GONE", "no luck")
		if failure.Data = busy; req.Attempt == 2 {
			failure.Data = down
		}
		return nil, failure
	}}
	const policy = `"retry":{"max_attempts":2,"initial_interval":"0s"}`
	for name, tt := range map[string]struct {
		node string
		tail []string
		at   func(*view.Run) any
	}{
		"the run fails":  {tool("a", policy), nil, func(run *view.Run) any { return run.ErrorData }},
		"caught":         {tool("a", policy, `"catch":[{"codes":["GONE"],"target":"i","as":"why"}]`), nil, func(run *view.Run) any { return run.State["why"].(object)["data"] }},
		"an item fails":  {tool("a", policy, `"map":{"items":"[1]"}`), nil, func(run *view.Run) any { return run.ErrorData }},
		"item tolerated": {tool("a", policy, `"map":{"items":"[1]","tolerate":{"percent":100,"as":"failed"}}`), nil, func(run *view.Run) any { return run.State["failed"].([]any)[0].(object)["data"] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := workflowWith(t, "w", `"x-workflows-engine":{"uses":["catch","map"]}`, []string{startNode(), tt.node, interrupt("i"), endNode()}, "s a", "a i", "i e")
			store := historymem.New()
			r := newRunner(t, store, graph.Options{Activities: &script{answers: fails}})
			run := start(t, r, "r", d, nil)
			for _, run := range []*view.Run{run, status(t, newRunner(t, store, graph.Options{}), "r")} {
				if got := tt.at(run); !sameJSON(got, down) {
					t.Errorf("the failure carries %v", got)
				}
			}
			var got []any
			for _, rec := range records(t, store, "r") {
				if rec.Name == history.ActivityFailed {
					got = append(got, rec.Payload.Data)
				}
			}
			if !sameJSON(got, []any{busy, down}) {
				t.Errorf("recorded %v", got)
			}
			verifyAll(t, r)
		})
	}
}

// TestDataThatCannotBeRecordedIsLeftOut: a failure is recorded without what is no JSON, or too large.
func TestDataThatCannotBeRecordedIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]map[string]any{"no JSON": {"a": make(chan int)}, "large": {"a": strings.Repeat("x", 20_000)}, "empty": {}} {
		r := newRunner(t, historymem.New(), graph.Options{Activities: &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) {
			failure := activities.Fail("GONE", "no luck")
			failure.Data = data
			return nil, failure
		}}}})
		run := start(t, r, "r", linear(t, "lin", "a"), nil)
		wantStatus(t, run, machine.Failed)
		if run.ErrorData != nil || run.ErrorCode != "GONE" {
			t.Errorf("%s: %s with %v", name, run.ErrorCode, run.ErrorData)
		}
	}
}
