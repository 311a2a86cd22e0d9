package admit

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Fit says how well a wait of a run fits an input from outside. The best fit among the waits of a run and its subworkflows
// decides which run gets the input.
type Fit int

// The fits, from none to full.
const (
	FitNone  Fit = iota // another kind of wait
	FitKind             // the kind of wait, but not the one that is named
	FitNode             // the one that is named, but another branch, attempt or run of it
	FitWhole            // the wait that the input is for
)

// Submitted names the activity or delegate whose outcome is submitted.
type Submitted struct {
	NodeID         string
	Span           *history.ParallelSpan
	IdempotencyKey string
}

// Fit compares the submitted outcome with a wait of the run with the id.
func (s Submitted) Fit(executionID string, w machine.Wait) Fit {
	key := view.Key(executionID, w.Key)
	switch {
	case w.Kind != machine.WaitActivity && w.Kind != machine.WaitDelegate || !w.Host:
		return FitNone
	case w.NodeID != s.NodeID && s.IdempotencyKey == key: // the run that has the key can say whose it is
		return FitNode
	case w.NodeID != s.NodeID:
		return FitKind
	case s.Span == nil && s.IdempotencyKey == key:
		return FitWhole
	case !sameSpan(w.Span, s.Span), s.IdempotencyKey != "" && s.IdempotencyKey != key:
		return FitNode
	default:
		return FitWhole
	}
}

// ResumeFit compares the id of an interrupt, "" for the only one, with a wait of the run with the id.
func ResumeFit(interruptID, executionID string, w machine.Wait) Fit {
	switch {
	case w.Kind != machine.WaitInterrupt:
		return FitNone
	case interruptID == "" || interruptID == view.Key(executionID, w.Key):
		return FitWhole
	default:
		return FitKind
	}
}

// SignalFit compares the name of a signal with a wait.
func SignalFit(name string, w machine.Wait) Fit {
	switch {
	case w.Kind != machine.WaitSignal:
		return FitNone
	case w.SignalName == name:
		return FitWhole
	default:
		return FitKind
	}
}

// KeptFit says how well a signal that no wait of a run awaits fits the run: it is kept for a later wait, if no run below awaits it.
func KeptFit(name string, m *machine.Machine) Fit {
	if m.Program().Keeps(name) {
		return FitNode
	}
	return FitNone
}

func sameSpan(a, b *history.ParallelSpan) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
