package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// clerk works through a list: effects that must happen at most once, a question between them, and a rest. What it does is in the world
// outside, which no crash of a process undoes.
type clerk struct {
	world *world
	rest  time.Duration
}

// world is what clerks have done: how often each effect was made, and for how many recorded steps an execution came so far as to make one.
type world struct {
	mu      sync.Mutex
	made    map[string]int
	reached map[int]int
	wrong   []string
}

func (w *world) effect(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made[key]++; w.made[key] > 1 {
		w.wrong = append(w.wrong, key+" was made twice")
	}
}

// reach notes that an execution is about to make what follows from some steps.
func (w *world) reach(steps int, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reached[steps] > 0 && !begun {
		w.wrong = append(w.wrong, fmt.Sprintf("what follows %d steps was begun before, and the execution was not told", steps))
	}
	w.reached[steps]++
}

func newWorld() *world { return &world{made: map[string]int{}, reached: map[int]int{}} }

func (c *clerk) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return scripted(ctx, req)
}

func (c *clerk) Capabilities(n activities.Node) activities.Capabilities { return worksAt(n, c.work) }

// worksAt returns the capabilities of an executor that records the steps of the node "work".
func worksAt(n activities.Node, work activities.Work) activities.Capabilities {
	if n.ID != "work" {
		return activities.Capabilities{}
	}
	return activities.Capabilities{Work: work}
}

// work makes the effects a, b and, once a person has agreed, c; then it rests and makes d.
func (c *clerk) work(ctx context.Context, req activities.Request, j activities.Journal) (activities.End, error) {
	steps, err := j.Steps(ctx)
	if err != nil {
		return activities.End{}, err
	}
	begun, done := j.Begun(), []any{}
	rested := false
	for i, s := range steps {
		switch s.Kind {
		case "made", "unknown":
			done = append(done, s.Key)
		case machine.StepAnswer:
			if answer, _ := s.Body[machine.StepPayload].(map[string]any); answer["ok"] != true {
				return activities.End{}, activities.Fail("REFUSED", "step %d: %v", i, s.Body)
			}
		case machine.StepWoken:
			rested = rested || steps[i-1].Kind == machine.StepRest
		}
	}
	answered := slices.ContainsFunc(steps, func(s activities.Step) bool { return s.Kind == machine.StepAnswer })
	for n := len(steps); len(done) < 4; n++ {
		switch key := []string{"a", "b", "c", "d"}[len(done)]; {
		case key == "c" && !answered:
			return activities.End{Question: &activities.Question{Key: "q1", Prompt: "Go on?", Body: map[string]any{"next": "c"}, Schema: map[string]any{"required": []any{"ok"}}}}, nil
		case key == "d" && !rested && c.rest > 0:
			return activities.End{Until: time.Now().Add(c.rest)}, nil
		default:
			kind := "made"
			if c.world.reach(n, begun); begun {
				kind = "unknown" // it may have been made
			} else {
				c.world.effect(key)
			}
			begun = false
			if err := j.Record(ctx, activities.Step{Key: key, Kind: kind, Totals: map[string]any{"done": len(done) + 1}}); err != nil {
				return activities.End{}, err
			}
			done = append(done, key)
		}
	}
	return activities.End{Result: &activities.Result{Output: map[string]any{"done": done}}}, nil
}

func clerical(t testing.TB, members ...string) *definition.Document {
	return workflow(t, "clerical", []string{startNode(), tool("work", members...), tool("after"), endNode()}, "s work", "work after", "after e")
}

func (c *clerk) runner(t testing.TB, store history.Store) *graph.Runner {
	t.Helper()
	r, err := graph.New(store, graph.Options{Activities: c, Work: graph.WorkAll})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// finish brings a clerical run to its end, agreeing when it asks.
func finish(t testing.TB, r *graph.Runner, id string) (*view.Run, error) {
	t.Helper()
	run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: id, Definition: clerical(t), AllowExisting: true})
	for err == nil && !run.Status.Terminal() {
		if p := first(run); p != nil && p.Kind == machine.WaitInterrupt {
			run, err = r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, InterruptID: p.ID, Payload: object{"ok": true}})
			continue
		}
		run, err = r.Status(t.Context(), graph.StatusRequest{ExecutionID: id, Wait: &graph.Wait{Limit: 2 * time.Hour}})
	}
	return run, err
}

