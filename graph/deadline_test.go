package graph_test

import (
	"context"
	"strings"
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
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// deadlined has a node a, with members, and a node z where a time-out leads.
func deadlined(t testing.TB, uses string, members ...string) *definition.Document {
	members = append(members, `"catch":[{"codes":["TIMEOUT"],"target":"z","as":"why"}]`)
	return workflowWith(t, "late", `"x-workflows-engine":{"uses":["catch","deadline"`+uses+`]}`,
		[]string{startNode(), tool("a", members...), tool("z"), endNode()}, "s a", "a e", "z e")
}

// slack is how long after its deadline a run may end.
const slack = 2 * time.Second

// wantLate checks that a node's visit ended by its deadline, and was caught.
func wantLate(t *testing.T, store history.Store, run *view.Run, begun time.Time, d time.Duration) {
	t.Helper()
	wantStatus(t, run, machine.Completed)
	if took := run.UpdatedAt.Sub(begun); took < d || took > d+slack {
		t.Errorf("ended after %s, the deadline is %s", took, d)
	}
	if why, _ := run.FinalState["why"].(object); why["code"] != string(problem.Timeout) || why["message"] != `node "a" did not end within `+d.String() {
		t.Errorf("caught %v", why)
	}
	wantTrue(t, store, run.ExecutionID)
}

// TestADeadlineOfANode passes in flight, in a pause between attempts, in a repair, while the attempt waits for a turn, in a map, and at a host.
func TestADeadlineOfANode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		uses    string
		members []string
		a       func(context.Context, activities.Request) (any, error)
		o       graph.Options
		busy    bool
	}{
		"in flight": {a: after(time.Hour, nil), members: []string{`"retry":{"max_attempts":3}`}},
		"deaf": {a: func(context.Context, activities.Request) (any, error) {
			time.Sleep(20 * time.Minute)
			return object{}, nil
		}},
		"in a pause": {
			a:       func(context.Context, activities.Request) (any, error) { return nil, activities.Fail("NO", "no") },
			members: []string{`"retry":{"max_attempts":3,"initial_interval":"8m"}`},
		},
		"in a later attempt": {a: after(time.Hour, nil), members: []string{`"timeout":"4m"`, `"retry":{"max_attempts":9}`}},
		"in a repair": {a: func(ctx context.Context, req activities.Request) (any, error) {
			if req.Repair == nil {
				return nil, wrong(object{"half": true})
			}
			return after(time.Hour, nil)(ctx, req)
		}},
		"queued": {busy: true, o: graph.Options{Capacity: 1}},
		"in a map": {
			uses: `,"map"`, members: []string{`"map":{"items":"[1,2,3,4]","concurrency":2,"collect":"out"}`},
			a: after(6*time.Minute, object{}),
		},
		"at a host": {o: graph.Options{DefaultMode: machine.HostMediated}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				tt.o.Activities = &script{answers: answers{"a": tt.a, "long": after(time.Hour, object{})}}
				if tt.a == nil {
					delete(tt.o.Activities.(*script).answers, "a")
				}
				r := newRunner(t, store, tt.o)
				if tt.busy {
					start(t, r, "other", linear(t, "other", "long"), nil)
				}
				begun := time.Now()
				run := start(t, r, "r", deadlined(t, tt.uses, append(tt.members, `"deadline":"10m"`)...), nil)
				if p := first(run); p != nil && p.Deadline.After(begun.Add(10*time.Minute)) {
					t.Errorf("pending %+v", p)
				}
				time.Sleep(10*time.Minute + slack)
				synctest.Wait()
				run = status(t, r, "r")
				if tt.o.DefaultMode == machine.HostMediated {
					_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: "r", NodeID: "a", OK: true})
					wantCode(t, err, problem.SubmitNodeMismatch)
					run = submit(t, r, "r", "z", nil)
				}
				if tt.busy { // node z has no place before the other run has ended
					if p := first(run); p == nil || p.NodeID != "z" {
						t.Errorf("pending %+v", p)
					}
					time.Sleep(time.Hour)
					run = settled(t, r, "r")
					wantStatus(t, run, machine.Completed)
					return
				}
				wantLate(t, store, run, begun, 10*time.Minute)
				time.Sleep(time.Hour) // what is deaf ends
				if rs := records(t, store, "r"); count(rs, history.TimerFired) != 1 || int64(len(rs)) != run.Seq {
					t.Errorf("%v", names(rs, history.Event))
				}
			})
		})
	}
}

