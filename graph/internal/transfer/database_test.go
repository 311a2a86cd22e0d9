package transfer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/transfer"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/history/historytest"
)

// database is a database of the npm engine, each run in the notation of traces.
type database map[string]string

func (d database) Runs() ([]string, error) { return slices.Sorted(maps.Keys(d)), nil }

func (d database) Records(id string) (out []history.Record, err error) {
	for line := range strings.Lines(d[id]) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if line == "damaged" {
			return nil, problem.New(problem.HistoryCorrupt, "record %d of run %q has an unreadable payload", len(out)+1, id)
		}
		rec, err := historytest.ParseRecord(line)
		if err != nil {
			return nil, err
		}
		rec.Seq, rec.Foreign, rec.Raw = int64(len(out)+1), true, rec.AppendPayload(nil, id)
		rec.CreatedAt = historytest.Begin.Add(time.Duration(len(out)) * time.Second)
		out = append(out, rec)
	}
	return out, nil
}

// begun are the first records of a run of the workflow w with the input {"a":1}.
const begun = `
	E ExecutionStarted {"workflowName":"w","workflowVersion":"1","inputKeys":["a"]}
	C ScheduleNode s
	E NodeScheduled s
	C CompleteNode s {"output":{}}
	E StateUpdated s {"state":{"a":1}}`

func at(node, more string) string {
	return begun + "\nC ScheduleNode " + node + "\nE NodeScheduled " + node + "\n" + more
}

// TestEachHistoryOfTheNpmEngineIsImported: a run continues with the phase in which it stood, and the second import changes nothing.
func TestEachHistoryOfTheNpmEngineIsImported(t *testing.T) {
	t.Parallel()
	wait := func(config string) string { return `{"id":"x","type":"wait","config":` + config + `}` }
	branches := `{"id":"x","type":"parallel","config":{"join":"all","branches":[{"name":"l","entry":"l"},{"name":"r","entry":"r"}]}}`
	for name, tt := range map[string]struct {
		node    string
		rows    string
		phase   history.Phase
		waits   int
		timers  int
		without bool // without its definition
	}{
		"completed": {tool("x"), at("x", `E ActivityRequested x {"nodeType":"tool_call","attempt":1}
			E ActivityCompleted x {"nodeType":"tool_call","result":{"r":1}}
			C CompleteNode x {"output":{"r":1}}
			E StateUpdated x {"state":{"a":1,"r":1}}
			C ScheduleNode e
			E NodeScheduled e
			C CompleteNode e {"output":{}}
			E ExecutionCompleted {"result":{"a":1,"r":1}}`), history.PhaseCompleted, 0, 0, false},
		"failed": {tool("x"), at("x", `E ActivityRequested x {"nodeType":"tool_call","attempt":1}
			E ActivityFailed x {"error":"no","attempt":1}
			C FailNode x {"reason":"activity_failed","message":"no"}
			E ExecutionFailed {"error":"no"}`), history.PhaseFailed, 0, 0, false},
		"cancelled": {tool("x"), at("x", `E ActivityRequested x {"nodeType":"tool_call","attempt":1}
			C CancelExecution x {"reason":"enough"}
			E ExecutionCancelled x {"reason":"enough"}`), history.PhaseCancelled, 0, 0, false},
		"ended, without its definition": {tool("x"), begun + "\nE ExecutionCompleted {\"result\":1}", history.PhaseCompleted, 0, 0, true},
		"an activity":                   {tool("x"), at("x", `E ActivityRequested x {"nodeType":"tool_call","attempt":1}`), history.PhaseAwaitingActivity, 1, 0, false},
		"an interrupt":                  {interrupt("x"), at("x", "C RaiseInterrupt x {\"prompt\":\"well?\"}\nE InterruptRaised x {\"prompt\":\"well?\"}"), history.PhaseInterrupted, 1, 0, false},
		"a signal": {wait(`{"kind":"signal","signal":"go"}`), at("x", `C StartSignalWait x {"signalName":"go"}
			E SignalWaitStarted x {"signalName":"go"}`), history.PhaseAwaitingSignal, 1, 0, false},
		"a timer": {wait(`{"kind":"duration","duration":"87600h"}`), at("x", `C StartTimer x {"kind":"duration","wait_ms":315360000000}
			E TimerStarted x {"kind":"duration"}`), history.PhaseRunning, 1, 1, false},
		"parallel branches": {branches, at("x", `C StartParallel x {"join":"all","branchNames":["l","r"]}
			E ParallelForked x {"join":"all","branchNames":["l","r"]}
			C ScheduleNode l
			E NodeScheduled l
			E ActivityRequested l {"nodeType":"tool_call","attempt":1,"parallelSpan":{"parallelNodeId":"x","joinTargetId":"e","branchName":"l","branchEntryNodeId":"l"}}`),
			history.PhaseAwaitingActivity, 1, 0, false},
		"a process that died": {tool("x"), begun + "\nC ScheduleNode x", history.PhaseRunning, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes, edges := []string{startNode(), tt.node, endNode()}, []string{"s x", "x e"}
			if tt.node == branches {
				nodes, edges = append(nodes, tool("l"), tool("r")), append(edges, "l e", "r e")
			}
			var o transfer.DatabaseOptions
			if !tt.without {
				o.Definitions = []*definition.Document{workflow(t, "w", nodes, edges...)}
			}
			store := historymem.New()
			for round := range 2 {
				runs, err := transfer.ImportDatabase(t.Context(), store, database{"r": tt.rows}, o)
				if err != nil || len(runs) != 1 || runs[0].Err != nil {
					t.Fatalf("%+v, %v", runs, err)
				}
				if res := runs[0].Result; res.Phase != tt.phase || res.Existed != (round == 1) {
					t.Errorf("round %d: %+v, want %s", round, res, tt.phase)
				}
			}
			due, err := store.DueTimers(t.Context(), historytest.Begin.AddDate(20, 0, 0), 0)
			if err != nil || len(due) != tt.timers {
				t.Errorf("timers %v, %v", due, err)
			}
			if findings, err := transfer.Inspect(t.Context(), store, "r", nil); err != nil || len(findings) > 0 {
				t.Errorf("%+v, %v", findings, err)
			}
			run, err := newRunner(t, store, graph.Options{}).Status(t.Context(), graph.StatusRequest{ExecutionID: "r"})
			if err != nil || len(run.Pending) != tt.waits && name != "a process that died" {
				t.Errorf("%+v, %v", run, err)
			}
		})
	}
}

