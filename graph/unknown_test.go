package graph_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// source is a Resolver that takes its time and learns workflows.
type source struct {
	takes time.Duration

	mu    sync.Mutex
	known map[string]*definition.Document
	now   map[string]int // calls under way
	most  map[string]int // the most of them at once
	calls map[string]int
}

func (s *source) learn(ref string, d *definition.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[ref] = d
}

// reset forgets the calls so far.
func (s *source) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.calls = map[string]int{}, map[string]int{}
}

// asked gives how often a workflow was asked for, and by how many at once.
func (s *source) asked(ref string) (calls, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[ref], s.most[ref]
}

func newSource(takes time.Duration) *source {
	s := &source{takes: takes, known: map[string]*definition.Document{}, now: map[string]int{}}
	s.reset()
	return s
}

func (s *source) ResolveWorkflow(ctx context.Context, ref, _ string) (*definition.Document, error) {
	s.mu.Lock()
	s.calls[ref]++
	s.now[ref]++
	s.most[ref] = max(s.most[ref], s.now[ref])
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now[ref]--
	if d := s.known[ref]; d != nil {
		return d, nil
	}
	return nil, problem.New(problem.WorkflowNotFound, "no %s", ref)
}

// bereftOfMany starts n runs in a process that dies before anything has an outcome. By turns they go on with the
// subworkflows urn:0 and urn:1.
func bereftOfMany(t *testing.T, store history.Store, n int) (ids []string) {
	t.Helper()
	mortal := historytest.NewFaultStore(store)
	r := newRunner(t, mortal, equip(t, &script{answers: answers{"a": hang}}, "one"))
	for i := range n {
		d := workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", fmt.Sprint("urn:", i%2)), endNode()}, "s a", "a v", "v e")
		ids = append(ids, fmt.Sprint("r", i))
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: ids[i], Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, r, mortal)
	time.Sleep(time.Minute)
	return ids
}

// TestManyRunsWaitForOneWorkflow has many runs come to workflows that nobody knows. They stand still without a write, and
// the source is asked once a round for each workflow, not for each run.
func TestManyRunsWaitForOneWorkflow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		ids := bereftOfMany(t, store, 40)
		s, watched := newSource(2*time.Second), historytest.NewFaultStore(store)
		o := equip(t, &script{}, "one")
		o.Workflows = s
		lone := newRunner(t, watched, o)
		time.Sleep(5 * time.Minute)
		s.reset()
		watched.Set(historytest.Fault{Reads: true})
		time.Sleep(10 * time.Minute)
		for _, ref := range []string{"urn:0", "urn:1"} {
			if calls, most := s.asked(ref); most != 1 || calls > 60 {
				t.Errorf("%s was asked for %d times in ten minutes, by %d at once", ref, calls, most)
			}
		}
		if ws := writes(watched); len(ws) > 0 {
			t.Errorf("%d writes", len(ws))
		}
		child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
		s.learn("urn:0", child)
		time.Sleep(time.Minute)
		for i, id := range ids {
			run := status(t, lone, id)
			if (i%2 == 0) != (run.Status == machine.Completed) || (i%2 == 1) != (run.Lacks != nil) {
				t.Errorf("%s is %s and lacks %+v", id, run.Status, run.Lacks)
			}
		}
		s.learn("urn:1", child)
		for _, id := range ids {
			wantStatus(t, settled(t, lone, id), machine.Completed)
		}
	})
}

// TestARecoverAsksForWhatIsNotKnown holds that one call takes over whatever was left for want of a workflow that is known
// by now, and nothing else.
func TestARecoverAsksForWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		ids := bereftOfMany(t, store, 6)
		s := newSource(time.Second)
		o := equip(t, &script{}, "one")
		o.Work, o.Workflows = graph.WorkOwn, s
		r := newRunner(t, store, o)
		recovers := func(want ...string) {
			t.Helper()
			s.reset()
			res, err := r.Recover(t.Context(), graph.RecoverRequest{})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(res.ExecutionIDs)
			if !slices.Equal(res.ExecutionIDs, want) {
				t.Errorf("recovered %v, want %v", res.ExecutionIDs, want)
			}
			time.Sleep(time.Minute)
		}
		recovers(ids...) // there is a step to perform
		recovers()
		if calls, _ := s.asked("urn:0"); calls != 1 {
			t.Errorf("asked %d times", calls)
		}
		child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
		s.learn("urn:1", child)
		recovers("r1", "r3", "r5")
		wantStatus(t, status(t, r, "r1"), machine.Completed)
		if l := status(t, r, "r0").Lacks; l == nil || l.NodeID != "v" {
			t.Errorf("lacks %+v", l)
		}
		register(t, r, "urn:0", child)
		if l := status(t, r, "r0").Lacks; l != nil {
			t.Errorf("registered, and said to lack %+v", l)
		}
		recovers("r0", "r2", "r4")
		recovers()
	})
}

