package runjson

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
)

// WaitsFor describes the wait of a run in a few words, as "asks: Refund this customer?"; "" if it waits for nothing.
func WaitsFor(x *history.Execution) string {
	if len(x.Waits) == 0 {
		return ""
	}
	w := &x.Waits[0]
	for i := range x.Waits {
		if phaseOf(&x.Waits[i]) == x.Phase {
			w = &x.Waits[i]
			break
		}
	}
	text := words(w)
	if more := len(x.Waits) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// phaseOf is the phase of a run that waits for nothing else.
func phaseOf(w *history.Wait) history.Phase {
	switch {
	case w.InProcess(), w.AtAgent():
		return history.PhaseRunning
	case w.Kind == history.WaitInterrupt:
		return history.PhaseInterrupted
	case w.Kind == history.WaitSignal:
		return history.PhaseAwaitingSignal
	case w.Kind == history.WaitActivity:
		return history.PhaseAwaitingActivity
	default:
		return ""
	}
}

func words(w *history.Wait) string {
	switch w.Kind {
	case history.WaitInterrupt:
		return "asks: " + cmp.Or(strings.Join(strings.Fields(w.Prompt), " "), "at "+w.NodeID)
	case history.WaitSignal:
		return "signal " + w.SignalName
	case history.WaitSubworkflow:
		return "subworkflow " + w.NodeID
	case history.WaitActivity:
		if w.Delegate() {
			return "agent " + cmp.Or(w.AgentID, w.NodeID)
		}
		return strings.TrimSpace(w.NodeType + " " + w.NodeID)
	}
	until := ""
	if !w.Due.IsZero() {
		until = "until " + strings.TrimSuffix(w.Due.UTC().Format("2006-01-02 15:04Z"), " 00:00Z")
	}
	if w.Kind == history.WaitBackoff {
		return strings.TrimSpace("retry of " + w.NodeID + " " + until)
	}
	return cmp.Or(until, "timer "+w.NodeID)
}
