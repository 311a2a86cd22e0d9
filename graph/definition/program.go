package definition

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Program is a definition compiled for walking. It is immutable and safe for concurrent use.
//
// A definition may hold parts that are wrong but that a run need not reach, for instance a jq program of a later
// switch case. Such a part is a warning, and the Program keeps its problem where the part would be (an *expr.Program
// that always fails, or an Err member), so that reaching it fails the node with that problem.
type Program struct {
	// Document is the source.
	Document *Document
	Hash     string
	Name     string
	Version  string
	// Entry is the target of the __start__ edge; usually, but not necessarily, the start node.
	Entry *Node
	// Nodes in document order.
	Nodes []*Node
	// State are the reducers and the compiled state_schema.
	State      *StateRules
	Checkpoint CheckpointPolicy
	// Rollback selects the ends of a run that roll it back.
	Rollback Rollback
	// Queue is the queue of the runs whose start names none, "" for the usual one.
	Queue string
	// Deadline is how long a run may take from its start, 0 for no bound (the extension deadline).
	Deadline time.Duration
	// Warnings are the findings of Compile.
	Warnings problem.Findings
	// Sources are the jq programs that the machine evaluates, those of its templates included. Shared: do not change them.
	Sources []Source
	// Incomplete is set by Draft if nodes or edges are missing because the document is broken there.
	Incomplete bool

	byID map[string]*Node
	// keeps are the names of signals that are kept until a wait takes them.
	keeps map[string]bool
	// routes is set if a node has a queue.
	routes bool
}

// For returns the program of another document with the same hash: it was read from another text, or has another signature.
func (p *Program) For(d *Document) *Program {
	if p.Document == d {
		return p
	}
	other := *p
	other.Document, other.Warnings = d, slices.Clone(p.Warnings)
	for i := range other.Warnings {
		at := &other.Warnings[i].At
		place := d.Place(at.Pointer)
		at.Line, at.Column = place.Line, place.Column
	}
	return &other
}

// Node returns a node by id, or nil.
func (p *Program) Node(id string) *Node { return p.byID[id] }

// Node is one node of a Program. Of the members from Start to Delegate exactly the one of its Type is set; the three
// activity types share Activity.
type Node struct {
	ID    string
	Type  Type
	Index int // position in the document's nodes array
	// Config and Metadata as written (plain JSON, shared: do not change). Config is never nil.
	Config   map[string]any
	Metadata map[string]any
	// Next is the single static successor; nil for end and switch.
	Next *Node
	// NextErr is set, and Next nil, when the node's edge leads to an id that no node has: the run fails once the node
	// has completed.
	NextErr error
	// Catches are the places where the run continues after a failure of the node; see CaughtBy.
	Catches []Catch
	// Compensation is nil unless the node is undone by another one in a rollback.
	Compensation *Compensation
	// Map is nil unless the node is repeated for each item of a list.
	Map *Map
	// Loop is nil unless the node is a switch that repeats a body.
	Loop *Loop
	// Retry is nil without a retry policy.
	Retry *Retry
	// Timeout is 0 without one. TimeoutErr is set when the text is an invalid duration: the node then fails when reached.
	Timeout    time.Duration
	TimeoutErr error
	// Queue names the queue whose workers perform the attempts, "" for that of the run. QueueTimeout is how long an attempt may wait for its
	// turn, 0 for no bound (the extension queue).
	Queue        string
	QueueTimeout time.Duration
	// Deadline is how long a visit may take, with all attempts or items, 0 for no bound (the extension deadline).
	Deadline time.Duration
	// Heartbeat is the longest silence of an attempt in process, 0 for no bound (the extension heartbeat).
	Heartbeat time.Duration

	Start       *StartConfig
	End         *EndConfig
	Activity    *ActivityConfig
	Switch      *SwitchConfig
	Interrupt   *InterruptConfig
	Parallel    *ParallelConfig
	Wait        *WaitConfig
	SetState    *SetStateConfig
	Subworkflow *SubworkflowConfig
	Delegate    *DelegateConfig
}