// TestADeadlineWithoutAProcess: the time runs while no process is alive. The next one fails the node, and does not perform it again.
func TestADeadlineWithoutAProcess(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]func(context.Context, activities.Request) (any, error){
		"in flight":  hang,
		"in a pause": func(context.Context, activities.Request) (any, error) { return nil, activities.Fail("NO", "no") },
	} {
		for _, closed := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				mortal := historytest.NewFaultStore(store)
				x := &script{answers: answers{"a": a}}
				r, err := graph.New(mortal, graph.Options{Activities: x, CloseLimit: time.Second})
				if err != nil {
					t.Fatal(err)
				}
				start(t, r, "r", deadlined(t, "", `"deadline":"10m"`, `"retry":{"max_attempts":9,"initial_interval":"9m"}`), nil)
				time.Sleep(time.Second)
				if closed {
					closeRunner(t, r)
				} else {
					kill(t, r, mortal)
				}
				time.Sleep(time.Hour)
				calls := x.count()
				alive := time.Now()
				next := newRunner(t, store, graph.Options{Activities: x, Work: graph.WorkAll})
				time.Sleep(slack)
				run := status(t, next, "r")
				wantStatus(t, run, machine.Completed)
				if took := run.UpdatedAt.Sub(alive); took > slack || x.count() != calls+1 {
					t.Errorf("%s: over after %s, %d calls more", name, took, x.count()-calls)
				}
			})
		}
	}
}

// TestADeadlineOfARun passes while a person is asked, an attempt is in flight, in branches, and in a subworkflow. No catch of its own takes it.
func TestADeadlineOfARun(t *testing.T) {
	t.Parallel()
	for name, nodes := range map[string][]string{
		"asked":     {interrupt("w")},
		"in flight": {tool("w", `"catch":[{"codes":["*"],"target":"e"}]`)},
		"waiting":   {timerWait("w", "3h")},
		"signal":    {signalWait("w", "x")},
	} {
		for _, of := range []string{"definition", "start", "both"} {
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"w": after(5*time.Hour, object{})}}})
				root, req := `"x-workflows-engine":{"uses":["catch","deadline"],"deadline":"1h"}`, graph.StartRequest{ExecutionID: "r", Wait: graph.Wait{Limit: graph.NoWait}}
				switch of {
				case "start":
					root = `"x-workflows-engine":{"uses":["catch"]}`
					req.Deadline = time.Hour
				case "both":
					root = strings.Replace(root, "1h", "2h", 1)
					req.Deadline = time.Hour
				}
				if !strings.Contains(nodes[0], "catch") {
					root = strings.Replace(root, `"catch",`, "", 1)
					if of == "start" {
						root = ""
					}
				}
				req.Definition = workflowWith(t, "run", root, append(append([]string{startNode()}, nodes...), endNode()), "s w", "w e")
				begun := time.Now()
				if _, err := r.Start(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if run := status(t, r, "r"); !run.DeadlineAt.Equal(begun.Add(time.Hour)) {
					t.Errorf("deadline_at %s", run.DeadlineAt)
				}
				time.Sleep(time.Hour + slack)
				run := status(t, r, "r")
				wantStatus(t, run, machine.Failed)
				if took := run.UpdatedAt.Sub(begun); run.ErrorCode != string(problem.RunTimeout) || took > time.Hour+slack || took < time.Hour || run.ErrorNodeID != "" {
					t.Errorf("%s, of %s: after %s: %s at %q", name, of, took, run.ErrorCode, run.ErrorNodeID)
				}
				wantTrue(t, store, "r")
				if timers, err := store.DueTimers(t.Context(), time.Now().Add(24*time.Hour), 10); err != nil || len(timers) > 0 {
					t.Errorf("timers left: %v, %v", timers, err)
				}
			})
		}
	}
	r, _ := host(t, graph.Options{})
	_, err := r.Start(t.Context(), graph.StartRequest{Definition: linear(t, "lin", "a"), Deadline: -time.Second})
	wantCode(t, err, problem.ValidationError)
}

// TestADeadlineOfARunRollsItBack: a rollback begins then, and is not bound by the deadline.
func TestADeadlineOfARunRollsItBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		x := slow()
		r := newRunner(t, store, graph.Options{Activities: x})
		req := unawaited(saga(t, `"failure"`))
		req.Deadline = 30 * time.Minute
		begun := time.Now()
		if _, err := r.Start(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		time.Sleep(31 * time.Minute)
		if run := status(t, r, "r"); len(run.Rollbacks) != 1 || run.Rollbacks[0].Code != string(problem.RunTimeout) {
			t.Errorf("rollbacks %+v", run.Rollbacks)
		}
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Failed)
		if took := run.UpdatedAt.Sub(begun); run.Compensated != 2 || run.ErrorCode != string(problem.RunTimeout) || took != 32*time.Minute {
			t.Errorf("after %s: %d undone, %s", took, run.Compensated, run.ErrorCode)
		}
		wantTrue(t, store, "r")
	})
}

