package graph_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// TestAnExecutorCannotChangeTheDefinition: what an executor writes into its request reaches no other attempt and no other run.
func TestAnExecutorCannotChangeTheDefinition(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	scribbles := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		list := req.Config["list"].([]any)
		seen = append(seen, list[0].(string)+" "+req.Metadata["note"].(string))
		list[0], req.Metadata["note"], req.Config["handler"] = "changed", "changed", "changed"
		return activities.Result{}, nil
	})
	d := workflow(t, "w", []string{startNode(), `{"id":"a","type":"step","config":{"handler":"h","list":["as written"]},"metadata":{"note":"own"}}`, endNode()}, "s a", "a e")
	r := newRunner(t, historymem.New(), graph.Options{Activities: scribbles})
	for _, id := range []string{"one", "two"} {
		wantStatus(t, start(t, r, id, d, nil), machine.Completed)
	}
	if got := strings.Join(seen, ", "); got != "as written own, as written own" {
		t.Errorf("the executor was given %s", got)
	}
}

// TestOutcomesNameTheirAttempt: what OnRecord gets of the end of an attempt says which attempt ended, with the key that the executor had.
func TestOutcomesNameTheirAttempt(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var given, told []string
	flaky := activities.ExecutorFunc(func(_ context.Context, req activities.Request) (activities.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		given = append(given, req.IdempotencyKey)
		if req.Attempt == 1 {
			return activities.Result{}, &activities.Failure{Message: "not yet"}
		}
		return activities.Result{Output: object{"n": float64(req.Visit)}}, nil
	})
	d := workflow(t, "w", []string{
		startNode(), `{"id":"a","type":"step","config":{"handler":"h"},"retry":{"max_attempts":2}}`,
		`{"id":"again","type":"switch","config":{"cases":[{"when":".n < 2","target":"a"}],"default":"e"}}`, endNode(),
	}, "s a", "a again")
	r := newRunner(t, historymem.New(), graph.Options{Activities: flaky, OnRecord: func(e graph.RecordEvent) {
		mu.Lock()
		defer mu.Unlock()
		for _, rec := range e.Records {
			switch a := rec.Attempt; {
			case rec.Name != history.ActivityCompleted && rec.Name != history.ActivityFailed:
				if a != nil {
					t.Errorf("%s has the attempt %+v", rec.Name, *a)
				}
			case a == nil || a.NodeID != "a" || a.Number != 1+len(told)%2 || a.Visit != 1+len(told)/2:
				t.Errorf("%s has the attempt %+v after %d others", rec.Name, a, len(told))
			default:
				told = append(told, a.IdempotencyKey)
			}
		}
	}})
	wantStatus(t, start(t, r, "r", d, nil), machine.Completed)
	if len(told) != 4 || strings.Join(told, " ") != strings.Join(given, " ") {
		t.Errorf("told of %v, given %v", told, given)
	}
}

// TestUpkeepNamesItself: a call that a store cannot serve says which call that was, and a wrapped store serves it.
func TestUpkeepNamesItself(t *testing.T) {
	t.Parallel()
	type embedding struct{ history.Store }
	store := historymem.New()
	r := newRunner(t, embedding{store}, graph.Options{})
	for name, call := range map[string]func() error{
		"Prune":            func() error { _, err := r.Prune(t.Context(), history.PruneQuery{}); return err },
		"PruneDefinitions": func() error { _, err := r.PruneDefinitions(t.Context(), false); return err },
		"Size":             func() error { _, _, err := r.Size(t.Context()); return err },
		"Shrink":           func() error { return r.Shrink(t.Context()) },
	} {
		if p := wantCode(t, call(), problem.Unsupported); !strings.HasSuffix(p.Message, "does not support "+name) {
			t.Errorf("%s: %s", name, p.Message)
		}
	}
	again := newRunner(t, history.Wrap(embedding{store}, store), graph.Options{})
	if _, err := again.PruneDefinitions(t.Context(), false); err != nil {
		t.Error(err)
	}
}
