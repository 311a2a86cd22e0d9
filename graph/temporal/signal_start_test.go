package temporal

import (
	"fmt"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestSignalWithStart: the first signal starts the run and counts, the next one reaches it, a repeated one changes nothing, and one that the run
// would reject starts nothing.
func TestSignalWithStart(t *testing.T) {
	t.Parallel()
	e, b := newTestEngine(t, Options{})
	d := signalWithStart(t, e, "r")
	if len(b.order) != 1 {
		t.Errorf("%d runs", len(b.order))
	}
	run, err := e.Signal(t.Context(), graph.SignalRequest{ExecutionID: "described", Name: "part", Payload: map[string]any{"got": []any{"a"}}, Start: &graph.StartRequest{
		Definition: d, Title: "First part", Labels: map[string]string{"customer": "17"}, Queue: "slow", Priority: 3, Deadline: time.Hour,
	}})
	in := b.runs["described"]
	if err != nil || run.Title != "First part" || run.Labels["customer"] != "17" || run.DeadlineAt.IsZero() || in == nil || in.in.Queue != "slow" || in.in.Config.Priority != 3 {
		t.Fatalf("%+v %v", run, err)
	}
}

func TestSignalWithStartOnAServer(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, Options{})
	signalWithStart(t, e, t.Name()+fmt.Sprint(time.Now().UnixNano()))
}

func signalWithStart(t *testing.T, e *Engine, id string) *definition.Document {
	t.Helper()
	d := enginetest.Define(t, `{"document":{"schema":"urn:test","name":"collect","version":"1"},"x-workflows-engine":{"uses":["early_signals"]},
		"state_schema":{"type":"object","properties":{"got":{"type":"array","items":{"type":"string"},"reducer":"append"}}},
		"nodes":[{"id":"begin","type":"start"},{"id":"one","type":"wait","config":{"kind":"signal","signal":"part"},"keep":true},{"id":"two","type":"wait","config":{"kind":"signal","signal":"part"},"keep":true},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"one"},{"source":"one","target":"two"},{"source":"two","target":"end"}]}`)
	send := func(name string, part any) (*view.Run, error) {
		key, _ := part.(string)
		return e.Signal(t.Context(), graph.SignalRequest{
			ExecutionID: id, Name: name, Payload: map[string]any{"got": []any{part}}, IdempotencyKey: key, Start: &graph.StartRequest{Definition: d},
		})
	}
	_, err := send("other", "a")
	requireCode(t, err, problem.SignalNameMismatch)
	_, err = send("part", 1.0)
	requireCode(t, err, problem.SignalValidationError)
	_, err = e.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
	requireCode(t, err, problem.ExecutionNotFound)
	run, err := send("part", "a")
	if err != nil || run.Status != machine.AwaitingSignal || run.CurrentNodeID != "two" {
		t.Fatalf("%+v %v", run, err)
	}
	if run, err = send("part", "a"); err != nil || !run.Repeated {
		t.Fatalf("%+v %v", run, err)
	}
	if run, err = send("part", "b"); err != nil || run.Status != machine.Completed {
		t.Fatalf("%+v %v", run, err)
	}
	if got, _ := run.FinalState["got"].([]any); len(got) != 2 {
		t.Errorf("got %v", run.FinalState)
	}
	return d
}