// TestOneRejectedRunKeepsNoOtherOut, and it is named with its reason.
func TestOneRejectedRunKeepsNoOtherOut(t *testing.T) {
	t.Parallel()
	asks := at("x", "C RaiseInterrupt x {\"prompt\":\"well?\"}\nE InterruptRaised x {\"prompt\":\"well?\"}")
	d := workflow(t, "w", []string{startNode(), interrupt("x"), endNode()}, "s x", "x e")
	from := database{
		"damaged": begun + "\ndamaged", "good": asks, "headless": "C ScheduleNode s", "other": strings.ReplaceAll(asks, " x", " y"),
		"started": `E ExecutionStarted {"workflowName":"w","workflowVersion":"1","inputKeys":["a"]}`,
		"unknown": strings.Replace(asks, `"workflowName":"w"`, `"workflowName":"v"`, 1),
		"p":       asks, "p:sub:v": begun + "\ndamaged",
	}
	want := map[string]problem.Code{
		"damaged": problem.HistoryCorrupt, "headless": problem.ImportInvalid, "other": problem.Nondeterminism, "started": problem.DefinitionNotFound,
		"unknown": problem.DefinitionNotFound, "p": problem.HistoryCorrupt, "good": "",
	}
	store := historymem.New()
	runs, err := transfer.ImportDatabase(t.Context(), store, from, transfer.DatabaseOptions{Definitions: []*definition.Document{d}})
	if err != nil || len(runs) != len(want) {
		t.Fatalf("%+v, %v", runs, err)
	}
	for _, r := range runs {
		code := want[r.ExecutionID]
		if p, ok := problem.As(r.Err); ok && p.Code != code || ok != (code != "") || ok && !strings.Contains(p.Message, r.ExecutionID) {
			t.Errorf("%s: %v, want %s", r.ExecutionID, r.Err, code)
		}
	}
	page, err := store.List(t.Context(), history.ListQuery{})
	if err != nil || len(page.Executions) != 1 || page.Executions[0].ID != "good" {
		t.Errorf("stored %+v, %v", page, err)
	}
}

