package graph_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historysql"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// able is an executor that has some step handlers.
type able struct {
	t *testing.T
	*script
	handlers []string
}

func (a able) Capabilities(n activities.Node) activities.Capabilities {
	name, _ := n.Config["handler"].(string)
	return performs(slices.Contains(a.handlers, name))
}

func (a able) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	if a.Capabilities(req.Node()).Missing != activities.MissingNothing {
		a.t.Errorf("%s was handed to a process that has %v", req.IdempotencyKey, a.handlers)
	}
	return a.script.Execute(ctx, req)
}

// agentOf is an executor of delegates that notes them where activities are noted.
type agentOf struct{ *script }

func (a agentOf) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	res, err := a.script.Execute(ctx, activities.Request{NodeID: req.NodeID, Visit: req.Visit, Attempt: req.Attempt, IdempotencyKey: req.IdempotencyKey})
	out, _ := res.Output.(map[string]any)
	return activities.Result{Output: out}, err
}

// equip gives the options of a process that has some step handlers, and an agent for delegates if "agent" is among them.
func equip(t *testing.T, work *script, handlers ...string) graph.Options {
	o := graph.Options{Activities: able{t, work, handlers}, Work: graph.WorkAll}
	if slices.Contains(handlers, "agent") {
		o.Delegates = agentOf{work}
	}
	return o
}

// kill ends a process without a word, its leases included.
func kill(t *testing.T, r *graph.Runner, store *historytest.FaultStore) {
	t.Helper()
	synctest.Wait()
	store.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
	_, _ = store.Execution(t.Context(), "r") // strikes
	closeRunner(t, r)
}

// bereft starts a run in a process that has everything and dies before anything has an outcome.
func bereft(t *testing.T, store history.Store, d *definition.Document, children ...*definition.Document) {
	t.Helper()
	bereftAs(t, store, "r", d, children...)
}

func bereftAs(t *testing.T, store history.Store, id string, d *definition.Document, children ...*definition.Document) {
	t.Helper()
	mortal := historytest.NewFaultStore(store)
	r := newRunner(t, mortal, graph.Options{Activities: activities.ExecutorFunc(func(ctx context.Context, _ activities.Request) (activities.Result, error) {
		<-ctx.Done()
		return activities.Result{}, context.Cause(ctx)
	}), Delegates: delegate.Mock{}})
	for _, c := range children {
		register(t, r, "urn:child", c)
	}
	if _, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
		t.Fatal(err)
	}
	kill(t, r, mortal)
}

// once checks that each attempt has one request and one outcome, and that each other fact is there once.
func once(t *testing.T, store history.Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		seen := map[string]bool{}
		rs := records(t, store, id)
		for _, r := range rs {
			if r.Kind == history.Command || r.Name == history.StateUpdated {
				continue
			}
			fact := fmt.Sprint(r.Name, " ", r.Payload.NodeID, "#", r.Payload.Visit, ".", r.Payload.Attempt)
			if seen[fact] {
				t.Errorf("%s: %s is recorded twice: %v", id, fact, names(rs, ""))
			}
			seen[fact] = true
		}
	}
}

// stores gives two handles of a store, as two processes have.
var stores = map[string]func(*testing.T) [2]history.Store{
	"memory": func(*testing.T) [2]history.Store {
		s := historymem.New()
		return [2]history.Store{s, s}
	},
	"file": func(t *testing.T) (both [2]history.Store) {
		path := filepath.Join(t.TempDir(), "runs.db")
		for i := range both {
			s, err := historysql.Open(t.Context(), path, historysql.Options{Synchronous: historysql.Normal})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			both[i] = s
		}
		return both
	},
}

