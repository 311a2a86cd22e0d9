package process

import (
	"github.com/workflows-engine/workflows-engine/history"
)

// Progress is something that happened to a run, or to a subworkflow of it, while a call waited for it.
type Progress struct {
	// ExecutionID is the run or subworkflow.
	ExecutionID string
	NodeID      string
	// Branch is the parallel branch of NodeID as far as it is known, "" outside.
	Branch string
	// NodeVisits of that run so far, 0 if it is not known.
	NodeVisits int
	Kind       ProgressKind
	// Attempt and Error describe a failed attempt.
	Attempt int
	Error   string
	// Detail is what an executor says about itself. Shared: do not change it.
	Detail map[string]any
}

// ProgressKind tells what happened.
type ProgressKind string

// The kinds of progress.
const (
	// NodeRuns: a node was begun, or is what the run stands at.
	NodeRuns ProgressKind = "runs"
	// NodeDone: an activity, timer, subworkflow or wait has ended well.
	NodeDone ProgressKind = "completed"
	// AttemptFailed: an attempt has failed; there may be another.
	AttemptFailed ProgressKind = "attempt failed"
	// ExecutorAlive: an executor gave a sign of life.
	ExecutorAlive ProgressKind = "alive"
)

// progressOf reads a record as progress. ok is false for records that say nothing new to who waits.
func progressOf(id string, rec *history.Record) (p Progress, ok bool) {
	p = Progress{ExecutionID: id, NodeID: rec.Payload.NodeID}
	if s := rec.Payload.Span; s != nil {
		p.Branch = s.BranchName
	}
	if rec.Kind == history.Command || p.NodeID == "" || rec.Payload.AgentStep != nil { // of a step its executor tells
		return p, false
	}
	switch rec.Name {
	case history.NodeScheduled:
		p.Kind = NodeRuns
	case history.ActivityRequested:
		p.Kind, p.Attempt = NodeRuns, rec.Payload.Attempt
	case history.ActivityCompleted, history.TimerFired, history.SignalReceived, history.InterruptResumed:
		p.Kind = NodeDone
	case history.SubworkflowCompleted:
		p.Kind = NodeDone
		if rec.Payload.Failed {
			p.Kind, p.Error = AttemptFailed, rec.Payload.Error
		}
	case history.ActivityFailed:
		p.Kind, p.Attempt, p.Error = AttemptFailed, rec.Payload.Attempt, rec.Payload.Error
	default:
		return p, false
	}
	return p, true
}
