package timeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
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
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

type object = map[string]any

// drawing makes a random workflow: steps with retries, catches and compensations, maps, blocks in blocks, questions, timers, loops, subworkflows.
type drawing struct {
	rng   *rand.Rand
	nodes []any
	edges []any
	// around is the branch around each node, "<block> <branch>".
	around map[string]string
	inside string
}

func (d *drawing) add(kind string, config object, more object) string {
	id := fmt.Sprintf("n%d", len(d.nodes))
	n := object{"id": id, "type": kind, "config": config}
	for name, v := range more {
		n[name] = v
	}
	d.nodes, d.around[id] = append(d.nodes, n), d.inside
	return id
}

// chain makes a few nodes that lead to a node, and returns the first.
func (d *drawing) chain(to string, depth int) string {
	for range d.rng.IntN(3) + 1 {
		to = d.one(to, depth)
	}
	return to
}

func (d *drawing) one(to string, depth int) string {
	step := object{}
	if d.rng.IntN(2) == 0 {
		step["retry"] = object{"max_attempts": 2, "initial_interval": "1s"}
	}
	if d.rng.IntN(3) == 0 {
		step["catch"] = []any{object{"codes": []any{"*"}, "target": to, "rollback": d.rng.IntN(2) == 0}}
	}
	id := ""
	switch d.rng.IntN(9) {
	case 0:
		id = d.add("wait", object{"kind": "duration", "duration_ms": d.rng.IntN(3) * 1000}, nil)
	case 1:
		id = d.add("interrupt", object{"prompt": "?", "resume_schema": object{"type": "object"}, "timeout": "3s"}, nil)
	case 2:
		step["map"] = object{"items": "[range(3)]", "concurrency": 2, "collect": "c", "tolerate": object{"count": 1, "as": "f"}}
		id = d.add("step", object{"handler": "h"}, step)
	case 3:
		id = d.add("subworkflow", object{"workflow_ref": "child", "input_mapping": object{}}, object{"catch": step["catch"]})
	case 4, 5:
		if depth == 0 {
			return d.one(to, depth)
		}
		id = d.add("parallel", object{}, object{"catch": step["catch"]})
		outside, node := d.inside, d.nodes[len(d.nodes)-1].(object)
		var branches []any
		for i := range d.rng.IntN(3) + 1 {
			name := fmt.Sprintf("b%d", i)
			d.inside = id + " " + name
			branches = append(branches, object{"name": name, "entry": d.chain(to, depth-1)})
		}
		d.inside = outside
		node["config"] = object{"join": []string{"all", "any"}[d.rng.IntN(2)], "branches": branches}
	case 6:
		count := d.add("set_state", object{"assignments": object{"n": object{"jq": "(.n // 0) + 1"}}}, nil)
		id = d.add("step", object{"handler": "h"}, step)
		again := d.add("switch", object{"cases": []any{object{"when": ".n < 2", "target": count}}, "default": to}, nil)
		d.edge(count, id)
		d.edge(id, again)
		d.edge(again, count)
		d.edge(again, to)
		return count
	default:
		return d.compensated(to, step)
	}
	d.edge(id, to)
	return id
}

func (d *drawing) compensated(to string, step object) string {
	outside := d.inside
	d.inside = "?" // a compensation is in no branch of its own
	step["compensate"] = object{"node": d.add("step", object{"handler": "h"}, nil), "as": "u"}
	d.inside = outside
	id := d.add("step", object{"handler": "h"}, step)
	d.edge(id, to)
	return id
}

func (d *drawing) edge(from, to string) {
	d.edges = append(d.edges, object{"source": from, "target": to})
}

func draw(name string, rng *rand.Rand, depth int) (text string, around map[string]string) {
	d := &drawing{rng: rng, around: map[string]string{}}
	end := d.add("end", object{}, nil)
	start := d.add("start", object{}, nil)
	d.edge("__start__", start)
	d.edge(start, d.compensated(d.chain(end, depth), object{}))
	for _, n := range d.nodes {
		if n := n.(object); n["catch"] == nil {
			delete(n, "catch")
		}
	}
	source := object{
		"document": object{"schema": "s", "name": name, "version": "1"}, "state_schema": object{"type": "object"}, "nodes": d.nodes, "edges": d.edges,
		"x-workflows-engine": object{"uses": []any{"catch", "compensate", "map"}, "rollback": []any{"failure", "cancel"}},
	}
	return string(enginetest.Must(json.Marshal(source))), d.around
}