// TestTwoProcessesShareARunThatNeitherCanPerformAlone kills the driver of a run whose nodes need handlers that two other
// processes have between them. They hand the run to and fro, and what is recorded is what one process would have.
func TestTwoProcessesShareARunThatNeitherCanPerformAlone(t *testing.T) {
	t.Parallel()
	const retry = `,"retry":{"max_attempts":3,"initial_interval":"1m"}}`
	stubborn := func(_ context.Context, req activities.Request) (any, error) {
		if req.Attempt < 3 {
			return nil, errors.New("not yet")
		}
		return object{"b": req.Attempt}, nil
	}
	child := workflow(t, "child", []string{startNode(), step("c", "one"), step("d", "two"), endNode()}, "s c", "c d", "d e")
	for name, tt := range map[string]struct {
		nodes, edges []string
		first        []string // the calls of the process with the handler "one"
		second       []string // those of the one with "two" and the agent
		unordered    bool     // the script depends on who is first
	}{
		"one after the other": {[]string{step("a", "one"), step("b", "two")}, []string{"s a", "a b", "b e"}, []string{"a#1.1"}, []string{"b#1.1"}, false},
		"the other way round": {[]string{step("a", "two"), step("b", "one")}, []string{"s a", "a b", "b e"}, []string{"b#1.1"}, []string{"a#1.1"}, false},
		"in turns": {
			[]string{step("a", "one"), step("b", "two"), step("c", "one"), step("d", "two")},
			[]string{"s a", "a b", "b c", "c d", "d e"}, []string{"a#1.1", "c#1.1"}, []string{"b#1.1", "d#1.1"}, false,
		},
		"a delegate": {[]string{step("a", "one"), delegateNode("b"), step("c", "one")}, []string{"s a", "a b", "b c", "c e"}, []string{"a#1.1", "c#1.1"}, []string{"b#1.1"}, false},
		"join all": {
			[]string{fork("f", "all", "a", "b"), step("a", "one"), step("b", "two"), step("c", "two")},
			[]string{"s f", "f c", "a c", "b c", "c e"}, []string{"a#1.1"}, []string{"b#1.1", "c#1.1"}, false,
		},
		"branches of both": {
			[]string{fork("f", "all", "a", "b"), step("a", "one"), step("b", "two"), step("c", "two"), step("d", "one")},
			[]string{"s f", "f e", "a c", "c e", "b d", "d e"}, []string{"a#1.1", "d#1.1"}, []string{"b#1.1", "c#1.1"}, false,
		},
		"join any": {
			[]string{fork("f", "any", "a", "b"), step("a", "one"), step("b", "two"), step("c", "one"), step("d", "two")},
			[]string{"s f", "f c", "a c", "b c", "c d", "d e"}, []string{"c#1.1"}, []string{"d#1.1"}, true,
		},
		"subworkflow": {
			[]string{step("a", "two"), subworkflow("v", "urn:child"), step("b", "one")},
			[]string{"s a", "a v", "v b", "b e"}, []string{"v:c#1.1", "b#1.1"}, []string{"a#1.1", "v:d#1.1"}, false,
		},
		"attempts": {
			[]string{step("a", "one"), strings.TrimSuffix(step("b", "two"), "}") + retry, step("c", "one")},
			[]string{"s a", "a b", "b c", "c e"}, []string{"a#1.1", "c#1.1"}, []string{"b#1.1", "b#1.2", "b#1.3"}, false,
		},
	} {
		for kind, open := range stores {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				d := workflow(t, "w", append(append([]string{startNode()}, tt.nodes...), endNode()), tt.edges...)
				var whole []string
				var state any
				synctest.Test(t, func(t *testing.T) { // one process that has everything
					store := historymem.New()
					alone := &script{answers: answers{"b": stubborn}}
					if name != "attempts" {
						alone.answers = nil
					}
					r := newRunner(t, store, equip(t, alone, "one", "two", "agent"))
					register(t, r, "urn:child", child)
					start(t, r, "r", d, nil)
					run := settled(t, r, "r")
					wantStatus(t, run, machine.Completed)
					whole, state = names(records(t, store, "r"), history.Command), run.FinalState
				})
				synctest.Test(t, func(t *testing.T) {
					both := open(t)
					bereft(t, both[0], d, child)
					one, two := &script{}, &script{}
					if name == "attempts" {
						two.answers = answers{"b": stubborn}
					}
					first := newRunner(t, both[0], equip(t, one, "one"))
					second := newRunner(t, both[1], equip(t, two, "two", "agent"))
					for _, r := range []*graph.Runner{first, second} {
						register(t, r, "urn:child", child)
					}
					run := settled(t, first, "r")
					wantStatus(t, run, machine.Completed)
					long := func(keys []string) (ks []string) {
						for _, k := range keys {
							if rest, isChild := strings.CutPrefix(k, "v:"); isChild {
								ks = append(ks, "r:sub:v:"+rest)
							} else {
								ks = append(ks, "r:"+k)
							}
						}
						return ks
					}
					got, want := [][]string{one.keys(), two.keys()}, [][]string{long(tt.first), long(tt.second)}
					for i := range got {
						if tt.unordered { // one of the branches is begun first, and may be the only one
							got[i] = slices.DeleteFunc(got[i], func(k string) bool { return k == "r:a#1.1" || k == "r:b#1.1" })
						}
						slices.Sort(got[i]) // branches are begun in any order
						slices.Sort(want[i])
					}
					if !slices.Equal(got[0], want[0]) || !slices.Equal(got[1], want[1]) {
						t.Errorf("performed %v, want %v", got, want)
					}
					ids := []string{"r"}
					if name == "subworkflow" {
						ids = append(ids, "r:sub:v")
					}
					once(t, both[1], ids...)
					if rs := names(records(t, both[1], "r"), history.Command); !tt.unordered && (!slices.Equal(rs, whole) || !sameJSON(run.FinalState, state)) {
						t.Errorf("recorded %v with %v, want %v with %v", rs, run.FinalState, whole, state)
					}
				})
			})
		}
	}
}

