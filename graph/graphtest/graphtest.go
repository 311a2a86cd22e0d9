// Package graphtest tests workflow definitions. It runs a definition with stubs for activities, agents and people, in virtual time: a run
// that waits for a week takes no time, and a test always takes the same path.
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
// It drives package machine, without a store, a Runner or goroutines. Branches run in their order. If a timer and another event are due at
// the same time, the timer is first.
package graphtest

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Scenario describes a run: its input, and the reactions of its environment.
type Scenario struct {
	Input map[string]any
	// Stubs perform activities, delegations and subworkflows, by node id; "PARENT/NODE" is a node in the subworkflow of node PARENT. An
	// activity without a stub returns demo_output of its metadata, and a subworkflow without a stub is run. Other nodes without a stub fail
	// the test.
	Stubs map[string]Stub
	// Answers are the answers of people, by the id of the interrupt node as for Stubs. An interrupt without an answer stays open.
	Answers map[string]Answer
	Signals []Signal
	// Cancel, if not nil, cancels the run. It is an error if its moment never comes.
	Cancel *Cancel
	// Start is the start time of the run; the zero value means the start of 2026, UTC.
	Start time.Time
	// Workflows returns the definitions of subworkflows.
	Workflows graph.Resolver
}

// Moment is a point in the course of a run.
type Moment struct {
	// When is a node id, as for Stubs: the moment at which the run first waits there. "" is the start of the run.
	When string
	// After is added to the moment.
	After time.Duration
}

// Signal is sent to the run at its Moment. With a zero Moment it is sent once the run waits for a signal of that name.
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

// Outcome describes a run.
type Outcome struct {
	// Status is the final status of the run, its wait if nothing more can happen, or Refused if it was not started.
	Status machine.Status
	// Path lists the visited nodes in order, Visits counts them. Nodes of subworkflows are "PARENT/NODE".
	Path   []string
	Visits map[string]int
	State  map[string]any
	// Result is that of a completed run.
	Result any
	// Error describes the failure of a failed or refused run, Reason a cancellation.
	Error  *Failure
	Reason string
	// Waiting lists the nodes with an open wait, in branch order; those of subworkflows as "PARENT/NODE".
	Waiting []string
	// Elapsed is the virtual duration.
	Elapsed time.Duration
	// Coverage is that of the run and its subworkflows.
	Coverage Coverage
}

// Refused is the status of a run that was not started because its input does not match a schema.
const Refused machine.Status = "refused"

// Failure describes a failed run.
type Failure struct {
	Code, Message, NodeID string
	// Data holds further fields of the failure, such as {"raised": VALUE}: the value raised by a jq program.
	Data map[string]any
}

// T is the part of *testing.T and *testing.B that Run uses.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Run is Simulate in a test. It fails the test if the scenario does not fit the run.
func Run(t T, doc *definition.Document, s Scenario) *Outcome {
	t.Helper()
	out, err := Simulate(doc, s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
