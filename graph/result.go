package graph

import (
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
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
	// Detail is what an executor reports about itself. Shared: do not change it.
	Detail map[string]any
}

// ProgressKind is the kind of a Progress.
type ProgressKind string

// The kinds of progress.
const (
	// NodeRuns: a node was begun, or is the run's current node.
	NodeRuns = ProgressKind(process.NodeRuns)
	// NodeDone: an activity, timer, subworkflow or wait has ended well.
	NodeDone = ProgressKind(process.NodeDone)
	// AttemptFailed: an attempt has failed; there may be another.
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

// The messages of the lines that Options.Logger gets of failed attempts and of the ends of runs.
const (
	LogAttemptFailed = process.LogAttemptFailed
	LogRunEnded      = process.LogRunEnded
)

// RecordEvent is the argument of Options.OnRecord.
type RecordEvent struct {
	ExecutionID string
	Records     []history.Record
}