// writes are the calls of a store that change it, except for those by which a worker keeps its lease.
func writes(store *historytest.FaultStore) (ws []string) {
	calls := store.Calls()
	worker := slices.Contains(calls, "Overview")
	for _, call := range calls {
		if worker && call == "Renew" {
			continue
		}
		if slices.Contains([]string{"Append", "Renew", "Release", "Claim", "Disown", "Offer"}, call) || strings.HasPrefix(call, "Put") {
			ws = append(ws, call)
		}
	}
	return ws
}

// TestALoneProcessGoesAsFarAsItCan restarts the only process without one of its handlers. A run that does not come to it
// completes. One that does stands still, without a write however long that takes, and says what is missing; it goes on
// where there is a process that has it, and can be cancelled from any.
func TestALoneProcessGoesAsFarAsItCan(t *testing.T) {
	t.Parallel()
	way := `{"id":"x","type":"switch","config":{"cases":[{"when":".far == true","target":"b"}],"default":"c"}}`
	d := workflow(t, "w", []string{startNode(), step("a", "one"), way, step("b", "two"), step("c", "one"), endNode()}, "s a", "a x", "b c", "c e")
	for name, tt := range map[string]struct {
		far    bool
		finish func(*testing.T, *graph.Runner, history.Store)
	}{
		"not needed": {},
		"another process": {true, func(t *testing.T, lone *graph.Runner, store history.Store) {
			two := &script{}
			newRunner(t, store, equip(t, two, "two"))
			wantStatus(t, settled(t, lone, "r"), machine.Completed)
			if !slices.Equal(two.keys(), []string{"r:b#1.1"}) {
				t.Errorf("the other process performed %v", two.keys())
			}
		}},
		"recover there": {true, func(t *testing.T, _ *graph.Runner, store history.Store) {
			o := equip(t, &script{}, "one", "two")
			o.Work = graph.WorkOwn
			r := newRunner(t, store, o)
			if res, err := r.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 1 {
				t.Errorf("recovered %+v, %v", res, err)
			}
			wantStatus(t, settled(t, r, "r"), machine.Completed)
		}},
		"cancel here": {true, func(t *testing.T, lone *graph.Runner, _ history.Store) {
			run, err := lone.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"})
			if err != nil || run.Status != machine.Cancelled || run.Lacks != nil {
				t.Errorf("%+v, %v", run, err)
			}
		}},
		"cancel elsewhere": {true, func(t *testing.T, lone *graph.Runner, store history.Store) {
			if _, err := newRunner(t, store, graph.Options{}).Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"}); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, settled(t, lone, "r"), machine.Cancelled)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, d)
				work := &script{answers: answers{"a": after(0, object{"far": tt.far})}}
				watched := historytest.NewFaultStore(store)
				lone := newRunner(t, watched, equip(t, work, "one"))
				time.Sleep(time.Minute)
				if !tt.far {
					wantStatus(t, status(t, lone, "r"), machine.Completed)
					return
				}
				for range 2 {
					watched.Set(historytest.Fault{Reads: true})
					before := names(records(t, store, "r"), "")
					time.Sleep(time.Hour)
					if res, err := lone.Recover(t.Context(), graph.RecoverRequest{}); err != nil || len(res.ExecutionIDs) != 0 {
						t.Errorf("recovered %+v, %v", res, err)
					}
					run := status(t, lone, "r")
					if l := run.Lacks; run.Status != machine.Running || l == nil || l.ExecutionID != "r" || l.NodeID != "b" || l.Missing != `step handler "two"` || l.Setting == "" || l.Host {
						t.Fatalf("%+v, lacks %+v", run, l)
					}
					if ws := writes(watched); len(ws) > 0 || len(watched.Calls()) == 0 {
						t.Errorf("wrote %v", ws)
					}
					if after := names(records(t, store, "r"), ""); !slices.Equal(before, after) {
						t.Errorf("recorded %v", after)
					}
					if ids := left(t, store); !slices.Equal(ids, []string{"r"}) {
						t.Errorf("the run was not disowned: %v", ids)
					}
					closeRunner(t, lone) // and once more after a restart
					lone = newRunner(t, watched, equip(t, work, "one"))
				}
				tt.finish(t, lone, store)
				if want := []string{"r:a#1.1"}; !slices.Equal(work.keys()[:1], want) {
					t.Errorf("performed %v", work.keys())
				}
				once(t, store, "r")
			})
		})
	}
}