// TestARunThatContinuedElsewhereIsRejected: after its import it has other records there.
func TestARunThatContinuedElsewhereIsRejected(t *testing.T) {
	t.Parallel()
	asks := at("x", "C RaiseInterrupt x {\"prompt\":\"well?\"}\nE InterruptRaised x {\"prompt\":\"well?\"}")
	o := transfer.DatabaseOptions{Definitions: []*definition.Document{workflow(t, "w", []string{startNode(), interrupt("x"), endNode()}, "s x", "x e")}}
	store := historymem.New()
	for i, rows := range []string{asks, asks + "\nC ResumeInterrupt x"} {
		runs, err := transfer.ImportDatabase(t.Context(), store, database{"r": rows}, o)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			wantCode(t, runs[0].Err, problem.DuplicateExecutionID)
		}
	}
	if n := len(records(t, store, "r")); n != 9 {
		t.Errorf("%d records", n)
	}
}

// TestDeadlinesOfImportedWaits: the npm engine knows none for an interrupt, and an import must not end one that is overdue.
func TestDeadlinesOfImportedWaits(t *testing.T) {
	t.Parallel()
	limited := strings.Replace(interrupt("x"), `"config":{`, `"config":{"timeout":"1h",`, 1)
	o := transfer.DatabaseOptions{Definitions: []*definition.Document{workflow(t, "w", []string{startNode(), limited, endNode()}, "s x", "x e")}}
	for name, tt := range map[string]struct {
		rows   string
		timers int
	}{
		"raised there": {at("x", "C RaiseInterrupt x {\"prompt\":\"well?\"}\nE InterruptRaised x {\"prompt\":\"well?\"}"), 0},
		"raised here":  {begun, 1},
	} {
		store := historymem.New()
		runs, err := transfer.ImportDatabase(t.Context(), store, database{"r": tt.rows}, o)
		if err != nil || runs[0].Err != nil {
			t.Fatal(runs, err)
		}
		rs := records(t, store, "r")
		prog, _ := definition.Compile(o.Definitions[0], definition.Options{})
		m, err := machine.Replay(prog, machine.Config{ExecutionID: "r"}, rs, nil, historytest.Begin.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Timers(); len(got) != tt.timers {
			t.Errorf("%s: timers %+v", name, got)
		}
	}
}

// TestASubworkflowContinuesWithItsParent, which waits for it.
func TestASubworkflowContinuesWithItsParent(t *testing.T) {
	t.Parallel()
	parent := at("v", `C StartSubworkflow v {"workflowRef":"child","childExecutionId":"p:sub:v"}
		E SubworkflowStarted v {"workflowRef":"child","parentExecutionId":"p","childExecutionId":"p:sub:v"}`)
	child := strings.Replace(at("x", "C RaiseInterrupt x {\"prompt\":\"well?\"}\nE InterruptRaised x {\"prompt\":\"well?\"}"), `"workflowName":"w"`, `"workflowName":"child"`, 1)
	o := transfer.DatabaseOptions{Definitions: []*definition.Document{
		workflow(t, "w", []string{startNode(), subworkflow("v", "child"), endNode()}, "s v", "v e"),
		workflow(t, "child", []string{startNode(), interrupt("x"), endNode()}, "s x", "x e"),
	}}
	store := historymem.New()
	runs, err := transfer.ImportDatabase(t.Context(), store, database{"p": parent, "p:sub:v": child}, o)
	if err != nil || len(runs) != 1 || runs[0].Err != nil || runs[0].Result.Subworkflows != 1 {
		t.Fatalf("%+v, %v", runs, err)
	}
	r := newRunner(t, store, graph.Options{})
	run, err := r.Status(t.Context(), graph.StatusRequest{ExecutionID: "p:sub:v"})
	if err != nil || len(run.Pending) != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	if _, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "p:sub:v", InterruptID: run.Pending[0].ID, Payload: object{"ok": true}}); err != nil {
		t.Fatal(err)
	}
	if e, err := store.Execution(t.Context(), "p"); err != nil || e.Phase != history.PhaseCompleted {
		run, err := r.Start(t.Context(), graph.StartRequest{ExecutionID: "p", Definition: o.Definitions[0], AllowExisting: true})
		if err != nil || run.Status != machine.Completed {
			t.Errorf("%+v, %v", run, err)
		}
	}
}
