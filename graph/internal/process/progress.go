package process

import (
	"github.com/workflows-engine/workflows-engine/history"
)

// Progress is graph.Progress, which documents the fields.
type Progress struct {
	ExecutionID, NodeID, Branch string
	NodeVisits                  int
	Kind                        ProgressKind
	Attempt                     int
	Error                       string
	Detail                      map[string]any
}

// ProgressKind is graph.ProgressKind, which documents the values.
type ProgressKind string

// The kinds of progress.
const (
	NodeRuns      ProgressKind = "runs"
	NodeDone      ProgressKind = "completed"
	AttemptFailed ProgressKind = "attempt failed"
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
