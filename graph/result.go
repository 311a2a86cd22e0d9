package graph

import (
	"github.com/workflows-engine/workflows-engine/graph/internal/process"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// Run is where a run stands: the answer of every call that continues one, and of Status. Its fields: go doc graph/runview Run.
type Run = view.Run

// Pending is one thing that a run waits for, with all that is needed to end the wait. Its fields: go doc graph/runview Pending.
type Pending = view.Pending

// Lack is a capability, such as an executor, that a run needs and this process does not have. Its fields: go doc graph/runview Lack.
type Lack = view.Lack

// Warning says that a run nears one of its limits, or that a call had another effect than it asked for. Its fields: go doc graph/runview Warning.
type Warning = view.Warning

// Progress is something that happened to a run, or to a subworkflow of it, while a call waited. Its fields: go doc graph/notify Progress.
type Progress = process.Progress

// ProgressKind tells what happened.
type ProgressKind = process.ProgressKind

// The kinds of progress.
const (
	NodeRuns      = process.NodeRuns
	NodeDone      = process.NodeDone
	AttemptFailed = process.AttemptFailed
	ExecutorAlive = process.ExecutorAlive
)

// The messages of the lines that Options.Logger gets of failed attempts and of the ends of runs.
const (
	LogAttemptFailed = process.LogAttemptFailed
	LogRunEnded      = process.LogRunEnded
)

// RecordEvent is what Options.OnRecord gets. Its fields: go doc graph/notify RecordEvent.
type RecordEvent = process.RecordEvent
