// Package graphtest tests workflow definitions: it runs one with stubs in place of activities, agents and people, in virtual time. A
// run that waits for a week takes no time, and the same test always takes the same path.
//
//	run := graphtest.Run(t, doc, graphtest.Scenario{
//		Input: map[string]any{"order": 17},
//		Stubs: map[string]graphtest.Stub{
//			"charge": graphtest.Attempts(graphtest.Fail("BUSY", "try later"), graphtest.Output(map[string]any{"paid": true})),
//		},
//		Answers: map[string]graphtest.Answer{"review": graphtest.Reply(map[string]any{"approve": true})},
//	})
//	if run.Status != machine.Completed || !slices.Equal(run.Path, want) { … }
//
// It drives the machine that every run walks on (package machine), without a store, a Runner or goroutines. The nodes of branches are
// visited in the order of the branches; of two things that are due at the same instant, a timer comes first.
package graphtest

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Scenario is one run: what goes in, and what the world around it does.
type Scenario struct {
	Input map[string]any
	// Stubs perform activities, delegates and subworkflows, by the id of the node; "PARENT/NODE" is a node of the run of the subworkflow
	// node PARENT. An activity without a stub answers with the object demo_output of its metadata. A subworkflow without a stub is
	// run. Anything else without a stub ends the test.
	Stubs map[string]Stub
	// Answers are those of people, by the id of the interrupt node, as for Stubs. An interrupt without an answer stays open.
	Answers map[string]Answer
	Signals []Signal
	// Cancel, unless nil, cancels the run. That it never comes is an error.
	Cancel *Cancel
	// Start is the time at which the run begins; the zero value is the beginning of 2026, UTC.
	Start time.Time
	// Workflows finds the definitions of subworkflows.
	Workflows graph.Resolver
}

// Moment is when something happens to the run.
type Moment struct {
	// When is the id of a node, as for Stubs: the moment is when the run first waits there. "" is the start of the run.
	When string
	// After is how much later it is.
	After time.Duration
}

// Signal is a signal that the run gets: at its Moment, or with a zero Moment as soon as the run waits for one of that name.
type Signal struct {
	Name    string
	Payload map[string]any
	Moment
}

// Cancel cancels the run at a moment.
type Cancel struct {
	Reason string
	Moment
}

// Outcome is how a run went.
type Outcome struct {
	// Status is how the run ended or, if nothing more can happen, what it waits for. It is Refused if no run was begun.
	Status machine.Status
	// Path lists the nodes that the run visited, in order; Visits counts them, those of subworkflows as "PARENT/NODE".
	Path   []string
	Visits map[string]int
	State  map[string]any
	// Result is that of a completed run.
	Result any
	// Error is why a run failed or was refused, nil for others. Reason is why a run was cancelled.
	Error  *Failure
	Reason string
	// Waiting lists the nodes at which the run waits, in branch order, those of subworkflows as "PARENT/NODE".
	Waiting []string
	// Elapsed is how much virtual time has passed.
	Elapsed time.Duration
	// Coverage is what the run and its subworkflows went through.
	Coverage Coverage
}

// Refused is the status of a run that was not begun, because its input breaks a schema.
const Refused machine.Status = "refused"

// Failure says why a run failed.
type Failure struct {
	Code, Message, NodeID string
	// Data is what the failure carries besides: as a rule {"raised": VALUE}, the value that a jq program raised.
	Data map[string]any
}

// T is what Run needs of a test; *testing.T and *testing.B have it.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Run is Simulate for a test, which it ends if the scenario does not fit the run.
func Run(t T, doc *definition.Document, s Scenario) *Outcome {
	t.Helper()
	out, err := Simulate(doc, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