// TestADeadlineWaitsForARollback: the compensations of a caught failure are not abandoned. The run fails once they are done.
func TestADeadlineWaitsForARollback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		x := &script{answers: answers{
			"b":    func(context.Context, activities.Request) (any, error) { return nil, activities.Fail("NO", "no") },
			"undo": after(time.Hour, object{}), "c": after(time.Hour, object{}),
		}}
		r := newRunner(t, store, graph.Options{Activities: x})
		d := workflowWith(t, "saga", `"x-workflows-engine":{"uses":["catch","compensate","deadline"],"deadline":"10m"}`, []string{
			startNode(), tool("a", `"compensate":{"node":"undo"}`), tool("b", `"catch":[{"codes":["NO"],"target":"c","rollback":true}]`), tool("undo"), tool("c"), endNode(),
		}, "s a", "a b", "b e", "c e")
		begun := time.Now()
		if _, err := r.Start(t.Context(), unawaited(d)); err != nil {
			t.Fatal(err)
		}
		run := settled(t, r, "r")
		wantStatus(t, run, machine.Failed)
		if took := run.UpdatedAt.Sub(begun); run.ErrorCode != string(problem.RunTimeout) || took < time.Hour || took > time.Hour+slack {
			t.Errorf("after %s: %s", took, run.ErrorCode)
		}
		wantTrue(t, store, "r")
	})
}

// TestDeadlinesOfSubworkflows: that of a child fails the child, and a catch of the parent takes it. That of the parent's node, and of the
// parent, cancels the child.
func TestDeadlinesOfSubworkflows(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		child, root, node string
		code              problem.Code
		phase             machine.Status
	}{
		"of the child":  {child: `"x-workflows-engine":{"uses":["deadline"],"deadline":"10m"}`, code: problem.RunTimeout, phase: machine.Failed},
		"of the node":   {node: `,"deadline":"10m"`, code: problem.Timeout, phase: machine.Cancelled},
		"of the parent": {root: `,"deadline":"10m"`, code: problem.RunTimeout, phase: machine.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(time.Hour, object{})}}})
				register(t, r, "urn:child", workflowWith(t, "child", tt.child, []string{startNode(), tool("a"), endNode()}, "s a", "a e"))
				uses := `"catch"`
				if tt.child == "" {
					uses += `,"deadline"`
				}
				d := workflowWith(t, "parent", `"x-workflows-engine":{"uses":[`+uses+`]`+tt.root+`}`, []string{
					startNode(), `{"id":"v","type":"subworkflow","config":{"workflow_ref":"urn:child","input_mapping":{}},"catch":[{"codes":["*"],"target":"z","as":"why"}]` + tt.node + `}`, tool("z"), endNode(),
				}, "s v", "v e", "z e")
				if _, err := r.Start(t.Context(), unawaited(d)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10*time.Minute + slack)
				run := status(t, r, "r")
				if code := problem.Code(run.ErrorCode); tt.root != "" {
					wantStatus(t, run, machine.Failed)
					if code != tt.code {
						t.Errorf("failed with %s", code)
					}
				} else if why, _ := run.FinalState["why"].(object); run.Status != machine.Completed || why["code"] != string(tt.code) {
					t.Errorf("%s, caught %v", run.Status, why)
				}
				wantStatus(t, status(t, r, "r:sub:v"), tt.phase)
				wantTrue(t, store, "r")
				wantTrue(t, store, "r:sub:v")
			})
		})
	}
}

// TestAForkKeepsWhatIsLeft of a deadline. A retry after RUN_TIMEOUT continues where the run was, with the whole time.
func TestAForkKeepsWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		r := newRunner(t, store, graph.Options{Activities: &script{answers: answers{"a": after(10*time.Minute, object{"a": 1})}}})
		d := workflowWith(t, "late", `"x-workflows-engine":{"uses":["deadline"],"deadline":"1h"}`, []string{startNode(), tool("a"), interrupt("ask"), endNode()}, "s a", "a ask", "ask e")
		if _, err := r.Start(t.Context(), unawaited(d)); err != nil {
			t.Fatal(err)
		}
		wantStatus(t, settled(t, r, "r"), machine.Interrupted)
		time.Sleep(20 * time.Minute)
		fork := func(req graph.ForkRequest) *view.Run {
			t.Helper()
			req.ExecutionID = "r"
			run, err := r.Fork(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		run := fork(graph.ForkRequest{Seq: status(t, r, "r").Seq})
		wantStatus(t, run, machine.Interrupted)
		if left := time.Until(run.DeadlineAt); left != 50*time.Minute {
			t.Errorf("left %s", left)
		}
		time.Sleep(time.Hour)
		wantStatus(t, status(t, r, "r"), machine.Failed)
		run = fork(graph.ForkRequest{})
		wantStatus(t, run, machine.Interrupted)
		if left := time.Until(run.DeadlineAt); left != time.Hour || run.State["a"] != 1.0 {
			t.Errorf("left %s, state %v", left, run.State)
		}
		run, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: run.ExecutionID, Payload: object{"ok": true}})
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, run, machine.Completed)
		wantTrue(t, store, run.ExecutionID)
	})
}
