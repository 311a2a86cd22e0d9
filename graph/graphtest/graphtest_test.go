package graphtest_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// object is a JSON object.
type object = map[string]any

// stubs and answers make the members of scenarios shorter.
type (
	stubs   = map[string]graphtest.Stub
	answers = map[string]graphtest.Answer
)

// define makes a definition of nodes and edges written in YAML.
func define(t *testing.T, text string) *definition.Document {
	t.Helper()
	return enginetest.Define(t, "document: {schema: s, name: test, version: '1'}\nstate_schema: {type: object}\n"+text)
}

const retried = `
nodes:
  - {id: a, type: start}
  - {id: fetch, type: step, config: {handler: h}, timeout: 10s, retry: {max_attempts: 3, initial_interval: 2s, backoff_coefficient: 3}}
  - {id: z, type: end, config: {output_mapping: .rows}}
edges: [{source: __start__, target: a}, {source: a, target: fetch}, {source: fetch, target: z}]
`

// Attempts, back-off and timeouts take virtual time.
func TestAttempts(t *testing.T) {
	t.Parallel()
	rows := graphtest.Output(object{"rows": 3})
	for _, c := range []struct {
		name    string
		stub    graphtest.Stub
		status  machine.Status
		elapsed time.Duration
		code    string
	}{
		{"at once", rows, machine.Completed, 0, ""},
		{"slow", graphtest.After(9*time.Second, rows), machine.Completed, 9 * time.Second, ""},
		{"back-off", graphtest.Attempts(graphtest.Fail("BUSY", "later"), graphtest.Fail("BUSY", "later"), rows), machine.Completed, 8 * time.Second, ""},
		{"all fail", graphtest.Fail("BUSY", "later"), machine.Failed, 8 * time.Second, "BUSY"},
		{"final", graphtest.FailFinally("GONE", "never"), machine.Failed, 0, "GONE"},
		{"time out", graphtest.After(time.Minute, rows), machine.Failed, 38 * time.Second, "TIMEOUT"},
		{"at the deadline", graphtest.After(10*time.Second, rows), machine.Failed, 38 * time.Second, "TIMEOUT"},
		{"no JSON", graphtest.Output(make(chan int)), machine.Failed, 8 * time.Second, "ACTIVITY_OUTPUT_INVALID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := graphtest.Run(t, define(t, retried), graphtest.Scenario{Stubs: stubs{"fetch": c.stub}})
			code := ""
			if run.Error != nil {
				code = run.Error.Code
			}
			if run.Status != c.status || run.Elapsed != c.elapsed || code != c.code {
				t.Errorf("%s after %s, %+v", run.Status, run.Elapsed, run.Error)
			}
			if run.Status == machine.Completed && (run.Result != 3.0 || !slices.Equal(run.Path, []string{"a", "fetch", "z"})) {
				t.Errorf("%v %v", run.Path, run.Result)
			}
		})
	}
}

const asked = `
nodes:
  - {id: a, type: start}
  - {id: ask, type: interrupt, config: {prompt: "ok?", timeout: 1h, resume_schema: {type: object, required: [ok], properties: {ok: {type: boolean}}}}}
  - {id: route, type: switch, config: {cases: [{when: .ok, target: go}], default: ask}}
  - {id: go, type: wait, config: {kind: signal, signal: go}}
  - {id: rest, type: wait, config: {kind: duration, duration: 48h}}
  - {id: z, type: end}
edges:
  - {source: __start__, target: a}
  - {source: a, target: ask}
  - {source: ask, target: route}
  - {source: go, target: rest}
  - {source: rest, target: z}
`

