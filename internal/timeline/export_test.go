package timeline

import "github.com/workflows-engine/workflows-engine/history"

// Take takes the next entry.
func (w *Work) Take(r *history.Record) { w.take(r) }

// Kept returns the number of agents that a Work keeps.
func (w *Work) Kept() int { return len(w.agents) }
