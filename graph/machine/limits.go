package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A run that has reached a limit fails at its next visit. A replay ignores the limits: another process may have recorded the
// history under larger ones.

// SetLimits replaces the limits of a machine that was rebuilt; see Config.
func (m *Machine) SetLimits(maxVisits int, l Limits) {
	if maxVisits > 0 {
		m.cfg.MaxVisits = maxVisits
	}
	m.cfg.Limits = l
}

// SetBytes sets the size of the run's stored records.
func (m *Machine) SetBytes(n int64) { m.bytes = n }

// Awaited returns the number of pending activities and delegates.
func (m *Machine) Awaited() int { return m.open }

// limitReached returns the failure of a run that has reached the limit of its records, nil below it.
func (m *Machine) limitReached(nodeID string) *failure {
	if m.repeating() {
		return nil
	}
	l := &m.cfg.Limits
	fail := func(code problem.Code, format string, args ...any) *failure {
		return &failure{Reason: reasonOrchestration, Message: fmt.Sprintf(format, args...), Code: string(code), NodeID: nodeID}
	}
	switch {
	case l.MaxRecords > 0 && m.seq >= l.MaxRecords:
		return fail(problem.RecordLimitExceeded, "the run has reached its limit of %d records", l.MaxRecords)
	case l.MaxBytes > 0 && m.bytes >= l.MaxBytes:
		return fail(problem.ByteLimitExceeded, "the run has reached its limit of %d bytes of history", l.MaxBytes)
	}
	return m.treeLimitReached(nodeID, false)
}

// treeLimitReached returns the failure of a run whose tree has reached a limit, nil below it.
func (m *Machine) treeLimitReached(nodeID string, pending bool) *failure {
	if m.cfg.Limits.Tree == nil || m.repeating() {
		return nil
	}
	reached := m.cfg.Limits.Tree(pending)
	if reached == "" {
		return nil
	}
	return &failure{Reason: reasonOrchestration, Message: reached, Code: string(problem.TreeLimitExceeded), NodeID: nodeID}
}

// pendingLimitReached returns the failure of a run with as many pending activities as it may have, nil below that.
func (m *Machine) pendingLimitReached(nodeID string) *failure {
	most := m.cfg.Limits.MaxPending
	if most <= 0 || m.open < most || m.repeating() {
		return m.treeLimitReached(nodeID, true)
	}
	return &failure{
		Reason: reasonOrchestration, Code: string(problem.PendingLimitExceeded), NodeID: nodeID,
		Message: fmt.Sprintf("the run has reached its limit of %d pending activities", most),
	}
}

// counts reports whether a wait is for an activity or delegate.
func (w *wait) counts() bool { return w.Kind == WaitActivity || w.Kind == WaitDelegate }
