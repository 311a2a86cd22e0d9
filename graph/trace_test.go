package graph_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

type spanKey struct{}

// sightings is an executor that notes what the contexts of its attempts hold.
type sightings struct {
	spans, parents map[string]any
	hangs          string
}

func (s *sightings) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if s.spans == nil {
		s.spans, s.parents = map[string]any{}, map[string]any{}
	}
	s.spans[req.NodeID], s.parents[req.NodeID] = ctx.Value(spanKey{}), graph.TraceParent(ctx)
	if req.NodeID == s.hangs {
		return activities.Result{}, after1h(ctx)
	}
	time.Sleep(time.Second)
	return activities.Result{}, ctx.Err()
}

func after1h(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Hour):
		return nil
	}
}

const (
	parentOfStart  = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	parentOfSignal = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// TestValuesOfACallReachWhatItBegins: the executors that a call begins see the values of its context, and neither its deadline nor its
// cancel; later ones, those of subworkflows and of a process that takes the run over see the trace parent of the start.
func TestValuesOfACallReachWhatItBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		child := linear(t, "child", "ca", "cb")
		d := workflow(t, "w", []string{startNode(), tool("a"), tool("b"), signalWait("w", "go"), tool("c"), subworkflow("sub", "urn:child"), tool("d"), endNode()},
			"s a", "a b", "b w", "w c", "c sub", "sub d", "d e")
		store := historymem.New()
		seen := &sightings{hangs: "d"}
		r := newRunner(t, store, graph.Options{Activities: seen})
		register(t, r, "urn:child", child)
		ctx, cancel := context.WithTimeout(context.WithValue(graph.WithTraceParent(t.Context(), parentOfStart), spanKey{}, "start"), time.Millisecond)
		if _, err := r.Start(ctx, graph.StartRequest{ExecutionID: "r", Definition: d, Wait: waitFor(0)}); err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Minute)
		ctx, cancel = context.WithCancel(context.WithValue(graph.WithTraceParent(t.Context(), parentOfSignal), spanKey{}, "signal"))
		if _, err := r.Signal(ctx, graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(0)}}); err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(time.Minute)
		closeRunner(t, r)
		later := &sightings{}
		r = newRunner(t, store, graph.Options{Activities: later, Work: graph.WorkAll})
		time.Sleep(time.Minute)
		wantStatus(t, status(t, r, "r"), machine.Completed)
		for node, want := range map[string][2]any{
			"a": {"start", parentOfStart}, "b": {nil, parentOfStart}, "c": {"signal", parentOfSignal}, "ca": {nil, parentOfStart},
			"cb": {nil, parentOfStart}, "d": {nil, parentOfStart},
		} {
			if got := [2]any{seen.spans[node], seen.parents[node]}; got != want {
				t.Errorf("%s saw %v, want %v", node, got, want)
			}
		}
		if later.parents["d"] != parentOfStart || len(later.parents) != 1 {
			t.Errorf("after the takeover: %v", later.parents)
		}
	})
}

// TestValuesOfACallReachSubworkflows that it begins at once.
func TestValuesOfACallReachSubworkflows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen := &sightings{}
		r := newRunner(t, historymem.New(), graph.Options{Activities: seen})
		register(t, r, "urn:child", linear(t, "child", "ca"))
		d := workflow(t, "w", []string{startNode(), subworkflow("sub", "urn:child"), endNode()}, "s sub", "sub e")
		if _, err := r.Start(context.WithValue(t.Context(), spanKey{}, "start"), graph.StartRequest{ExecutionID: "r", Definition: d}); err != nil {
			t.Fatal(err)
		}
		if seen.spans["ca"] != "start" {
			t.Errorf("saw %v", seen.spans)
		}
	})
}

// TestATraceParentIsRecordedIfItIsOne and nothing else is.
func TestATraceParentIsRecordedIfItIsOne(t *testing.T) {
	t.Parallel()
	store := historymem.New()
	r := newRunner(t, store, graph.Options{Activities: &script{}})
	for id, parent := range map[string]string{"with": parentOfStart, "without": "", "wrong": strings.ToUpper(parentOfStart), "long": parentOfStart + "-x"} {
		if _, err := r.Start(graph.WithTraceParent(t.Context(), parent), graph.StartRequest{ExecutionID: id, Definition: linear(t, "x", "a")}); err != nil {
			t.Fatal(err)
		}
		want := ""
		if id == "with" {
			want = parentOfStart
		}
		if got := records(t, store, id)[0].Payload.TraceParent; got != want {
			t.Errorf("%s: recorded %q", id, got)
		}
	}
}