// What people answer and what signals come, when, and where a run stands that nobody answers.
func TestPeopleAndSignals(t *testing.T) {
	t.Parallel()
	yes, no := object{"ok": true}, object{"ok": false}
	signal := []graphtest.Signal{{Name: "go", Payload: object{"by": "kim"}}}
	moment := func(when string, after time.Duration) graphtest.Moment {
		return graphtest.Moment{When: when, After: after}
	}
	for _, c := range []struct {
		name     string
		scenario graphtest.Scenario
		status   machine.Status
		path     string
		waiting  string
		elapsed  time.Duration
	}{
		{"nobody answers", graphtest.Scenario{}, machine.Failed, "a ask", "", time.Hour},
		{"too late", graphtest.Scenario{Answers: answers{"ask": graphtest.ReplyAfter(2*time.Hour, yes)}}, machine.Failed, "a ask", "", time.Hour},
		{"no signal", graphtest.Scenario{Answers: answers{"ask": graphtest.Reply(no, yes)}}, machine.AwaitingSignal, "a ask route ask route go", "go", 0},
		{"all", graphtest.Scenario{Answers: answers{"ask": graphtest.Reply(yes)}, Signals: signal}, machine.Completed, "a ask route go rest z", "", 48 * time.Hour},
		{"signal at a time", graphtest.Scenario{
			Answers: answers{"ask": graphtest.ReplyAfter(time.Minute, yes)},
			Signals: []graphtest.Signal{{Name: "go", Moment: moment("", time.Hour)}},
		}, machine.Completed, "a ask route go rest z", "", 49 * time.Hour},
		{"signal at a node", graphtest.Scenario{
			Answers: answers{"ask": graphtest.ReplyAfter(time.Minute, yes)},
			Signals: []graphtest.Signal{{Name: "go", Moment: moment("go", time.Hour)}},
		}, machine.Completed, "a ask route go rest z", "", 49*time.Hour + time.Minute},
		{"cancelled", graphtest.Scenario{Cancel: &graphtest.Cancel{Reason: "enough", Moment: moment("", time.Minute)}}, machine.Cancelled, "a ask", "", time.Minute},
		{"cancelled at a node", graphtest.Scenario{
			Answers: answers{"ask": graphtest.Reply(yes)}, Signals: signal, Cancel: &graphtest.Cancel{Moment: moment("rest", time.Hour)},
		}, machine.Cancelled, "a ask route go rest", "", time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := graphtest.Run(t, define(t, asked), c.scenario)
			if run.Status != c.status || strings.Join(run.Path, " ") != c.path || strings.Join(run.Waiting, " ") != c.waiting || run.Elapsed != c.elapsed {
				t.Errorf("%s %v waiting %v after %s: %+v", run.Status, run.Path, run.Waiting, run.Elapsed, run.Error)
			}
			if c.name == "all" && run.State["by"] != "kim" || c.name == "cancelled" && run.Reason != "enough" {
				t.Errorf("%v %q", run.State, run.Reason)
			}
		})
	}
}

// TestStubsOfSubworkflows: the stub of a subworkflow is its final state, of one in a map the result of each item, of whatever type.
func TestStubsOfSubworkflows(t *testing.T) {
	t.Parallel()
	const nodes = `
x-workflows-engine: {uses: [map]}
nodes:
  - {id: a, type: start}
  - {id: sub, type: subworkflow, config: {workflow_ref: child, input_mapping: {}}MAP}
  - {id: z, type: end}
edges: [{source: __start__, target: a}, {source: a, target: sub}, {source: sub, target: z}]
`
	const mapped = `, map: {items: "[1, 2]", collect: all, tolerate: {count: 1, as: failed}}`
	for _, c := range []struct {
		where string
		stub  graphtest.Stub
		want  string // of the state
	}{
		{"", graphtest.Output(object{"n": 1}), `{"n":1}`},
		{mapped, graphtest.Output(object{"n": 1}), `{"all":[{"n":1},{"n":1}],"failed":[]}`},
		{mapped, graphtest.Output("done"), `{"all":["done","done"],"failed":[]}`},
		{mapped, graphtest.Output(nil), `{"all":[null,null],"failed":[]}`},
		{mapped, func(c graphtest.Call) graphtest.Result {
			if c.Visit == 2 {
				return graphtest.Fail("NO_STOCK", "none left")(c)
			}
			return graphtest.Output(3)(c)
		}, `{"all":[null,3],"failed":[{"attempts":1,"code":"NO_STOCK","index":0,"message":"none left","node":"sub"}]}`},
	} {
		run := graphtest.Run(t, define(t, strings.Replace(nodes, "MAP", c.where, 1)), graphtest.Scenario{Stubs: stubs{"sub": c.stub}})
		if got := string(jsonvalue.Canonical(run.State)); got != c.want || run.Status != machine.Completed {
			t.Errorf("%s: %s %s, want %s", c.where, run.Status, got, c.want)
		}
	}
	_, err := graphtest.Simulate(define(t, strings.Replace(nodes, "MAP", "", 1)), graphtest.Scenario{Stubs: stubs{"sub": graphtest.Output("done")}})
	if !errors.Is(err, problem.ValidationError) {
		t.Errorf("a final state that is a text: %v", err)
	}
}

