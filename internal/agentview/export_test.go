package agentview

// Kept is how many agents a Work keeps.
func (w *Work) Kept() int { return len(w.agents) }
