package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// calling is a workflow that hands its task to another one.
const calling = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: NAME, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: sub, type: subworkflow, config: {workflow_ref: REF, input_mapping: {task: "${ .task }"}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: sub}
  - {source: sub, target: end}
`

func callingOf(t testing.TB, name, ref string) *definition.Document {
	t.Helper()
	return enginetest.Define(t, strings.NewReplacer("NAME", name, "REF", ref).Replace(calling))
}

type workflows map[string]*definition.Document

func (w workflows) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if d := w[ref]; d != nil {
		return d, nil
	}
	return nil, errors.New("unknown")
}

// callers performs the workflows "deep", which calls "middle", which calls "research", in which an agent works.
func callers(t testing.TB, store history.Store, m chat.Model, w workflows, tools ...agent.Toolset) *graph.Runner {
	t.Helper()
	agents := enginetest.Must(agent.New(agent.Config{
		Models: map[string]agent.Model{"main": {Chat: m, Model: agentloop.Model{Model: "m"}}},
		Agents: map[string]agent.Agent{"clerk": {Config: agentloop.Config{Instructions: "You work."}, Tools: tools}},
	}))
	return enginetest.Must(graph.New(store, graph.Options{Delegates: activities.Composite{SDK: agents}, Work: graph.WorkAll, Workflows: w}))
}

func hierarchy(t testing.TB) workflows {
	t.Helper()
	return workflows{"research": enginetest.Define(t, researched), "middle": callingOf(t, "middle", "research"), "deep": callingOf(t, "deep", "middle")}
}

// over waits for the end of a run, and approves what the agents of its subworkflows ask for.
func over(t testing.TB, r *graph.Runner, id string) *view.Run {
	t.Helper()
	for range 1000 {
		run := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: id}))
		if run.Status.Terminal() {
			return run
		}
		for _, p := range run.Pending {
			if p.Kind == machine.WaitInterrupt {
				_, _ = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: p.ExecutionID, InterruptID: p.ID, Payload: object{"decision": "approve"}})
			}
		}
		time.Sleep(time.Minute)
	}
	t.Fatal("no end")
	return nil
}

// TestARetryGoesOnInSubworkflows: an agent that has paid and failed in a subworkflow, at whatever depth, goes on where it stood when the run at the
// root is retried: once, and again after the retry has failed too. Nothing is paid again, and each run names the one that it goes on with.
func TestARetryGoesOnInSubworkflows(t *testing.T) {
	t.Parallel()
	for depth, name := range []string{"middle", "deep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				below := strings.Repeat(":sub:sub", depth+1)
				p, store, m, w := newTill(0), historymem.New(), brokenDown(), hierarchy(t)
				r := callers(t, store, m, w, p)
				defer shut(t, r)
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: w[name], Input: object{"task": "Work."}}); err != nil {
					t.Fatal(err)
				}
				if run := over(t, r, "r"); run.Status != machine.Failed {
					t.Fatalf("%s %s", run.Status, run.Error)
				}
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", Anew: true}); !errors.Is(err, problem.RetryRepeatsEffects) || strings.Count(err.Error(), "(key r"+below+":research#1.1/t1.c1)") != 1 {
					t.Errorf("anew: %v", err)
				}
				from := "r"
				for i := range 3 {
					for end := 0; end <= len(below); end += len(":sub:sub") {
						want := "continues after t1.c1"
						if end < len(below) {
							want += " in " + from + below
						}
						stood := enginetest.Must(r.Status(t.Context(), graph.StatusRequest{ExecutionID: from + below[:end]})).GoesOn.String()
						if stood != want+"; 1 call is not repeated" {
							t.Errorf("%s%s %s", from, below[:end], stood)
						}
					}
					m.down.Store(i < 2)
					id := fmt.Sprint("again", i)
					before := m.asked.Load()
					if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: from, NewExecutionID: id}); err != nil {
						t.Fatal(err)
					}
					run := over(t, r, id)
					if want := map[bool]machine.Status{true: machine.Failed, false: machine.Completed}[i < 2]; run.Status != want {
						t.Fatalf("%s: %s %s", id, run.Status, run.Error)
					}
					if i == 2 && m.asked.Load() != before+1 {
						t.Errorf("asked %d times", m.asked.Load()-before)
					}
					child := enginetest.Must(store.Execution(t.Context(), id+below))
					if child.ForkedFrom.ExecutionID != from+below || child.Parent != strings.TrimSuffix(id+below, ":sub:sub") || child.Depth != depth+1 {
						t.Errorf("%s continues %v, parent %q, depth %d", child.ID, child.ForkedFrom, child.Parent, child.Depth)
					}
					for end := len(id); end <= len(id+below); end += len(":sub:sub") {
						checked(t, store, (id + below)[:end])
					}
					from = id
				}
				if !maps.Equal(p.keys, map[string]int{"r" + below + ":research#1.1/t1.c1": 1}) {
					t.Errorf("paid %v", p.keys)
				}
				marks := enginetest.Must(store.Handled(t.Context(), "r", "r"+below, "again0"+below, "again1"))
				if len(marks) != 4 {
					t.Errorf("handled: %v", marks)
				}
				moved := historymem.New()
				other := callers(t, moved, m, w, p)
				defer shut(t, other)
				for _, id := range []string{"r", "again2"} {
					var file bytes.Buffer
					if err := r.Export(t.Context(), id, graph.ExportOptions{}, &file); err != nil {
						t.Fatal(err)
					}
					if _, err := other.Import(t.Context(), &file); err != nil {
						t.Errorf("import of %s: %v", id, err)
					}
					checked(t, moved, id+below)
				}
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r" + below, NewExecutionID: "x"}); !errors.Is(err, problem.AlreadyRetried) {
					t.Errorf("a retry of the subworkflow alone: %v", err)
				}
			})
		})
	}
}

const besideEachOther = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: beside, version: 1.0.0}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: both, type: parallel, config: {join: all, branches: [{name: one, entry: first}, {name: two, entry: second}, {name: three, entry: third}]}}
  - {id: first, type: subworkflow, config: {workflow_ref: research, input_mapping: {task: {literal: first}}}}
  - {id: second, type: subworkflow, config: {workflow_ref: research, input_mapping: {task: {literal: second}}}}
  - {id: third, type: subworkflow, config: {workflow_ref: research, input_mapping: {task: {literal: third}}}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: both}
  - {source: both, target: end}
  - {source: first, target: end}
  - {source: second, target: end}
  - {source: third, target: end}
`

