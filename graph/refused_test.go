package graph_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// TestASubworkflowThatThisProcessMustRefuse lets a run that others began come to a subworkflow whose definition this process
// knows and its settings refuse. It is left to others like one that is not known, and says why; where it is accepted it goes on.
func TestASubworkflowThatThisProcessMustRefuse(t *testing.T) {
	t.Parallel()
	child := workflow(t, "child", []string{startNode(), step("c", "one"), endNode()}, "s c", "c e")
	asks := workflow(t, "child", []string{startNode(), fork("f", "any", "i", "c"), interrupt("i"), step("c", "one"), endNode()}, "s f", "f e", "i e", "c e")
	large := workflow(t, "child", []string{startNode(), step("c", "one", `"metadata":{"notes":"`+strings.Repeat("n", 1000)+`"}`), endNode()}, "s c", "c e")
	d := workflow(t, "w", []string{startNode(), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s a", "a v", "v e")
	for name, tt := range map[string]struct {
		child *definition.Document
		set   func(*graph.Options)
		why   string
		code  problem.Code // what a run that is started here fails with
	}{
		"signing policy": {child, func(o *graph.Options) {
			o.VerifyDefinition = func(d *definition.Document) error {
				if d == child {
					return problem.New(problem.ValidationError, "the definition is not signed")
				}
				return nil
			}
		}, "not signed", problem.ValidationError},
		"interrupt in a branch": {asks, func(*graph.Options) {}, "PARALLEL_BRANCH", problem.InterruptInParallelBranch},
		"size":                  {large, func(o *graph.Options) { o.MaxDocumentBytes = 1000 }, "limit of 1000", problem.ValidationError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := historymem.New()
				bereft(t, store, d)
				time.Sleep(time.Minute)
				watched := historytest.NewFaultStore(store)
				s := newSource(0)
				o := equip(t, &script{}, "one")
				o.Workflows = s
				tt.set(&o)
				lone := newRunner(t, watched, o)
				time.Sleep(time.Minute)
				if l := status(t, lone, "r").Lacks; l == nil || l.Setting != "Options.Workflows" {
					t.Errorf("where it is not known at all: lacks %+v", l)
				}
				s.learn("urn:child", tt.child)
				time.Sleep(time.Minute)
				standsStill(t, lone, watched)
				run := status(t, lone, "r")
				if l := run.Lacks; run.Status != machine.Running || l == nil || l.NodeID != "v" || l.Setting != "" || !strings.Contains(l.Missing, tt.why) {
					t.Errorf("%+v, lacks %+v", run, l)
				}
				found, err := lone.Recover(t.Context(), graph.RecoverRequest{DryRun: true})
				if err != nil || len(found.ExecutionIDs) > 0 || len(found.Left) != 1 || found.Left[0].Lack == nil || found.Left[0].Lack.NodeID != "v" {
					t.Errorf("a dry run: %+v, %v", found, err)
				}
				o = equip(t, &script{}, "one")
				o.Workflows, o.AllowInterruptInBranch = knows{tt.child}, true
				wantStatus(t, settled(t, newRunner(t, store, o), "r"), machine.Completed)
				once(t, store, "r", "r:sub:v")

				own := workflow(t, "o", []string{startNode(), subworkflow("v", "urn:child"), endNode()}, "s v", "v e")
				run = start(t, lone, "own", own, nil)
				if wantStatus(t, run, machine.Failed); run.ErrorCode != string(tt.code) {
					t.Errorf("a run that was started here: %s", run.ErrorCode)
				}
			})
		})
	}
}

// TestASubworkflowUnderWayThatThisProcessCannotRead takes over a run whose subworkflow was begun where interrupts are allowed in
// branches. What else the run has in flight is performed here, once, and the subworkflow is another process's.
func TestASubworkflowUnderWayThatThisProcessCannotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := historymem.New()
		asks := workflow(t, "child", []string{startNode(), fork("f", "any", "i", "c"), interrupt("i"), step("c", "one"), endNode()}, "s f", "f e", "i e", "c e")
		d := workflow(t, "w", []string{startNode(), fork("f", "all", "a", "v"), step("a", "one"), subworkflow("v", "urn:child"), endNode()}, "s f", "f e", "a e", "v e")
		mortal := historytest.NewFaultStore(store)
		o := equip(t, &script{answers: answers{"a": hang, "c": hang}}, "one")
		o.AllowInterruptInBranch = true
		first := newRunner(t, mortal, o)
		register(t, first, "urn:child", asks)
		if _, err := first.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Wait: graph.Wait{Limit: graph.NoWait}}); err != nil {
			t.Fatal(err)
		}
		kill(t, first, mortal)
		time.Sleep(time.Minute)
		work := &script{answers: answers{"a": after(5*time.Minute, nil)}}
		newRunner(t, store, equip(t, work, "one"))
		time.Sleep(6 * time.Minute)
		if n := count(records(t, store, "r"), history.ActivityCompleted); n != 1 || work.count() != 1 {
			t.Errorf("performed %v, %d ended", work.keys(), n)
		}
		o = equip(t, &script{}, "one")
		o.AllowInterruptInBranch = true
		wantStatus(t, settled(t, newRunner(t, store, o), "r"), machine.Completed)
		once(t, store, "r", "r:sub:v")
	})
}
