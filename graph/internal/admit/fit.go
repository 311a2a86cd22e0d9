package admit

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
)

// Fit measures how well a wait fits an input from outside. Among the waits of a run and its subworkflows, the best fit determines the run
// that gets the input.
type Fit int

// The fits, from no fit to full.
const (
	FitNone  Fit = iota // another kind of wait
	FitKind             // the kind of wait, but another name
	FitNode             // the name, but another branch, attempt or run
	FitWhole            // the wait that the input names
)

// Submitted identifies the activity or delegate of a submitted outcome.
type Submitted struct {
	NodeID         string
	Span           *history.ParallelSpan
	IdempotencyKey string
}

// Fit compares the outcome with a wait of a run.
func (s Submitted) Fit(executionID string, w machine.Wait) Fit {
	key := view.Key(executionID, w.Key)
	switch {
	case w.Kind != machine.WaitActivity && w.Kind != machine.WaitDelegate || !w.Host:
		return FitNone
	case w.NodeID != s.NodeID && s.IdempotencyKey == key: // the run of the key can name the right node
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

// ResumeFit compares an interrupt's id ("" for the only one) with a wait of a run.
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

// KeptFit reports how well a signal fits a run that does not await it: it is kept for a later wait, unless a run below awaits it.
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
