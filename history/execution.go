package history

import (
	"slices"
	"time"
)

// Phase is the state of a run (spec: execution, 11.1).
type Phase string

// All phases. A run that waits only for timers or subworkflows is PhaseRunning.
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

// Execution is the projection of one run's history; status and list read it instead of the history. It is a pure fold over the records
// (Apply), is stored in a side table, and can be rebuilt at any time.
//
// The projection of a run without records is Execution{ID: id}. Apply does not change a copy of an Execution.
type Execution struct {
	ID string
	// Seq is the seq of the last applied record.
	Seq   int64
	Phase Phase
	// DefinitionName, DefinitionVersion and Mode come from ExecutionStarted. DefinitionHash comes from ExecutionStarted or, if that has no
	// hash, from the newest checkpoint.
	DefinitionName    string
	DefinitionVersion string
	DefinitionHash    string
	// InputHash is "" for runs that the reference engine started.
	InputHash string
	Mode      string
	// Subworkflows comes from ExecutionStarted. It is shared between copies; do not change it.
	Subworkflows map[string]string
	// Title and Labels come from ExecutionStarted. Labels is shared between copies; do not change it.
	Title  string
	Labels map[string]string
	// Notify lists the targets to notify of the run's events. It is shared between copies; do not change it.
	Notify []string
	// Queue is the queue that the run waits in for a process; "" means DefaultQueue.
	Queue string
	// CurrentNodeID is "" for a completed run (spec: execution, 11.2).
	CurrentNodeID string
	// LastError is the error of a failed run, or the reason of a cancelled one.
	LastError  string
	SignalName string
	// DelegateCorrelationID is the correlation id of the newest delegate, in any phase.
	DelegateCorrelationID string
	// AgentID, Protocol and DelegateInput are set while a delegate is pending.
	AgentID       string
	Protocol      string
	DelegateInput map[string]any
	// ChildExecutionID is the newest subworkflow, ChildParentID its parent (spec: execution, 11.2), which is this run. A subworkflow that
	// started no other subworkflow has its own id and its parent's here.
	ChildExecutionID string
	ChildParentID    string
	// Parent is the run that started this one as a subworkflow, "" for a root. Depth is the nesting depth.
	Parent string
	Depth  int
	// ForkedFrom is the origin of a fork; zero for other runs.
	ForkedFrom ForkOrigin
	// StateSeq is the seq of the newest StateUpdated, 0 without one.
	StateSeq int64
	// NodeVisits counts ScheduleNode commands.
	NodeVisits int64
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Bytes is the size of the run's payloads as stored. A large value that a store keeps once for several records or runs counts only for
	// the first. Positions, timers and definitions do not count. The store sets it in Store.Execution, List and Batch.Bytes; Apply does not
	// change it.
	Bytes int64
	// Lineage is not part of the projection. AddLineage, Runner.List and Runner.Status set it.
	Lineage Lineage
	// Waits lists the run's open waits: those of one parallel block in branch order, others in order of their start. It is empty for an ended
	// run. It is shared between copies; do not change it.
	Waits []Wait

	fold fold
}

// fold is the state of Apply besides the exported fields. Its slices are shared between copies and never changed.
type fold struct {
	// started is true after ExecutionStarted, bound if that had a DefinitionHash.
	started, bound bool
	// outcome is the phase set by the newest event that ends a run, "" without one.
	outcome Phase
	// lastNode is the newest nodeId of any record.
	lastNode string
	// raised is true if the newest command is RaiseInterrupt.
	raised bool
	// own is true if no copy shares the waits.
	own bool
	// nodes, unless nil, counts the waits by node while own is true.
	nodes map[string]int
	// waits are the open waits. ExecutionFailed does not close them, because a run may continue after it.
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
