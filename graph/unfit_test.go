package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// handlers is an executor for the step handlers that are named, and nothing else.
func handlers(t *testing.T, names ...string) activities.Executor {
	t.Helper()
	steps := activities.NewStepRegistry()
	for _, name := range names {
		err := steps.Register(name, func(context.Context, activities.Request) (any, error) { return object{name: true}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	return activities.Composite{Step: steps}
}

func step(id, handler string, members ...string) string {
	return fmt.Sprintf(`{"id":%q,"type":"step","config":{"handler":%q}%s}`, id, handler, more(members))
}

// TestAnInputForAnotherProcess brings inputs to a process that lacks what the run comes to then. They are recorded, since
// the caller has done its part, and the run goes on as far as it can here; it is not failed, but left to a process that has
// what is missing, and the answer says what that is.
func TestAnInputForAnotherProcess(t *testing.T) {
	t.Parallel()
	resume := func(t *testing.T, r *graph.Runner) (*view.Run, error) {
		return r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: "r:i#1", Payload: object{"ok": true}})
	}
	signal := func(t *testing.T, r *graph.Runner) (*view.Run, error) {
		return r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go", IdempotencyKey: "k"})
	}
	for name, tt := range map[string]struct {
		nodes []string
		edges []string
		input func(*testing.T, *graph.Runner) (*view.Run, error)
		has   []string
		lacks string
	}{
		"resume":            {[]string{interrupt("i"), step("b", "two")}, []string{"s i", "i b", "b e"}, resume, []string{"one"}, `step handler "two"`},
		"signal":            {[]string{signalWait("i", "go"), step("b", "two")}, []string{"s i", "i b", "b e"}, signal, []string{"one"}, `step handler "two"`},
		"no executor":       {[]string{interrupt("i"), step("b", "two")}, []string{"s i", "i b", "b e"}, resume, nil, "an executor for step nodes"},
		"a later node":      {[]string{interrupt("i"), step("b", "one"), step("c", "two")}, []string{"s i", "i b", "b c", "c e"}, resume, []string{"one"}, `step handler "two"`},
		"a timer first":     {[]string{interrupt("i"), timerWait("w", "1m"), step("b", "two")}, []string{"s i", "i w", "w b", "b e"}, resume, []string{"one"}, `step handler "two"`},
		"behind the branch": {[]string{fork("f", "all", "i", "j"), signalWait("i", "go"), signalWait("j", "more"), step("b", "two")}, []string{"s f", "f b", "i b", "j b", "b e"}, signal, []string{"one"}, `step handler "two"`},
		"another node type": {[]string{interrupt("i"), tool("b")}, []string{"s i", "i b", "b e"}, resume, []string{"one"}, "an executor for tool_call nodes"},
		"a delegate":        {[]string{interrupt("i"), delegateNode("b")}, []string{"s i", "i b", "b e"}, resume, []string{"one"}, "an executor for delegates of protocol a2a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			o := graph.Options{WaitLimit: time.Second, AllowInterruptInBranch: true}
			if tt.has != nil {
				o.Activities = handlers(t, tt.has...)
			}
			unfit := newRunner(t, store, o)
			o.Activities, o.Delegates = &script{}, delegate.Mock{}
			fit := newRunner(t, store, o)
			start(t, fit, "r", workflow(t, "w", append(append([]string{startNode()}, tt.nodes...), endNode()), tt.edges...), nil)

			run, err := unfit.Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
			if err != nil || run.Lacks == nil || !run.Lacks.Host {
				t.Errorf("%s: a host could go on instead: %+v, %v", name, run.Lacks, err)
			}
			run, err = tt.input(t, unfit)
			if err != nil || run.Status.Terminal() {
				t.Fatalf("%s: %+v, %v", name, run, err)
			}
			if name == "a timer first" {
				if wantStatus(t, run, machine.AwaitingTimer); run.Lacks != nil {
					t.Errorf("%s: lacks %+v before its time", name, run.Lacks)
				}
			} else if run.Lacks == nil || run.Lacks.Missing != tt.lacks || run.Lacks.NodeID == "" {
				t.Errorf("%s: lacks %+v, want %s", name, run.Lacks, tt.lacks)
			}
			if name == "behind the branch" {
				if _, err := unfit.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "more"}); err != nil {
					t.Fatal(err)
				}
			}
			if run, err = tt.input(t, unfit); err != nil || !run.Repeated {
				t.Errorf("%s: sent again: %+v, %v", name, run, err)
			}
			w := waitFor(time.Second)
			w.Progress = func(p graph.Progress) {
				if p.NodeID != "w" {
					t.Errorf("%s: told that %+v, which nobody performs", name, p)
				}
			}
			if _, err := unfit.Status(t.Context(), graph.StatusRequest{ExecutionID: "r", Wait: &w}); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Minute)
			if run = status(t, unfit, "r"); run.Status != machine.Running || run.Lacks == nil || run.Lacks.Missing != tt.lacks || run.Lacks.Host {
				t.Fatalf("%s: %+v, lacks %+v", name, run, run.Lacks)
			}
			if _, err := fit.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
				t.Fatal(err)
			}
			if run = settled(t, fit, "r"); run.Status != machine.Completed || run.Lacks != nil {
				t.Errorf("%s: %+v", name, run)
			}
		})
	}
}

