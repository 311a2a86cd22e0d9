package machine

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A deadline (the extension deadline, and the start of a run) is recorded where its time begins: in ExecutionStarted for the run, in
// NodeScheduled for all attempts of a visit or all items of its map. It passes with a TimerFired of kind deadline, which names no node for the
// run. A rollback is not bound by a deadline: compensations have none, and that of the run waits for the end of the rollback.

// limitRun sets the deadline of a run that starts: that of the definition, or a shorter one of the start. A replay reads it from the history.
func (m *Machine) limitRun(started *history.Payload) {
	if m.recorded == nil {
		d := m.prog.Deadline
		if of := m.cfg.Deadline; of > 0 && (d <= 0 || of < d) {
			d = of
		}
		if d > 0 {
			m.deadline = m.now.Add(d)
		}
	}
	started.DeadlineAt = m.deadline
	m.noteRunTimer()
}

// Deadline returns when the run fails, zero without a deadline.
func (m *Machine) Deadline() time.Time { return m.deadline }

// limitOf returns the deadline of a token's visit of a node, zero without one. The history decides about a recorded visit.
func (m *Machine) limitOf(t *token, n *definition.Node) time.Time {
	if n.Deadline <= 0 || t.rollback != nil {
		return time.Time{}
	}
	now := m.now
	if m.recorded != nil {
		if f := m.recorded.facts[visitID{n.ID, m.visits[n.Index]}]; f != nil && f.scheduled {
			return f.deadlineAt
		}
		now = m.present
	}
	return now.Add(n.Deadline)
}

// visitLimit returns the deadline of the visit in which a token waits, zero without one.
func (t *token) visitLimit() time.Time {
	if t.item() {
		return t.block.owner.limit
	}
	return t.limit
}

// limitTimer returns the timer that ends the visit of a token, "" without one.
func (t *token) limitTimer() (key string, due time.Time) {
	if t.limit.IsZero() || t.wait == nil && t.inner == nil || t.wait != nil && t.wait.Kind == waitWalk {
		return "", time.Time{}
	}
	return timerLimit + visitKey(t.node.ID, t.visit), t.limit
}

// runTimer returns the timer that ends the run, "" without one.
func (m *Machine) runTimer() (key string, due time.Time) {
	if m.deadline.IsZero() || m.status.Terminal() || m.rollsBack() {
		return "", time.Time{}
	}
	return timerRun, m.deadline
}

// noteRunTimer reports a change of timers if the run has a deadline.
func (m *Machine) noteRunTimer() { m.timersDirty = m.timersDirty || !m.deadline.IsZero() }

// visitExpired fails a visit at its deadline, whatever attempts are left.
func (m *Machine) visitExpired(t *token) {
	m.deadlinePassed(t)
	text := fmt.Sprintf("node %q did not end within %s", t.node.ID, t.node.Deadline)
	w := t.wait
	switch {
	case w == nil:
		f := &failure{Reason: reasonMap, Code: string(problem.Timeout), NodeID: t.node.ID, Message: text}
		m.endItems(t.inner, f, "the deadline of the node has passed")
	case w.Kind == WaitChild:
		m.abandon(t)
		m.childFailed(t, text, string(problem.Timeout), nil)
	default:
		m.endWaiting(t, Outcome{Host: w.Host, Code: string(problem.Timeout), Error: text, Final: true})
	}
}

// runExpired fails the run at its deadline.
func (m *Machine) runExpired() {
	m.event(history.TimerFired, history.Payload{TimerKind: TimerKindDeadline})
	m.fatal = &failure{
		Reason: reasonOrchestration, Code: string(problem.RunTimeout),
		Message: "the run did not end by its deadline",
	}
}

// resolveRun returns the recorded deadline of the run.
func (r *recorded) resolveRun() (resolution, bool) {
	rec := r.expired
	if rec == nil {
		return resolution{}, false
	}
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) {
		r.expired = nil
		m.runExpired()
	}}, true
}

// earlier returns the earlier of two times; a zero time does not count.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