// TestEveryRecordHasAPlace: in random runs, and in copies of them that continue from the middle, each record belongs to one visit, and to the
// attempt or wait that it names; visits are in the branches in which the definition has them; and everything has ended with the run.
func TestEveryRecordHasAPlace(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { placed(t, seed, kinds) })
	}
	for _, kind := range []string{"completed", "failed", "cancelled", "branch", "item", "child", "compensation", "retry", "caught", "dropped", "copy", "answer"} {
		if kinds[kind] < 3 {
			t.Errorf("the runs have %d of kind %s", kinds[kind], kind)
		}
	}
}

func placed(t *testing.T, seed uint64, kinds map[string]int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	dice := func(text string) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, seed, text)
		return h.Sum64() >> 7
	}
	perform := func(ctx context.Context, req activities.Request) (activities.Result, error) {
		roll := dice(fmt.Sprint(req.NodeID, req.Visit, req.Attempt))
		select {
		case <-ctx.Done():
			return activities.Result{}, context.Cause(ctx)
		case <-time.After(time.Duration(roll%5) * time.Second):
		}
		if roll/8%4 == 0 {
			return activities.Result{}, &activities.Failure{Code: "BROKEN", Message: "as it should"}
		}
		return activities.Result{}, nil
	}
	runner := enginetest.Closing(t, enginetest.Must(graph.New(historymem.New(), graph.Options{
		Activities: activities.Composite{Step: activities.ExecutorFunc(perform)}, AllowInterruptInBranch: true,
	})))
	programs, around := map[string]*definition.Program{}, map[string]map[string]string{}
	define := func(name string, depth int) *definition.Document {
		text, branches := draw(name, rng, depth)
		document := enginetest.Define(t, text)
		program, findings := definition.Compile(document, definition.Options{AllowInterruptInBranch: true})
		if program == nil {
			t.Fatalf("%v\n%s", findings, text)
		}
		programs[name], around[name] = program, branches
		return document
	}
	// The child has no subworkflow: it would be itself.
	child := `{"document":{"schema":"s","name":"child","version":"1"},"state_schema":{"type":"object"},"nodes":[{"id":"s","type":"start"},` +
		`{"id":"work","type":"step","config":{"handler":"h"}},{"id":"e","type":"end"}],"edges":[{"source":"__start__","target":"s"},{"source":"s","target":"work"},{"source":"work","target":"e"}]}`
	if err := runner.RegisterWorkflow("child", enginetest.Define(t, child)); err != nil {
		t.Fatal(err)
	}
	programs["child"], _ = definition.Compile(enginetest.Define(t, child), definition.Options{})
	document := define("w", 2)
	go func() {
		if _, err := runner.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: document, Input: object{}}); err != nil {
			t.Error(err)
		}
	}()
	settle(t, runner, "r", rng)
	line := check(t, seed, runner, "r", programs, around, kinds)
	if root := line.Root(); len(root.Visits) > 4 {
		at := root.Visits[rng.IntN(len(root.Visits))]
		if at.Block() != nil || at.IsItem() || at.Compensates != "" {
			return
		}
		if _, err := runner.Fork(t.Context(), graph.ForkRequest{ExecutionID: "r", BeforeNode: at.Node, NewExecutionID: "copy"}); err != nil {
			return // a run cannot be continued from everywhere
		}
		settle(t, runner, "copy", rng)
		check(t, seed, runner, "copy", programs, around, kinds)
		kinds["copy"]++
	}
}

