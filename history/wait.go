package history

import "time"

// WaitKind is the kind of event that ends a Wait.
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

// Wait is an open wait of a run, derived from its history. Fields that do not belong to the kind are zero.
type Wait struct {
	Kind   WaitKind
	NodeID string
	// Visit is 0 if the record has no visit, as for first visits.
	Visit int
	// Span is the branch of the wait, nil outside of parallel blocks.
	Span *ParallelSpan
	// BlockVisit is the visit of Span's node, 0 for the first visit and in records of earlier versions.
	BlockVisit int

	// NodeType, Attempt and Mode come from an activity's newest request. Mode is "" for requests of the reference engine.
	NodeType string
	Attempt  int
	Mode     string
	// AgentID, Protocol, Correlation and Input belong to a delegate.
	AgentID     string
	Protocol    string
	Correlation string
	Input       map[string]any
	// Queued is true if the attempt waits for its turn: it is not requested yet.
	Queued bool
	// ExternalTask is the id of a delegate's task after the agent has accepted it. From then on a process need not wait for it: a timer
	// determines when to poll it.
	ExternalTask string

	// Prompt is the beginning of an interrupt's prompt. Projections of earlier versions of this engine lack it.
	Prompt string
	// SignalName is set for WaitSignal.
	SignalName string
	// Due is the end of a timer or a back-off; zero if not recorded.
	Due time.Time
	// ChildExecutionID is set for WaitSubworkflow.
	ChildExecutionID string
}

// maxWaitPrompt is the maximum length of Wait.Prompt in characters, enough for a line of a list.
const maxWaitPrompt = 60

const (
	modeInProc   = "in_process"
	modeHost     = "host_mediated"
	nodeDelegate = "agent_delegate"
	// rollbackOfCatch is the reason of a rollback after which the run or the branch continues.
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

// meets reports whether a record belongs to this wait: it has the same node, and the same branch and visit if both have one.
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