// TestAnInputWithWhatIsLeft takes inputs where what is missing lies behind, on a way back, or with the host.
func TestAnInputWithWhatIsLeft(t *testing.T) {
	t.Parallel()
	loop := `{"id":"x","type":"switch","config":{"cases":[{"when":".again == true","target":"a"}],"default":"e"}}`
	for name, tt := range map[string]struct {
		nodes, edges []string
		mode         machine.Mode
		again        bool
		drives       bool
	}{
		"behind":            {[]string{step("a", "one"), interrupt("i"), step("b", "two")}, []string{"s a", "a i", "i b", "b e"}, "", false, true},
		"a way back":        {[]string{step("a", "one"), interrupt("i"), step("b", "two"), loop}, []string{"s a", "a i", "i b", "b x"}, "", false, true},
		"that way taken":    {[]string{step("a", "one"), interrupt("i"), step("b", "two"), loop}, []string{"s a", "a i", "i b", "b x"}, "", true, false},
		"performed by host": {[]string{interrupt("i"), step("a", "one")}, []string{"s i", "i a", "a e"}, machine.HostMediated, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := historymem.New()
			unfit := newRunner(t, store, graph.Options{WaitLimit: time.Second, Activities: handlers(t, "two")})
			fit := newRunner(t, store, graph.Options{Activities: &script{}})
			start(t, fit, "r", workflow(t, "w", append(append([]string{startNode()}, tt.nodes...), endNode()), tt.edges...), nil)
			settled(t, fit, "r")
			run, err := unfit.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true, "again": tt.again}, Caller: graph.Caller{Mode: tt.mode}})
			if err != nil {
				t.Fatal(err)
			}
			drove := run.Status == machine.Completed || run.Status == machine.AwaitingActivity
			if drove != tt.drives || drove != (run.Lacks == nil) {
				t.Errorf("%s: %+v", name, run)
			}
		})
	}
}

// TestAnInputForTheDriver brings a signal to a process that lacks a handler while another one drives the run: that one
// goes on with what follows.
func TestAnInputForTheDriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		work := &script{answers: answers{"a": after(time.Minute, object{"a": true})}}
		fit := newRunner(t, store, graph.Options{Activities: work, WaitLimit: time.Second})
		unfit := newRunner(t, store, graph.Options{Activities: handlers(t, "one"), WaitLimit: time.Second})
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "g"), step("a", "one"), signalWait("g", "go"), step("b", "two"), endNode()},
			"s f", "f e", "a e", "g b", "b e")
		start(t, fit, "r", d, nil)
		run, err := unfit.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: "go"})
		if err != nil || run.Status != machine.Running {
			t.Fatalf("%+v, %v", run, err)
		}
		wantStatus(t, settled(t, unfit, "r"), machine.Completed)
		if got := work.count(); got != 2 {
			t.Errorf("%d activities performed, want 2", got)
		}
	})
}

// TestAStartWithoutTheExecutor fails: the caller asked this process to perform the run, and hears what is missing.
func TestAStartWithoutTheExecutor(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{Activities: handlers(t, "one")})
	run := start(t, r, "r", workflow(t, "w", []string{startNode(), step("a", "two"), endNode()}, "s a", "a e"), nil)
	wantStatus(t, run, machine.Failed)
}