// settle answers questions, or cancels the run at some time, until it has ended.
func settle(t *testing.T, runner *graph.Runner, id string, rng *rand.Rand) {
	cancelAt := rng.IntN(20)
	for second := range 400 {
		time.Sleep(time.Second)
		synctest.Wait()
		run, err := runner.Status(t.Context(), graph.StatusRequest{ExecutionID: id})
		if err != nil {
			t.Fatal(err)
		}
		if run.Status.Terminal() {
			return
		}
		if second == cancelAt {
			_, err = runner.Cancel(t.Context(), graph.CancelRequest{ExecutionID: id})
		} else if i := slices.IndexFunc(run.Pending, func(p view.Pending) bool { return p.Kind == machine.WaitInterrupt }); i >= 0 && rng.IntN(3) > 0 {
			go runner.Resume(t.Context(), graph.ResumeRequest{ExecutionID: id, InterruptID: run.Pending[i].ID, Payload: object{}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the run does not end")
}

// ofTheRun are records that belong to no visit though they may name a node.
var ofTheRun = []history.Name{history.ScheduleNode, history.CancelExecution, history.ExecutionCancelled, history.ExecutionFailed}

// check reads a run and its subworkflows.
func check(t *testing.T, seed uint64, runner *graph.Runner, id string, programs map[string]*definition.Program, around map[string]map[string]string, kinds map[string]int) *timeline.Timeline {
	t.Helper()
	line := timeline.New(id, strings.TrimSpace)
	queue := []string{id}
	for len(queue) > 0 {
		of := queue[0]
		queue = queue[1:]
		records, err := runner.History(t.Context(), graph.HistoryRequest{ExecutionID: of})
		if err != nil {
			if e, ok := problem.As(err); ok && e.Code == problem.ExecutionNotFound && of != id {
				continue // a subworkflow that had not started, or had ended before the copy
			}
			t.Fatal(err)
		}
		name := records[0].Payload.WorkflowName
		line.Define(of, programs[name])
		outcomes, starts := map[*timeline.Attempt]int{}, 0
		for i := range records {
			r := &records[i]
			fault := func(format string, args ...any) {
				t.Helper()
				t.Fatalf("seed %d, record %d of %s, %s of %q: %s", seed, r.Seq, of, r.Name, r.Payload.NodeID, fmt.Sprintf(format, args...))
			}
			at := line.Record(of, r)
			if at.Run != line.Run(of) {
				fault("belongs to another run")
			}
			if r.Name == history.SubworkflowStarted {
				queue = append(queue, r.Payload.ChildExecutionID)
			}
			v, node := at.Visit, r.Payload.NodeID
			switch {
			case slices.Contains(ofTheRun, r.Name), node == "" && r.Name != history.FailNode:
				continue
			case v == nil && r.Name == history.FailNode && r.Payload.FailedNodeID != "":
				continue // a node that was not reached
			case v == nil:
				fault("belongs to no visit")
			case node != "" && v.Node != node, r.Kind == history.Event && r.Payload.Visit > 0 && v.Number != r.Payload.Visit:
				fault("belongs to visit %d of %q", v.Number, v.Node)
			case at.Attempt != nil && at.Attempt.Visit != v:
				fault("belongs to an attempt of another visit")
			case (r.Name == history.ActivityRequested || r.Name == history.ActivityCompleted || r.Name == history.ActivityFailed) && at.Attempt == nil:
				fault("belongs to no attempt")
			case r.Name == history.ActivityRequested && at.Attempt.Number != max(r.Payload.Attempt, 1):
				fault("belongs to attempt %d", at.Attempt.Number)
			case (r.Name == history.InterruptRaised || r.Name == history.InterruptResumed || r.Name == history.TimerStarted) && at.Wait == nil:
				fault("belongs to no wait")
			}
			switch r.Name {
			case history.NodeScheduled:
				starts++
			case history.ActivityCompleted, history.ActivityFailed:
				if outcomes[at.Attempt]++; outcomes[at.Attempt] > 1 || at.Attempt.EndedSeq != r.Seq {
					fault("ends an attempt again")
				}
			case history.CompleteNode:
				if v.State != timeline.Succeeded {
					fault("leaves the visit in state %d", v.State)
				}
			case history.FailNode:
				if v.State != timeline.Failed {
					fault("leaves the visit in state %d", v.State)
				}
			case history.InterruptResumed:
				kinds["answer"]++
			}
		}
		run := line.Run(of)
		if run.Ended.IsZero() || len(run.Visits) != starts {
			t.Fatalf("seed %d: run %s ended at %v, %d visits of %d", seed, of, run.Ended, len(run.Visits), starts)
		}
		kinds[run.Status]++
		for _, v := range run.Visits {
			where := fmt.Sprintf("seed %d: visit %d of %q in %s", seed, v.Number, v.Node, of)
			if v.Ended.IsZero() || v.Wait() != nil {
				t.Fatalf("%s has not ended", where)
			}
			within := ""
			if block := v.Block(); block != nil {
				for _, b := range block.Branches {
					if slices.Contains(b.Visits, v) {
						within += block.Node + " " + b.Name
					}
				}
				kinds["branch"]++
			} else if inMain := slices.Contains(run.Main.Visits, v); inMain == v.IsItem() {
				t.Fatalf("%s is in no sequence", where)
			}
			if want := around[name][v.Node]; want != "?" && within != want && !v.IsItem() {
				t.Fatalf("%s is in branch %q, not %q", where, within, want)
			}
			for _, a := range v.Attempts {
				if a.Outcome == timeline.Pending || (outcomes[a] == 1) == (a.Outcome == timeline.Superseded) {
					t.Fatalf("%s: attempt %d has outcome %d", where, a.Number, a.Outcome)
				}
				if a.Number > 1 {
					kinds["retry"]++
				}
			}
			for kind, is := range map[string]bool{
				"item": v.IsItem(), "child": v.Child != nil, "compensation": v.Compensates != "", "caught": v.State == timeline.Failed && v.Next != "",
				"dropped": v.State == timeline.Dropped,
			} {
				if is {
					kinds[kind]++
				}
			}
		}
	}
	return line
}
