package process

import (
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// SurveyResult is what was found, or what a recovery has done.
type SurveyResult struct {
	// ExecutionIDs were (or would be) taken over, oldest first.
	ExecutionIDs []string
	// Due are the timers that would be fired, the earliest of each run that is not taken over anyway (a survey only).
	Due []history.Timer
	// Left are the runs that would be left to others because this process lacks something (a survey only).
	Left []LeftRun
	// Elsewhere are the runs that need a driver and have one: another process owns them (All only).
	Elsewhere []OwnedRun
	// Roots has the run from which to go on with it (Root) for each subworkflow above that is not one itself (All only).
	Roots map[string]string
}

// LeftRun is a run without a driver that this process leaves to others.
type LeftRun struct {
	ExecutionID string
	// Lack is what this process lacks to go on with it, nil if it cannot even tell where the run stands (Err).
	Lack *view.Lack
	// Err is why the run cannot be loaded, such as DEFINITION_REQUIRED; nil with Lack.
	Err error
}

// OwnedRun is a run that another process with a live lease owns.
type OwnedRun struct {
	ExecutionID string
	Owner       history.Owner
}