// TestAnAnswerWhereTheRunWasStarted answers a run in the process that started it and that lacks something: it goes on as
// far as it comes, as it would have without the question, and fails only where it comes to what is missing.
func TestAnAnswerWhereTheRunWasStarted(t *testing.T) {
	t.Parallel()
	way := `{"id":"x","type":"switch","config":{"cases":[{"when":".far == true","target":"b"}],"default":"a"}}`
	for far, want := range map[bool]machine.Status{false: machine.Completed, true: machine.Failed} {
		synctest.Test(t, func(t *testing.T) {
			r := newRunner(t, historymem.New(), graph.Options{Activities: handlers(t, "one")})
			d := workflow(t, "w", []string{startNode(), interrupt("i"), way, timerWait("w", "1m"), step("a", "one"), step("b", "two"), endNode()},
				"s i", "i x", "a w", "w e", "b e")
			wantStatus(t, start(t, r, "r", d, nil), machine.Interrupted)
			_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true, "far": far}})
			if err != nil {
				t.Fatal(err)
			}
			run := settled(t, r, "r")
			if wantStatus(t, run, want); far && run.ErrorNodeID != "b" {
				t.Errorf("failed at %q: %s", run.ErrorNodeID, run.Error)
			}
		})
	}
}

// TestASubworkflowForAnotherProcess resumes a run where its subworkflow's executor, or its definition, is missing.
func TestASubworkflowForAnotherProcess(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), step("c", "two"), endNode()}, "s c", "c e")
	d := workflow(t, "parent", []string{startNode(), interrupt("i"), subworkflow("v", "urn:child"), endNode()}, "s i", "i v", "v e")
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		unfit := newRunner(t, store, graph.Options{Activities: handlers(t, "one"), WaitLimit: time.Second, Work: graph.WorkAll})
		register(t, unfit, "urn:child", child)
		first := newRunner(t, store, graph.Options{Activities: &script{}})
		start(t, first, "r", d, nil)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		run, err := unfit.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", Payload: object{"ok": true}})
		if err != nil || run.Status.Terminal() || run.Lacks == nil || !strings.Contains(run.Lacks.Missing, `step handler "two"`) {
			t.Fatalf("%+v, lacks %+v, %v", run, run.Lacks, err)
		}
		time.Sleep(2 * time.Minute)
		if run = status(t, unfit, "r"); run.Status.Terminal() || run.Lacks == nil {
			t.Errorf("%+v", run)
		}
		fit := newRunner(t, store, graph.Options{Activities: &script{}, Work: graph.WorkAll})
		register(t, fit, "urn:child", child)
		time.Sleep(2 * time.Minute)
		wantStatus(t, status(t, unfit, "r"), machine.Completed)
	})
}

// TestABystanderLeavesTheParentAlone ends a subworkflow in a process without executors, in every way that such a process
// has. The parent, which needs one, is not failed but goes on where there is one.
func TestABystanderLeavesTheParentAlone(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), fork("f", "any", "g", "i", "w"), signalWait("g", "go"), interrupt("i"), timerWait("w", "1h"), endNode()},
		"s f", "f e", "g e", "i e", "w e")
	for name, end := range map[string]func(*testing.T, *graph.Runner) error{
		"signal": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r:sub:v", Name: "go"})
			return err
		},
		"resume": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r:sub:v", Payload: object{"ok": true}})
			return err
		},
		"timer": func(t *testing.T, r *graph.Runner) error {
			time.Sleep(time.Hour)
			_, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "r:sub:v"})
			return err
		},
		"cancel": func(t *testing.T, r *graph.Runner) error {
			_, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r:sub:v"})
			return err
		},
	} {
		for _, background := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				var d *definition.Document
				if name == "cancel" {
					d = workflow(t, "parent", []string{startNode(), fork("p", "any", "v", "h"), subworkflow("v", "urn:child"), signalWait("h", "later"), tool("b"), endNode()},
						"s p", "p b", "v b", "h b", "b e")
				} else {
					d = workflow(t, "parent", []string{startNode(), subworkflow("v", "urn:child"), tool("b"), endNode()}, "s v", "v b", "b e")
				}
				o := graph.Options{Activities: &script{}, AllowInterruptInBranch: true}
				capable := newRunner(t, store, o)
				register(t, capable, "urn:child", child)
				start(t, capable, "r", d, nil)
				if err := capable.Close(); err != nil {
					t.Fatal(err)
				}
				bare := newRunner(t, store, graph.Options{AllowInterruptInBranch: true})
				if err := end(t, bare); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if run := status(t, bare, "r"); run.Status.Terminal() {
					t.Fatalf("%s: %+v", name, run)
				}
				o.Work = workAll(background)
				capable = newRunner(t, store, o)
				if background {
					time.Sleep(time.Minute)
				} else if _, err := capable.Recover(t.Context(), graph.RecoverRequest{}); err != nil {
					t.Fatal(err)
				}
				want := machine.Completed
				if name == "cancel" {
					want = machine.AwaitingSignal // the join tolerates it, and waits for the other branch
				}
				wantStatus(t, settled(t, capable, "r"), want)
			})
		}
	}
}