// TestJournalSurvivesEveryCrash stops a process at each commit of a run whose executor records its steps, before and after the commit, and
// lets another one go on: no effect is made twice, what is recorded is not made again, and the end is the same.
func TestJournalSurvivesEveryCrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: historymem.New()}
		c := &clerk{world: newWorld(), rest: 20 * time.Second}
		r := c.runner(t, store)
		want, err := finish(t, r, "r")
		if err != nil || want.Status != machine.Completed || len(c.world.wrong) > 0 || len(c.world.made) != 4 {
			t.Fatalf("undisturbed: %v %+v %+v", err, want, c.world)
		}
		closeRunner(t, r)
		commands := names(records(t, store, "r"), history.Command)
		for k := range store.appends {
			for _, late := range []bool{false, true} {
				crashClerk(t, k, late, want, commands)
			}
		}
	})
}

func crashClerk(t *testing.T, k int, late bool, want *view.Run, commands []string) {
	t.Helper()
	at := fmt.Sprintf("append %d, late %v", k, late)
	store := historymem.New()
	c := &clerk{world: newWorld(), rest: 20 * time.Second}
	r := c.runner(t, &faulty{Store: store, left: k, late: late})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = finish(t, r, "r")
	}()
	select {
	case <-gone:
	case <-time.After(time.Minute):
	}
	closeRunner(t, r)
	<-gone
	time.Sleep(time.Minute) // the lease runs out
	r = c.runner(t, store)
	defer closeRunner(t, r)
	run, err := finish(t, r, "r")
	if err != nil {
		t.Fatalf("%s: %v", at, err)
	}
	rs := records(t, store, "r")
	if got := names(rs, history.Command); !slices.Equal(got, commands) || run.Status != want.Status || !sameJSON(run.FinalState, want.FinalState) {
		t.Errorf("%s: ended %s %v %v\n%v", at, run.Status, run.FinalState, run.Error, got)
	}
	if len(c.world.wrong) > 0 {
		t.Errorf("%s: %v", at, c.world.wrong)
	}
	unknown := 0
	for i := range rs {
		s, n, ok := machine.StepOf(&rs[i])
		if s.Kind == "unknown" {
			unknown++
		}
		if ok && s.Kind == "made" && c.world.made[s.Key] != 1 {
			t.Errorf("%s: %s is recorded as made, and was made %d times", at, s.Key, c.world.made[s.Key])
		}
		if ok && n == 0 {
			t.Errorf("%s: record %d has a step without a number", at, rs[i].Seq)
		}
	}
	if unknown > 1 {
		t.Errorf("%s: one death has left %d effects unknown", at, unknown)
	}
}

// TestJournalAnsweredElsewhere answers a question in a process that performs nothing: what follows from the answer has not been begun.
func TestJournalAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		c := &clerk{world: newWorld()}
		r := c.runner(t, store)
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: clerical(t)})
		if err != nil || run.Status != machine.Interrupted {
			t.Fatalf("%v %+v", err, run)
		}
		if p := first(run); p.Prompt != "Go on?" || !sameJSON(p.Show, object{"next": "c"}) || p.ResumeSchema["required"] == nil || p.Steps != 3 || !sameJSON(p.Totals, object{"done": 2}) {
			t.Errorf("the run waits for %+v", p)
		}
		closeRunner(t, r)
		if owner, err := store.Owner(t.Context(), "r"); err != nil || owner.Process != "" {
			t.Errorf("a run that rests has the owner %+v, %v", owner, err)
		}

		bare := newRunner(t, store, graph.Options{})
		id := first(run).ID
		if _, err := bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: object{"no": "schema"}}); err == nil {
			t.Error("an answer that breaks the schema of the question was taken")
		}
		for range 2 { // the second is answered as the first
			if _, err := bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: object{"ok": true}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err = bare.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: object{"ok": false}})
		wantCode(t, err, problem.InvalidResumePayload)
		if !errors.Is(err, problem.AnsweredDifferently) {
			t.Errorf("another answer: %v", err)
		}

		r = c.runner(t, store)
		defer closeRunner(t, r)
		if run, err = finish(t, r, "r"); err != nil || run.Status != machine.Completed {
			t.Fatalf("%v %+v", err, run)
		}
		if c.world.made["c"] != 1 || len(c.world.wrong) > 0 {
			t.Errorf("the effect behind the answer was made %d times: %v", c.world.made["c"], c.world.wrong)
		}
	})
}

