package graph

import (
	"github.com/workflows-engine/workflows-engine/graph/notify"
	"github.com/workflows-engine/workflows-engine/graph/runview"
)

// Run is where a run stands: the answer of every call that drives one, and of Status.
type Run = runview.Run

// Pending is one thing that a run waits for, with all that whoever ends the wait needs.
type Pending = runview.Pending

// Lack is what this process lacks to go on with a run.
type Lack = runview.Lack

// Warning says that a run nears one of its limits, and what to do about it.
type Warning = runview.Warning

// Progress is something that happened to a run, or to a subworkflow of it, while a call waited for it.
type Progress = notify.Progress

// ProgressKind tells what happened.
type ProgressKind = notify.ProgressKind

// The kinds of progress.
const (
	NodeRuns      = notify.NodeRuns
	NodeDone      = notify.NodeDone
	AttemptFailed = notify.AttemptFailed
	ExecutorAlive = notify.ExecutorAlive
)

// RecordEvent is what Options.OnRecord gets.
type RecordEvent = notify.RecordEvent
