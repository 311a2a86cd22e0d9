package graph

import (
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/history"
)

// Progress is a change of a run, or of its subworkflow, while a call waits for it.
type Progress struct {
	// ExecutionID is the run or subworkflow.
	ExecutionID string
	NodeID      string
	// Branch is the parallel branch of NodeID, if known; "" outside of branches.
	Branch string
	// NodeVisits counts the node visits of that run; 0 if unknown.
	NodeVisits int
	Kind       ProgressKind
	// Attempt and Error describe a failed attempt.
	Attempt int
	Error   string
	// Detail is reported by the executor. It is shared: do not change it.
	Detail map[string]any
}

// ProgressKind is the kind of a Progress.
type ProgressKind string

// The kinds of progress.
const (
	// NodeRuns: a node has started, or is the current node.
	NodeRuns = ProgressKind(process.NodeRuns)
	// NodeDone: an activity, timer, subworkflow or wait has succeeded.
	NodeDone = ProgressKind(process.NodeDone)
	// AttemptFailed: an attempt has failed; another one may follow.
	AttemptFailed = ProgressKind(process.AttemptFailed)
	// ExecutorAlive: an executor sent a heartbeat.
	ExecutorAlive = ProgressKind(process.ExecutorAlive)
)

func progress(p process.Progress) Progress {
	return Progress{
		ExecutionID: p.ExecutionID, NodeID: p.NodeID, Branch: p.Branch, NodeVisits: p.NodeVisits, Kind: ProgressKind(p.Kind),
		Attempt: p.Attempt, Error: p.Error, Detail: p.Detail,
	}
}

// Messages of Options.Logger for a failed attempt and the end of a run.
const (
	LogAttemptFailed = run.LogAttemptFailed
	LogRunEnded      = run.LogRunEnded
)

// RecordEvent is the argument of Options.OnRecord.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}