const mappedBelow = `
document: {schema: "https://agent-workflow.dev/schemas/workflow-definition.json", name: mapped, version: 1.0.0}
x-workflows-engine: {uses: [map]}
state_schema: {type: object}
nodes:
  - {id: start, type: start}
  - {id: each, type: subworkflow, config: {workflow_ref: research, input_mapping: {task: "${ .item }"}}, map: {items: '["first", "second", "third"]', as: item, concurrency: 3, collect: answers}}
  - {id: end, type: end, config: {output_mapping: .}}
edges:
  - {source: __start__, target: start}
  - {source: start, target: each}
  - {source: each, target: end}
`

// TestARetryOfSubworkflowsBesideEachOther: of three, one completes, one fails and one is cancelled by that, after each has paid. A retry keeps the first,
// and the agents of the others go on where they stood.
func TestARetryOfSubworkflowsBesideEachOther(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"branches": besideEachOther, "items": mappedBelow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var broken atomic.Bool
				broken.Store(true)
				var asked atomic.Int64
				m := model(func(ctx context.Context, req chat.Request) (chat.Reply, error) {
					asked.Add(1)
					task := ""
					for _, m := range req.Messages {
						task += m.Text
					}
					switch {
					case req.Messages[len(req.Messages)-1].Role != chat.Result:
						return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "refund", Arguments: "{}"}}}, nil
					case !broken.Load() || strings.Contains(task, "first"):
						return chat.Reply{Text: "done"}, nil
					case strings.Contains(task, "second"):
						time.Sleep(time.Minute)
						return chat.Reply{}, &activities.Failure{Code: string(problem.LLMProviderError), Message: "refused", Retryable: activities.RetryPointless}
					}
					<-ctx.Done()
					return chat.Reply{}, ctx.Err()
				})
				p, store, w := refunds(""), historymem.New(), hierarchy(t)
				r := callers(t, store, m, w, p)
				defer shut(t, r)
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: enginetest.Define(t, text)}); err != nil {
					t.Fatal(err)
				}
				if run := over(t, r, "r"); run.Status != machine.Failed {
					t.Fatalf("%s %s", run.Status, run.Error)
				}
				synctest.Wait()
				broken.Store(false)
				before := asked.Load()
				if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}); err != nil {
					t.Fatal(err)
				}
				run := over(t, r, "again")
				n, most := p.paid()
				if run.Status != machine.Completed || n != 3 || most != 1 || asked.Load() != before+2 {
					t.Errorf("%s %s: paid %v, asked %d times", run.Status, run.Error, p.keys, asked.Load()-before)
				}
				for _, e := range enginetest.Must(store.List(t.Context(), history.ListQuery{})).Executions {
					checked(t, store, e.ID)
				}
			})
		})
	}
}

