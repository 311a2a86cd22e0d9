package mcpserver

import "github.com/workflows-engine/workflows-engine/internal/runjson"

// maxFull is how many entries of pending are described in full. A host that has dealt with them learns of the next.
const maxFull = 8

// putPending puts everything that a run waits for, and the call that continues it.
func putPending(m *members, run runView) {
	if run.Status.Terminal() {
		return
	}
	if shown := run.shown(); len(shown) > 0 {
		first, next, brief := runjson.First(run.Run), run.actionable(), false
		entries := make([]members, len(shown))
		for i, p := range shown {
			if i < maxFull || p == first || p == next {
				entries[i] = runjson.Pending(run.Run, p, first)
			} else {
				entries[i], brief = runjson.Brief(run.Run, p), true
			}
		}
		m.Put("pending", entries)
		if brief || run.node != "" {
			m.Put("pending_total", float64(len(run.Pending)))
		}
	}
	m.Put("next", nextCall(run))
}
