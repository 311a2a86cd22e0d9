package history

import (
	"slices"
	"time"
)

// Phase is the state of a run (spec: execution, 11.1).
type Phase string

// All phases. A run that waits for nothing but timers or subworkflows is PhaseRunning.
const (
	PhaseRunning          Phase = "running"
	PhaseCompleted        Phase = "completed"
	PhaseFailed           Phase = "failed"
	PhaseCancelled        Phase = "cancelled"
	PhaseInterrupted      Phase = "interrupted"
	PhaseAwaitingActivity Phase = "awaiting_activity"
	PhaseAwaitingSignal   Phase = "awaiting_signal"
)

// Phases returns all phases.
func Phases() []Phase {
	return []Phase{
		PhaseRunning, PhaseCompleted, PhaseFailed, PhaseCancelled, PhaseInterrupted, PhaseAwaitingActivity, PhaseAwaitingSignal,
	}
}

// OpenPhases returns the phases of runs that have not ended.
func OpenPhases() []Phase { return slices.DeleteFunc(Phases(), Phase.Terminal) }

// EndedPhases returns the phases of runs that have ended.
func EndedPhases() []Phase {
	return slices.DeleteFunc(Phases(), func(p Phase) bool { return !p.Terminal() })
}

// Terminal reports whether a run in this phase has ended.
func (p Phase) Terminal() bool {
	return p == PhaseCompleted || p == PhaseFailed || p == PhaseCancelled
}

// Execution is the projection of one run's history: status and list read it instead of the history. It is a pure fold over
// the records (Apply), kept in a side table, and can be rebuilt at any time.
//
// The projection of a run without records is Execution{ID: id}. A copy of an Execution is independent of the original
// under Apply.
type Execution struct {
	ID string
	// Seq is the seq of the last record that was applied.
	Seq   int64
	Phase Phase
	// DefinitionName, DefinitionVersion and Mode are those of ExecutionStarted; DefinitionHash is that of ExecutionStarted or
	// else of the newest checkpoint.
	DefinitionName    string
	DefinitionVersion string
	DefinitionHash    string
	// InputHash is "" for runs begun by the reference engine.
	InputHash string
	Mode      string
	// Subworkflows are those of ExecutionStarted. Shared between copies; do not change it.
	Subworkflows map[string]string
	// Title and Labels are those of ExecutionStarted. Labels is shared between copies; do not change it.
	Title  string
	Labels map[string]string
	// Notify are the targets that are notified of the run's events. It is shared between copies; do not change it.
	Notify []string
	// CurrentNodeID is "" for a completed run (spec: execution, 11.2).
	CurrentNodeID string
	// LastError is the failure of a failed run, the reason of a cancelled one.
	LastError  string
	SignalName string
	// The newest delegate's correlation id, in any phase.
	DelegateCorrelationID string
	// AgentID, Protocol and DelegateInput are set while a delegate is pending.
	AgentID       string
	Protocol      string
	DelegateInput map[string]any
	// ChildExecutionID is the newest subworkflow, and ChildParentID its parent (spec: execution, 11.2): this run, but for a
	// subworkflow that started none, which names itself and its parent.
	ChildExecutionID string
	ChildParentID    string
	// Parent is the run that started this one as a subworkflow, "" at the root; Depth its nesting depth.
	Parent string
	Depth  int
	// ForkedFrom says where the run was forked; zero for other runs.
	ForkedFrom ForkOrigin
	// StateSeq is the seq of the newest StateUpdated, 0 if there is none.
	StateSeq int64
	// NodeVisits counts ScheduleNode commands.
	NodeVisits int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Bytes is the length of the payloads of the run's records as the store keeps them. A large value that a store keeps
	// once for several records or runs counts where it was new. Positions, timers and definitions do not count. The store
	// counts it: Store.Execution, List and Batch.Bytes return it, Apply leaves it alone.
	Bytes int64
	// Lineage is no part of the projection either: AddLineage sets it, and so do Runner.List and Runner.Status for their answers.
	Lineage Lineage
	// Waits lists what the run waits for: the waits of one parallel block in branch order, others in the order in which they
	// began. It is empty if the run has ended. It is shared between copies; do not change it.
	Waits []Wait

	fold fold
}

// fold is what Apply needs besides the exported members. Its slices are shared between copies and never changed.
type fold struct {
	// started says that ExecutionStarted was applied, bound that it had a DefinitionHash.
	started, bound bool
	// outcome is the phase of the newest event that ends a run, "" if none does.
	outcome Phase
	// lastNode is the newest nodeId of any record.
	lastNode string
	// raised says that the newest command is RaiseInterrupt.
	raised bool
	// own says that the waits are shared with no copy.
	own bool
	// nodes, unless nil, counts the waits by node while they are this fold's own.
	nodes map[string]int
	// waits are the open waits. They outlive an ExecutionFailed, after which a run may continue.
	waits []Wait
	// forks are the open parallel blocks, outermost first.
	forks []fork
}

// fork is an open parallel block.
type fork struct {
	node     string
	visit    int // 0 for the first one
	join     string
	branches []string
}