// TestARetryOutlivesItsProcess: whatever of a retry of three levels is committed when its process ends, another one goes on with it, and pays
// nothing again.
func TestARetryOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	died := errors.New("the process has ended")
	for commits := range 12 {
		t.Run(fmt.Sprint(commits), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, store, m, w := newTill(0), historymem.New(), brokenDown(), hierarchy(t)
				r := callers(t, store, m, w, p)
				if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: w["deep"], Input: object{"task": "Work."}}); err != nil {
					t.Fatal(err)
				}
				over(t, r, "r")
				shut(t, r)
				m.down.Store(false)
				mortal := &mortalStore{Store: store, left: commits, err: died}
				r = callers(t, mortal, m, w, p)
				_, _ = r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}) // from commit to commit of its life
				synctest.Wait()
				shut(t, r)
				r = callers(t, store, m, w, p)
				defer func() { shut(t, r) }()
				if _, err := store.Execution(t.Context(), "again"); errors.Is(err, problem.ExecutionNotFound) {
					if commits > 0 {
						t.Fatal(err)
					}
					if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: "again"}); err != nil {
						t.Fatal(err)
					}
				} else if _, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
					t.Fatal(err)
				}
				run := over(t, r, "again")
				if run.Status != machine.Completed || !maps.Equal(p.keys, map[string]int{"r:sub:sub:sub:sub:research#1.1/t1.c1": 1}) {
					t.Errorf("%s %s: paid %v", run.Status, run.Error, p.keys)
				}
				for _, id := range []string{"again", "again:sub:sub", "again:sub:sub:sub:sub"} {
					checked(t, store, id)
				}
			})
		})
	}
}

// mortalStore takes a number of appends, and none after them.
type mortalStore struct {
	history.Store
	mu   sync.Mutex
	left int
	err  error
}

func (s *mortalStore) Append(ctx context.Context, b history.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left--; s.left < 0 {
		return s.err
	}
	return s.Store.Append(ctx, b)
}

// TestARetryLooksBelowFirst: what keeps an agent of a subworkflow from going on refuses the retry of its parent, before anything is written.
func TestARetryLooksBelowFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, store, w := newTill(0), historymem.New(), hierarchy(t)
		turns := model(func(_ context.Context, req chat.Request) (chat.Reply, error) {
			return chat.Reply{Calls: []chat.Call{{ID: "a", Name: "pay", Arguments: fmt.Sprintf(`{"to":"%d"}`, len(req.Messages))}}}, nil
		})
		r := callers(t, store, turns, w, p)
		defer shut(t, r)
		if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: w["deep"], Input: object{"task": "Work."}}); err != nil {
			t.Fatal(err)
		}
		run := over(t, r, "r")
		before := len(enginetest.Must(store.List(t.Context(), history.ListQuery{})).Executions)
		_, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r"})
		if e, ok := problem.As(err); !ok || e.Code != problem.AgentBudgetSpent || e.At.ExecutionID != "r:sub:sub:sub:sub" {
			t.Errorf("failed with %s, retried: %+v", run.ErrorCode, err)
		}
		if after := len(enginetest.Must(store.List(t.Context(), history.ListQuery{})).Executions); after != before {
			t.Error("a refused retry has begun a run")
		}
	})
}
