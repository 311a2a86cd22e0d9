package history

import "time"

// WaitKind says what ends a Wait.
type WaitKind string

// The kinds of waits.
const (
	WaitActivity    WaitKind = "activity"    // the outcome of an activity or delegate
	WaitBackoff     WaitKind = "backoff"     // the next attempt of an activity or delegate
	WaitInterrupt   WaitKind = "interrupt"   // a resume
	WaitSignal      WaitKind = "signal"      // a signal
	WaitTimer       WaitKind = "timer"       // a timer
	WaitSubworkflow WaitKind = "subworkflow" // the end of a subworkflow
)

// Wait is one thing that a run waits for, derived from its history. Members that do not belong to the kind are zero.
type Wait struct {
	Kind   WaitKind
	NodeID string
	// Visit is 0 if the record does not have it, as for first visits.
	Visit int
	// Span is the branch in which the run waits, nil outside of parallel blocks.
	Span *ParallelSpan
	// BlockVisit is the visit of Span's node, 0 for the first one and in records of earlier versions.
	BlockVisit int

	// NodeType, Attempt and Mode of an activity's newest request. Mode is "" for requests of the reference engine.
	NodeType string
	Attempt  int
	Mode     string
	// AgentID, Protocol, Correlation and Input of a delegate.
	AgentID     string
	Protocol    string
	Correlation string
	Input       map[string]any
	// Queued says that the attempt waits for its turn: it is not requested yet.
	Queued bool
	// ExternalTask is the id of a delegate's task once the agent has accepted it. From then on no process has to wait for it: a
	// timer says when to poll it.
	ExternalTask string

	// Prompt is the beginning of an interrupt's. Projections of earlier versions of this engine lack it.
	Prompt string
	// SignalName, for WaitSignal.
	SignalName string
	// Due is when a timer or a back-off ends; zero if not recorded.
	Due time.Time
	// ChildExecutionID, for WaitSubworkflow.
	ChildExecutionID string
}

// maxWaitPrompt is how many characters of a prompt a Wait has: enough for a line of a list.
const maxWaitPrompt = 60

const (
	modeInProc   = "in_process"
	modeHost     = "host_mediated"
	nodeDelegate = "agent_delegate"
	// rollbackOfCatch is the reason of a rollback after which the run, or the branch, goes on.
	rollbackOfCatch = "catch"
)

// InProcess reports whether the process that drives the run performs the activity.
func (w *Wait) InProcess() bool {
	return w.Kind == WaitActivity && w.Mode == modeInProc && w.ExternalTask == ""
}

// AtAgent reports whether a task runs at a remote agent.
func (w *Wait) AtAgent() bool { return w.Kind == WaitActivity && w.ExternalTask != "" }

// Delegate reports whether the wait is for an agent.
func (w *Wait) Delegate() bool { return w.NodeType == nodeDelegate }

// meets reports whether a record is about this wait: it has the same node, and the same branch and visit if both have one.
func (w *Wait) meets(p *Payload) bool {
	switch {
	case w.NodeID != p.NodeID:
		return false
	case w.Span != nil && p.Span != nil && *w.Span != *p.Span:
		return false
	}
	return w.Visit == 0 || p.Visit == 0 || w.Visit == p.Visit
}

// within reports whether the wait is in a branch of a visit of a parallel block.
func (w *Wait) within(node string, visit int) bool {
	return w.Span != nil && w.Span.ParallelNodeID == node && (w.BlockVisit == 0 || w.BlockVisit == visit)
}