// TestAStartAgainAsksForWhatWasNotKnown asks for a run whose subworkflow's subworkflow could not be begun: it is tried at
// once.
func TestAStartAgainAsksForWhatWasNotKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		s := newSource(0)
		s.learn("urn:child", workflow(t, "middle", []string{startNode(), step("a", "one"), subworkflow("m", "urn:inner"), endNode()}, "s a", "a m", "m e"))
		bereft(t, store, workflow(t, "w", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e"), s.known["urn:child"])
		time.Sleep(time.Minute)
		o := equip(t, &script{}, "one")
		o.Work, o.Workflows, o.WaitLimit = graph.WorkOwn, s, time.Minute
		r := newRunner(t, store, o)
		again := func() *view.Run {
			t.Helper()
			run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", AllowExisting: true})
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		for range 2 {
			if run := again(); run.Status.Terminal() || run.Lacks == nil || run.Lacks.ExecutionID != "r:sub:v" || run.Lacks.NodeID != "m" {
				t.Errorf("%+v lacks %+v", run, run.Lacks)
			}
		}
		s.learn("urn:inner", workflow(t, "inner", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"))
		wantStatus(t, again(), machine.Completed)
		once(t, store, "r", "r:sub:v", "r:sub:v:sub:m")
	})
}

// TestWorkflowsThatAreNotKnownAreBounded notes more than are kept: the newest is among those that are.
func TestWorkflowsThatAreNotKnownAreBounded(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	for i := range 5000 {
		if n, want := graph.NoteUnknown(r, fmt.Sprint("urn:", i)), min(i+1, 4096); n != want {
			t.Fatalf("%d are remembered after %d", n, i+1)
		}
	}
}

// TestAWorkflowThatNoRunWaitsForIsNotAskedFor cancels the only run that was left for want of a workflow.
func TestAWorkflowThatNoRunWaitsForIsNotAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
		s := newSource(0)
		o := equip(t, &script{}, "one")
		o.Workflows = s
		lone := newRunner(t, store, o)
		time.Sleep(5 * time.Minute)
		if n, _ := s.asked("urn:child"); n < 10 {
			t.Errorf("asked %d times while a run waited for it", n)
		}
		if _, err := lone.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.reset()
		time.Sleep(time.Hour)
		if n, _ := s.asked("urn:child"); n > 0 {
			t.Errorf("asked %d times once no run waited for it", n)
		}
	})
}

// TestAWorkflowThatIsFoundForOneRunIsKnownForAll starts a run with a workflow for want of which another one was left: from then
// on that one lacks nothing, and a recover takes it over at once.
func TestAWorkflowThatIsFoundForOneRunIsKnownForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
		time.Sleep(time.Minute)
		s := newSource(0)
		o := equip(t, &script{}, "one")
		o.Work, o.Workflows = graph.WorkOwn, s
		r := newRunner(t, store, o)
		if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if l := status(t, r, "r").Lacks; l == nil || l.NodeID != "v" {
			t.Fatalf("lacks %+v", l)
		}
		s.learn("urn:child", workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e"))
		wantStatus(t, start(t, r, "other", workflow(t, "o", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e"), nil), machine.Completed)
		if l := status(t, r, "r").Lacks; l != nil {
			t.Errorf("it is known, and said to lack %+v", l)
		}
		if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "r"), machine.Completed)
	})
}

// warnings is a log that counts what it says of runs.
type warnings struct {
	slog.Handler
	mu   sync.Mutex
	said map[string]int
}

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }

func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.said == nil {
		w.said = map[string]int{}
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "execution_id" {
			w.said[a.Value.String()+": "+r.Message]++
		}
		return true
	})
	return nil
}

// TestWhatIsLeftToOthersIsLoggedOnce leaves a run for an hour, looking at it in each round.
func TestWhatIsLeftToOthersIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "two"), endNode()}, "s a", "a e"))
		o, log := equip(t, &script{}, "one"), &warnings{}
		o.Logger = slog.New(log)
		newRunner(t, store, o)
		time.Sleep(time.Hour)
		log.mu.Lock()
		defer log.mu.Unlock()
		if want := map[string]int{"r: run not claimed": 1}; !maps.Equal(log.said, want) {
			t.Errorf("logged %v", log.said)
		}
	})
}
