package machine

import (
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// An attempt that waits for its turn fails after the queue_timeout of its node (the extension queue), before it was requested. After a back-off
// the time runs from the end of the back-off, whether a process is alive then or not.

// QueueTimer returns the key of the timer that ends the wait of an attempt for its turn.
func QueueTimer(effectKey string) string { return timerQueue + effectKey }

// IsQueueTimer reports whether a timer ends the wait of an attempt for its turn.
func IsQueueTimer(key string) bool { return strings.HasPrefix(key, timerQueue) }

// queueTimer returns the timer that ends the wait for a turn, "" without one.
func (m *Machine) queueTimer(t *token) (key string, due time.Time) {
	w := t.wait
	if w == nil || t.node.QueueTimeout <= 0 || w.Host {
		return "", time.Time{}
	}
	switch {
	case w.counts() && w.Queued && !w.again && w.Journal == nil:
		due = w.Since.Add(t.node.QueueTimeout)
	case w.Kind == WaitBackoff && m.cfg.Mode == InProcess:
		due = w.Due.Add(t.node.QueueTimeout)
	default:
		return "", time.Time{}
	}
	return timerQueue + t.key(), due
}

// queueExpired fails an attempt that has waited too long for its turn.
func (m *Machine) queueExpired(t *token) {
	m.endWaiting(t, Outcome{
		Code: string(problem.QueueTimeout), Error: "the attempt had no turn within " + t.node.QueueTimeout.String(),
	})
}

// endWaiting records the failure of an attempt that waits for its turn, for the end of a back-off or for its outcome.
func (m *Machine) endWaiting(t *token, o Outcome) {
	m.abandon(t)
	if left := t.wait; left.Kind == WaitBackoff {
		m.stopWaiting(t)
		w := &wait{Kind: WaitActivity, Attempt: left.Attempt + 1, Queued: true, Repair: left.Repair, Repaired: left.Repaired}
		if t.node.Delegate != nil {
			w = m.delegateWait(t, left.Attempt+1, left.Input)
			w.Queued = true
		}
		m.waitFor(t, w)
	}
	m.attemptFailed(t, o)
}

// resolveQueued returns the recorded failure of an attempt that had no turn.
func (r *recorded) resolveQueued(t *token, f *visitFacts, attempt int) (resolution, bool) {
	if f.used == len(f.failed) {
		return resolution{}, false
	}
	rec := &f.failed[f.used]
	if rec.Payload.Code != string(problem.QueueTimeout) || max(rec.Payload.Attempt, 1) != attempt {
		return resolution{}, false
	}
	o := failedOutcome(rec, false)
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) { f.used++; m.endWaiting(t, o) }}, true
}