// TestRaisedValues: what a program raises is data of the outcome's failure.
func TestRaisedValues(t *testing.T) {
	t.Parallel()
	run := graphtest.Run(t, define(t, `
nodes:
  - {id: a, type: start}
  - {id: b, type: set_state, config: {assignments: {x: {jq: 'error("order \(.id) is closed")'}}}}
  - {id: z, type: end}
edges: [{source: __start__, target: a}, {source: a, target: b}, {source: b, target: z}]
`), graphtest.Scenario{Input: object{"id": 7}})
	if run.Error == nil || run.Error.Code != "EXPRESSION_FAILED" || run.Error.Data["raised"] != "order 7 is closed" || strings.Contains(run.Error.Message, "7") {
		t.Errorf("%s %+v", run.Status, run.Error)
	}
}

// TestTheFirstFailureDecides: a check that fails after a minute beside a person who takes three days, in both orders of the branches,
// with a catch and without, in a block and in a block within a branch.
func TestTheFirstFailureDecides(t *testing.T) {
	t.Parallel()
	const nodes = `
x-workflows-engine: {uses: [catch, interrupt_in_branch]}
nodes:
  - {id: a, type: start}
  - {id: outer, type: parallel, config: {join: all, branches: [{name: long, entry: nap}, {name: both, entry: both}]}}
  - {id: nap, type: wait, config: {kind: duration, duration: 100h}}
  - {id: both, type: parallel, config: {join: all, branches: [BRANCHES]}CATCH}
  - {id: ask, type: interrupt, config: {prompt: "Sign?", resume_schema: {type: object}}}
  - {id: check, type: step, config: {handler: h}}
  - {id: alarm, type: set_state, config: {assignments: {alarm: {literal: true}}}}
  - {id: z, type: end}
edges:
  - {source: __start__, target: a}
  - {source: a, target: FIRST}
  - {source: outer, target: z}
  - {source: nap, target: z}
  - {source: both, target: z}
  - {source: ask, target: z}
  - {source: check, target: z}
  - {source: alarm, target: z}
`
	person, check := "{name: person, entry: ask}", "{name: check, entry: check}"
	for _, order := range []string{person + ", " + check, check + ", " + person} {
		for _, first := range []string{"both", "outer"} {
			for _, catch := range []string{"", `, catch: [{codes: ["*"], target: alarm}]`} {
				text := strings.NewReplacer("BRANCHES", order, "FIRST", first, "CATCH", catch).Replace(nodes)
				run := graphtest.Run(t, define(t, text), graphtest.Scenario{
					Stubs:   stubs{"check": graphtest.After(time.Minute, graphtest.Fail("FRAUD", "stop"))},
					Answers: answers{"ask": graphtest.ReplyAfter(72*time.Hour, object{"ok": true})},
				})
				status, elapsed := machine.Failed, time.Minute
				if catch != "" {
					if status = machine.Completed; first == "outer" {
						elapsed = 100 * time.Hour // the other branch goes on
					}
				}
				if run.Status != status || run.Elapsed != elapsed || catch != "" && run.State["alarm"] != true || catch == "" && run.Error.Code != "FRAUD" {
					t.Errorf("%s, %s%s: %s after %s: %v %v", order, first, catch, run.Status, run.Elapsed, run.State, run.Error)
				}
			}
		}
	}
}

const branches = `
nodes:
  - {id: a, type: start}
  - {id: fan, type: parallel, config: {join: n_of_m, n: 2, branches: [{name: x, entry: slow}, {name: y, entry: quick}, {name: z, entry: sub}]}}
  - {id: slow, type: step, config: {handler: h}}
  - {id: quick, type: step, config: {handler: h}}
  - {id: after, type: set_state, config: {assignments: {seen: {literal: true}}}}
  - {id: sub, type: subworkflow, config: {workflow_ref: child, input_mapping: {n: "${ .n }"}}}
  - {id: join, type: end}
edges:
  - {source: __start__, target: a}
  - {source: a, target: fan}
  - {source: fan, target: join}
  - {source: slow, target: join}
  - {source: quick, target: after}
  - {source: after, target: join}
  - {source: sub, target: join}
`

