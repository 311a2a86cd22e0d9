package temporal

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// besideNodes is the number of nodes of a run, besideRuns that of runs at the same time, besideRounds how often both sides take turns.
const besideNodes, besideRuns, besideRounds = 40, 25, 5

// handWritten is the workflow that a team would write for a run of besideNodes: an activity for each node gets the state and returns a part of it.
// Activities on the task queue of the workflow begin without a hop: the service hands them to the worker with its answer.
func handWritten(ctx workflow.Context, id, queue string) (map[string]any, error) {
	state := map[string]any{}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: queue, StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Minute})
	for n := range besideNodes {
		var part map[string]any
		if err := workflow.ExecuteActivity(ctx, "beside.step", fmt.Sprintf("%s:n%d", id, n), state).Get(ctx, &part); err != nil {
			return nil, err
		}
		maps.Copy(state, part)
	}
	return state, nil
}

// handSubmitted is its counterpart whose outcomes come from outside, as updates.
func handSubmitted(ctx workflow.Context, _ string) (map[string]any, error) {
	state, next := map[string]any{}, 0
	err := workflow.SetUpdateHandlerWithOptions(ctx, "beside.submit", func(_ workflow.Context, node int, part map[string]any) (map[string]any, error) {
		next++
		maps.Copy(state, part)
		return state, nil
	}, workflow.UpdateHandlerOptions{Validator: func(node int, part map[string]any) error {
		if node != next {
			return fmt.Errorf("node %d does not wait", node)
		}
		return nil
	}})
	if err == nil {
		err = workflow.Await(ctx, func() bool { return next == besideNodes && workflow.AllHandlersFinished(ctx) })
	}
	return state, err
}

func part(n any) map[string]any { return map[string]any{"last": n, "text": "a part of the state"} }

// TestNightlyBesideTemporal measures runs beside hand-written workflows of the same shape, in turns.
func TestNightlyBesideTemporal(t *testing.T) {
	e, o := serve(t, Options{Activities: steps(func(_ context.Context, req activities.Request) (any, error) { return part(req.NodeID), nil })})
	for _, name := range []string{".hand", ".apart"} {
		w := worker.New(o.Client, o.TaskQueue+name, worker.Options{})
		w.RegisterWorkflow(handWritten)
		w.RegisterWorkflow(handSubmitted)
		w.RegisterActivityWithOptions(func(_ context.Context, key string, _ map[string]any) (map[string]any, error) { return part(key), nil }, activity.RegisterOptions{Name: "beside.step"})
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	nodes := []string{`{"id":"begin","type":"start"}`}
	for n := range besideNodes {
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","type":"step","config":{"handler":"x"}}`, n))
	}
	d := enginetest.Define(t, enginetest.Linear("beside", append(nodes, `{"id":"end","type":"end"}`)...))

	hand := func(name, queue string) side {
		return side{name: name, run: func(t *testing.T, id string) {
			run, err := o.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: o.TaskQueue + ".hand"}, handWritten, id, queue)
			if err == nil {
				err = run.Get(t.Context(), nil)
			}
			if err != nil {
				t.Error(err)
			}
		}}
	}
	byHand, apart, byEngine := hand("hand-written", ""), hand("hand-written, activities on another task queue", o.TaskQueue+".apart"), side{name: "engine", run: func(t *testing.T, id string) {
		run, err := e.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}})
		if err == nil {
			err = o.Client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)
		}
		if err != nil {
			t.Errorf("%+v %v", run, err)
		}
	}}
	byHand.submit = func(t *testing.T, id string, submitted func(time.Duration)) {
		if _, err := o.Client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: o.TaskQueue + ".hand"}, handSubmitted, id); err != nil {
			t.Fatal(err)
		}
		for n := range besideNodes {
			began := time.Now()
			h, err := o.Client.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
				WorkflowID: id, UpdateName: "beside.submit", Args: []any{n, part(n)}, WaitForStage: client.WorkflowUpdateStageCompleted,
			})
			if err == nil {
				err = h.Get(t.Context(), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			submitted(time.Since(began))
		}
	}
	byEngine.submit = func(t *testing.T, id string, submitted func(time.Duration)) {
		run := start(t, e, graph.StartRequest{ExecutionID: id, Definition: d, Mode: machine.HostMediated})
		for n := range besideNodes {
			began := time.Now()
			var err error
			if run, err = e.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: fmt.Sprintf("n%d", n), OK: true, Result: part(n)}); err != nil {
				t.Fatal(err)
			}
			submitted(time.Since(began))
		}
		if run.Status != machine.Completed {
			t.Errorf("%+v", run)
		}
	}
	apart.submit = byHand.submit
	sides := []*side{&byHand, &apart, &byEngine}
	for round := range besideRounds {
		for _, s := range sides {
			s.round(t, o, fmt.Sprint(unique(t), s.name, round))
		}
	}
	for _, s := range sides {
		slices.Sort(s.submits)
		t.Logf("%s: %.0f nodes/s in one run, %.0f in %d runs, submit p50 %s p99 %s, %.1f events and %.0f bytes a node, %.1f and %.0f if submitted", s.name,
			middle(s.alone), middle(s.together), besideRuns, s.submits[len(s.submits)/2].Round(time.Millisecond/100), s.submits[len(s.submits)*99/100].Round(time.Millisecond/100),
			s.events[0], s.bytes[0], s.events[1], s.bytes[1])
	}
}

// side is the engine or its counterpart, with its figures.
type side struct {
	name            string
	run             func(t *testing.T, id string)
	submit          func(t *testing.T, id string, submitted func(time.Duration))
	alone, together []float64
	submits         []time.Duration
	// events and bytes are those of a node, performed by a worker and submitted.
	events, bytes [2]float64
}

func (s *side) round(t *testing.T, o Options, id string) {
	began := time.Now()
	s.run(t, id)
	s.alone = append(s.alone, besideNodes/time.Since(began).Seconds())
	var all sync.WaitGroup
	began = time.Now()
	for n := range besideRuns {
		all.Go(func() { s.run(t, fmt.Sprint(id, "-", n)) })
	}
	all.Wait()
	s.together = append(s.together, besideRuns*besideNodes/time.Since(began).Seconds())
	s.submit(t, id+"-submit", func(d time.Duration) { s.submits = append(s.submits, d) })
	for i, id := range []string{id, id + "-submit"} {
		d, err := o.Client.DescribeWorkflow(t.Context(), id, "")
		if err != nil {
			t.Fatal(err)
		}
		info := d.RawResponse.GetWorkflowExecutionInfo()
		s.events[i], s.bytes[i] = float64(info.GetHistoryLength())/besideNodes, float64(info.GetHistorySizeBytes())/besideNodes
	}
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