// TestJournalInAFork goes on in a copy from a step, whose effects are made again there: they belong to the other run.
func TestJournalInAFork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		c := &clerk{world: newWorld()}
		r := c.runner(t, store)
		defer closeRunner(t, r)
		if run, err := finish(t, r, "r"); err != nil || run.Status != machine.Completed {
			t.Fatalf("%v %+v", err, run)
		}
		for _, rec := range records(t, store, "r") {
			if _, _, ok := machine.StepOf(&rec); !ok {
				continue
			}
			c.world = newWorld()
			id := fmt.Sprintf("fork-%d", rec.Seq)
			if _, err := r.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", NewExecutionID: id, Seq: rec.Seq}); err != nil {
				t.Fatalf("fork at %d: %v", rec.Seq, err)
			}
			run, err := finish(t, r, id)
			if err != nil || run.Status != machine.Completed {
				t.Fatalf("fork at %d: %v %+v", rec.Seq, err, run)
			}
			for _, s := range records(t, store, id) {
				if step, _, _ := machine.StepOf(&s); step.Kind == "unknown" {
					t.Errorf("fork at %d: the executor was told that %s may have been made", rec.Seq, step.Key)
				}
			}
			if len(c.world.wrong) > 0 {
				t.Errorf("fork at %d: %v", rec.Seq, c.world.wrong)
			}
		}
	})
}

// TestJournalSharesCommits records many steps at once: those that come while a commit is under way share the next one.
func TestJournalSharesCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: slowly{historymem.New()}}
		const n = 200
		r := newRunner(t, store, graph.Options{Activities: journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() {
					if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made"}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			steps, err := j.Steps(ctx)
			if err != nil || len(steps) != n {
				t.Errorf("%d steps, %v", len(steps), err)
			}
			return activities.End{Result: &activities.Result{}}, nil
		})})
		if run := start(t, r, "r", clerical(t), nil); settled(t, r, run.ExecutionID).Status != machine.Completed {
			t.Error("the run has not completed")
		}
		if store.appends > 10 {
			t.Errorf("%d commits for %d steps", store.appends, n)
		}
	})
}

// TestJournalEndsWithTheAttempt loses the lease, times out, reaches a limit, and records what is no step: Record says why, and nothing
// more is recorded.
func TestJournalEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	endless := func(got chan<- error) activities.Executor {
		return journaled(func(ctx context.Context, j activities.Journal) (activities.End, error) {
			for i := 0; ; i++ {
				time.Sleep(time.Second)
				if err := j.Record(ctx, activities.Step{Key: fmt.Sprint(i), Kind: "made", Body: map[string]any{"text": "0123456789"}}); err != nil {
					got <- err
					return activities.End{}, err
				}
			}
		})
	}
	for name, c := range map[string]struct {
		members string
		options graph.Options
		code    problem.Code
		status  machine.Status
	}{
		"timeout":      {members: `"timeout":"10s"`, code: problem.Timeout, status: machine.Failed},
		"record limit": {options: graph.Options{MaxRecords: 20}, code: problem.RecordLimitExceeded, status: machine.Failed},
		"byte limit":   {options: graph.Options{MaxBytes: 4000}, code: problem.ByteLimitExceeded, status: machine.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := make(chan error, 1)
				c.options.Activities = endless(got)
				r := newRunner(t, historymem.New(), c.options)
				members := []string{}
				if c.members != "" {
					members = append(members, c.members)
				}
				start(t, r, "r", clerical(t, members...), nil)
				wantCode(t, <-got, c.code)
				if run := settled(t, r, "r"); run.Status != c.status || run.ErrorCode != string(c.code) {
					t.Errorf("the run is %s: %s %s", run.Status, run.ErrorCode, run.Error)
				}
			})
		})
	}
}

// journaled is an executor that does one thing with its journal.
type journaled func(ctx context.Context, j activities.Journal) (activities.End, error)

func (f journaled) Execute(ctx context.Context, req activities.Request) (activities.Result, error) {
	return scripted(ctx, req)
}
func (f journaled) Capabilities(n activities.Node) activities.Capabilities {
	return worksAt(n, func(ctx context.Context, _ activities.Request, j activities.Journal) (activities.End, error) {
		return f(ctx, j)
	})
}