const child = `
document: {schema: s, name: child, version: '1'}
state_schema: {type: object, properties: {n: {type: number}}}
nodes:
  - {id: b, type: start}
  - {id: ask, type: interrupt, config: {prompt: "ok?", resume_schema: {type: object}}}
  - {id: work, type: step, config: {handler: h}, metadata: {demo_output: {done: true}}}
  - {id: e, type: end}
edges: [{source: __start__, target: b}, {source: b, target: ask}, {source: ask, target: work}, {source: work, target: e}]
`

// resolver finds one workflow.
type resolver struct{ doc *definition.Document }

func (r resolver) ResolveWorkflow(_ context.Context, ref, _ string) (*definition.Document, error) {
	if r.doc == nil || ref != "child" {
		return nil, problem.New(problem.WorkflowNotFound, "workflow %q", ref)
	}
	return r.doc, nil
}

// Branches, a subworkflow in one of them, and what they cover.
func TestBranchesAndSubworkflows(t *testing.T) {
	t.Parallel()
	done := graphtest.Output(object{})
	slow := graphtest.After(time.Hour, done)
	for _, c := range []struct {
		name     string
		scenario graphtest.Scenario
		status   machine.Status
		path     string
		visits   map[string]int
		elapsed  time.Duration
		untaken  string
		waiting  string
	}{
		{
			name: "the subworkflow wins", scenario: graphtest.Scenario{
				Stubs: stubs{"slow": slow, "quick": done}, Answers: answers{"sub/ask": graphtest.ReplyAfter(time.Minute, object{"x": 1})},
			},
			status: machine.Completed, path: "a fan slow quick sub after join", elapsed: time.Minute,
			visits:  map[string]int{"a": 1, "fan": 1, "slow": 1, "quick": 1, "after": 1, "sub": 1, "join": 1, "sub/b": 1, "sub/ask": 1, "sub/work": 1, "sub/e": 1},
			untaken: "test slow join",
		},
		{
			name: "the subworkflow is left behind", scenario: graphtest.Scenario{Stubs: stubs{"slow": slow, "quick": done}},
			status: machine.Completed, path: "a fan slow quick sub after join", elapsed: time.Hour,
			visits:  map[string]int{"a": 1, "fan": 1, "slow": 1, "quick": 1, "after": 1, "sub": 1, "join": 1, "sub/b": 1, "sub/ask": 1},
			untaken: "test sub join, child ask work, child work e",
		},
		{
			name: "a stub in its place", scenario: graphtest.Scenario{Stubs: stubs{"slow": slow, "quick": done, "sub": graphtest.Output(object{"n": 5})}},
			status: machine.Completed, path: "a fan slow quick sub after join",
			visits:  map[string]int{"a": 1, "fan": 1, "slow": 1, "quick": 1, "after": 1, "sub": 1, "join": 1},
			untaken: "test slow join",
		},
		{
			name: "it fails, and so does another", scenario: graphtest.Scenario{Stubs: stubs{"slow": graphtest.Fail("E", "e"), "quick": done, "sub": graphtest.Fail("F", "f")}},
			status: machine.Failed, path: "a fan slow quick sub after",
			visits:  map[string]int{"a": 1, "fan": 1, "slow": 1, "quick": 1, "after": 1, "sub": 1},
			untaken: "test fan join, test slow join, test sub join",
		},
		{
			name: "it waits", scenario: graphtest.Scenario{Stubs: stubs{"slow": graphtest.Fail("E", "e"), "quick": done}},
			status: machine.Interrupted, path: "a fan slow quick sub after", waiting: "sub/ask",
			visits:  map[string]int{"a": 1, "fan": 1, "slow": 1, "quick": 1, "after": 1, "sub": 1, "sub/b": 1, "sub/ask": 1},
			untaken: "test fan join, test slow join, test sub join, child ask work, child work e",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.scenario.Input, c.scenario.Workflows = object{"n": 1}, resolver{enginetest.Define(t, child)}
			run := graphtest.Run(t, define(t, branches), c.scenario)
			var untaken []string
			for _, d := range run.Coverage {
				for _, e := range d.Untaken() {
					untaken = append(untaken, d.Name+" "+e.From+" "+e.To)
				}
			}
			if run.Status != c.status || strings.Join(run.Path, " ") != c.path || run.Elapsed != c.elapsed || strings.Join(run.Waiting, " ") != c.waiting {
				t.Errorf("%s %v waiting %v after %s: %+v", run.Status, run.Path, run.Waiting, run.Elapsed, run.Error)
			}
			if !reflect.DeepEqual(run.Visits, c.visits) {
				t.Errorf("visits %v", run.Visits)
			}
			if got := strings.Join(untaken, ", "); got != c.untaken {
				t.Errorf("not taken: %s", got)
			}
			again := graphtest.Run(t, define(t, branches), c.scenario)
			if !reflect.DeepEqual(again, run) {
				t.Errorf("the same scenario took another course: %+v", again)
			}
			var sum graphtest.Coverage
			sum.Add(run.Coverage)
			sum.Add(again.Coverage)
			if sum[0].Nodes[0].Visits != 2 || len(sum) != len(run.Coverage) {
				t.Errorf("coverage of both runs: %+v", sum[0])
			}
		})
	}
}