// TestASubworkflowThatNobodyKnows waits in a process that does not know its workflow, without a write, until it does.
func TestASubworkflowThatNobodyKnows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
		watched := historytest.NewFaultStore(store)
		lone := newRunner(t, watched, equip(t, &script{}, "one"))
		time.Sleep(2 * time.Minute)
		watched.Set(historytest.Fault{Reads: true})
		time.Sleep(time.Hour)
		run := status(t, lone, "r")
		if run.Status.Terminal() || run.Lacks == nil || run.Lacks.NodeID != "v" || run.Lacks.Setting != "Options.Workflows" {
			t.Errorf("%+v, lacks %+v", run, run.Lacks)
		}
		if ws := writes(watched); len(ws) > 0 {
			t.Errorf("wrote %v", ws)
		}
		register(t, lone, "urn:child", child)
		wantStatus(t, settled(t, lone, "r"), machine.Completed)
		once(t, store, "r", "r:sub:v")
	})
}

// TestAnInputBesideWhatIsMissing answers a branch of a run while another branch waits for a handler that this process
// lacks, and for one that this process has: that one is performed at once.
func TestAnInputBesideWhatIsMissing(t *testing.T) {
	t.Parallel()
	d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "g"), step("a", "two"), signalWait("g", "go"), step("b", "one"), endNode()},
		"s f", "f e", "a e", "g b", "b e")
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, d)
		time.Sleep(time.Minute)
		work := &script{}
		o := equip(t, work, "one")
		o.Work = graph.WorkOwn
		r := newRunner(t, store, o)
		run, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", Caller: graph.Caller{Wait: waitFor(time.Second)}})
		if err != nil || run.Status != machine.Running || run.Lacks == nil || run.Lacks.NodeID != "a" {
			t.Errorf("%+v, %v", run, err)
		}
		if !slices.Equal(work.keys(), []string{"r:b#1.1"}) {
			t.Errorf("performed %v", work.keys())
		}
		_, err = r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "stop"}) // refused, and leaves no owner
		if err == nil {
			t.Error("taken")
		}
		if ids := left(t, store); len(ids) != 1 {
			t.Errorf("left %v", ids)
		}
		newRunner(t, store, equip(t, &script{}, "two"))
		wantStatus(t, settled(t, r, "r"), machine.Completed)
		once(t, store, "r")
	})
}