// What does not fit a run is said with the node.
func TestScenariosThatDoNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, doc string
		scenario  graphtest.Scenario
		code      problem.Code
		text      string
	}{
		{"no stub", retried, graphtest.Scenario{}, problem.TestStubMissing, `node "fetch" (step) of workflow "test" is called and has no stub`},
		{"no workflow", branches, graphtest.Scenario{Stubs: stubs{"slow": graphtest.Output(nil), "quick": graphtest.After(1, graphtest.Output(nil))}}, problem.TestStubMissing, `node "sub" (subworkflow)`},
		{"no final state", branches, graphtest.Scenario{Stubs: stubs{"slow": graphtest.Output(nil), "quick": graphtest.Output(nil), "sub": graphtest.Output(1)}}, problem.ValidationError, `the stub of node "sub" (subworkflow) has an output that is not an object`},
		{"refused answer", asked, graphtest.Scenario{Answers: answers{"ask": graphtest.Reply(object{"ok": 1})}}, problem.InvalidResumePayload, `the answer to "ask", visit 1, was refused: the payload breaks resume_schema`},
		{"early signal", asked, graphtest.Scenario{Signals: []graphtest.Signal{{Name: "go", Moment: graphtest.Moment{After: time.Second}}}}, problem.SignalNotAwaiting, `signal "go" after 1s was refused`},
		{"no JSON", asked, graphtest.Scenario{Input: object{"x": make(chan int)}}, problem.ValidationError, "Scenario.Input is not plain JSON"},
		{"no definition", "nodes: []\nedges: []", graphtest.Scenario{}, problem.ValidationError, "the definition is not valid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := graphtest.Simulate(define(t, c.doc), c.scenario)
			if !errors.Is(err, c.code) || !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("%v", err)
			}
		})
	}
}

// An input that breaks the schema begins no run, and a loop without an end ends.
func TestRefusedAndEndless(t *testing.T) {
	t.Parallel()
	doc := enginetest.Define(t, "document: {schema: s, name: test, version: '1'}\nstate_schema: {type: object, required: [x]}\n"+retried)
	if run := graphtest.Run(t, doc, graphtest.Scenario{}); run.Status != graphtest.Refused || run.Error.Code != "VALIDATION_ERROR" {
		t.Errorf("%+v", run)
	}
	doc = define(t, `
nodes:
  - {id: a, type: start}
  - {id: n, type: set_state, config: {assignments: {n: {jq: ".n + 1"}}}}
  - {id: s, type: switch, config: {cases: [{when: .stop, target: z}], default: n}}
  - {id: z, type: end}
edges: [{source: __start__, target: a}, {source: a, target: n}, {source: n, target: s}]
`)
	run := graphtest.Run(t, doc, graphtest.Scenario{})
	if run.Status != machine.Failed || run.Error.Code != "STEP_BUDGET_EXCEEDED" {
		t.Errorf("%s %+v", run.Status, run.Error)
	}
	// The walk is made in several stretches, and each edge of the loop counted once a round.
	if edges := run.Coverage[0].Edges; edges[1].Taken != 5000 || edges[3].Taken != 4999 || edges[2].Taken != 0 {
		t.Errorf("%+v", edges)
	}
}