// TestABackOffForAnotherProcess lets the time of a back-off pass in a process that lacks the handler: the next attempt
// begins, with its full time, where it can be performed.
func TestABackOffForAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		node := strings.TrimSuffix(step("a", "two"), "}") + `,"timeout":"10s","retry":{"max_attempts":2,"initial_interval":"10m"}}`
		d := workflow(t, "w", []string{startNode(), node, endNode()}, "s a", "a e")
		failing := &script{answers: answers{"a": func(context.Context, activities.Request) (any, error) { return nil, errors.New("no") }}}
		first := newRunner(t, store, equip(t, failing, "two"))
		start(t, first, "r", d, nil)
		closeRunner(t, first)
		lone := newRunner(t, store, equip(t, &script{}, "one"))
		time.Sleep(time.Hour)
		run := status(t, lone, "r")
		if wantStatus(t, run, machine.AwaitingTimer); run.Lacks == nil || run.Lacks.NodeID != "a" {
			t.Errorf("lacks %+v", run.Lacks)
		}
		work := &script{}
		newRunner(t, store, equip(t, work, "two"))
		if wantStatus(t, settled(t, lone, "r"), machine.Completed); !slices.Equal(work.keys(), []string{"r:a#1.2"}) {
			t.Errorf("performed %v", work.keys())
		}
		once(t, store, "r")
	})
}

// TestManyRunsThatNobodyPerforms holds that runs which a process cannot take over do not keep others from their turn.
func TestManyRunsThatNobodyPerforms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		all := newRunner(t, store, equip(t, &script{answers: answers{"a": hang}}, "one", "two"))
		const strangers = 10
		for i := range strangers + 1 {
			handler := "two"
			if i == strangers {
				handler = "one"
			}
			d := workflow(t, "w", []string{startNode(), step("a", handler), endNode()}, "s a", "a e")
			if _, err := all.Start(t.Context(), graph.StartRequest{ExecutionID: fmt.Sprint(i), Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		closeRunner(t, all)
		o := equip(t, &script{}, "one")
		o.Work = graph.WorkOwn
		r := newRunner(t, store, o)
		var taken []string
		for range (strangers + 2) / 2 {
			res, err := r.Recover(t.Context(), graph.RecoverRequest{Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, res.ExecutionIDs...)
		}
		if !slices.Equal(taken, []string{fmt.Sprint(strangers)}) {
			t.Errorf("taken over: %v", taken)
		}
	})
}

// sluggish is a Resolver that knows nothing, the first time at once and then after an hour.
type sluggish struct{ asked atomic.Int64 }

func (s *sluggish) ResolveWorkflow(ctx context.Context, _, _ string) (*definition.Document, error) {
	if s.asked.Add(1) > 1 {
		select {
		case <-time.After(time.Hour):
		case <-ctx.Done():
		}
	}
	return nil, problem.New(problem.WorkflowNotFound, "no")
}

// TestASlowSourceOfWorkflowsHoldsNobodyUp asks again and again for a workflow whose source takes its time: other runs are
// taken over meanwhile, and the source is asked by one at a time.
func TestASlowSourceOfWorkflowsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		bereft(t, store, workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e"))
		source := &sluggish{}
		o := equip(t, &script{}, "one")
		o.Workflows = source
		lone := newRunner(t, store, o)
		time.Sleep(2 * time.Minute)
		before := source.asked.Load()

		other := newRunner(t, store, equip(t, &script{answers: answers{"a": hang}}, "one"))
		atOnce(t, other, "q", workflow(t, "q", []string{startNode(), step("a", "one"), endNode()}, "s a", "a e"))
		closeRunner(t, other)
		begun := time.Now()
		wantStatus(t, settled(t, lone, "q"), machine.Completed)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("taken over after %s", took)
		}
		time.Sleep(10 * time.Minute)
		if n := source.asked.Load() - before; before < 2 || n > 1 {
			t.Errorf("asked %d times, and %d times more", before, n)
		}
		wantCode(t, func() error {
			_, err := lone.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
			return err
		}(), problem.SignalNotAwaiting)
	})
}

// left are the runs that need a process and have none: they are ready, or orphans.
func left(t testing.TB, store history.Store) []string {
	t.Helper()
	ids, err := store.Unowned(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	queue, _ := history.As[history.Queue](store)
	lanes, err := queue.Lanes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lanes {
		ready, err := queue.ReadyIn(t.Context(), l.Lane, 0)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ready...)
	}
	return ids
}
