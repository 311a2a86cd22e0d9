package machine

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// attemptFailed records a failed attempt, and starts the next attempt, now or after a back-off, or fails the node (spec: execution, 8.3 and
// 8.8).
func (m *Machine) attemptFailed(t *token, o Outcome) {
	w := t.wait
	attempt := max(w.Attempt, 1)
	next := &wait{
		Kind: WaitBackoff, Attempt: attempt, Input: w.Input, LastError: o.Error, LastCode: o.Code, Repaired: w.Repaired,
	}
	retry := m.retryOf(t.node)
	again := !o.Final && mayRetry(retry, attempt, o.Code)
	if t.item() && again && retry.Err != nil {
		again = false // an item has no FailNode to record it
	}
	p := m.fact(t)
	if mayRepair(t, o) {
		again = true
		next.Repair, next.Repaired = o.Repair, true
		p.Repair = o.Repair
	}
	p.Error, p.Code, p.Data, p.WillRetry, p.IdempotencyKey, p.Usage = o.Error, o.Code, o.Data, again, o.IdempotencyKey, o.Usage
	if w.Kind == WaitActivity || o.Host || attempt > 1 {
		p.Attempt = attempt
	}
	if !again {
		m.attemptEnded(t, history.ActivityFailed, p)
		reason := reasonActivity
		if w.Kind == WaitDelegate && !o.Host {
			reason = reasonDelegate
		}
		m.walk(t, m.failToken(t, &failure{Reason: reason, Message: o.Error, Code: o.Code, NodeID: t.node.ID, Data: o.Data}))
		return
	}
	delay := o.RetryAfter
	if next.Repair == nil {
		if retry.Err != nil {
			m.attemptEnded(t, history.ActivityFailed, p)
			m.walk(t, m.failErr(t, reasonOrchestration, retry.Err))
			return
		}
		delay = max(delay, retry.DelayOf(attempt+1, m.cfg.ExecutionID+":"+t.key()))
	}
	// An attempt that must wait for its turn waits like one whose back-off is over.
	backoff := delay > 0 || o.backoff || !w.Host && m.queues(t.node)
	if backoff {
		next.Due = m.now.Add(delay)
		p.RetryAt = next.Due
	}
	m.attemptEnded(t, history.ActivityFailed, p)
	m.stopWaiting(t)
	if backoff {
		m.waitFor(t, next)
		return
	}
	m.requestAgain(t, next)
}

// requestAgain starts the next attempt after a back-off, which may have been empty.
func (m *Machine) requestAgain(t *token, left *wait) {
	attempt := left.Attempt + 1
	if t.node.Type == definition.AgentDelegate {
		w := m.delegateWait(t, attempt, left.Input)
		w.LastError, w.LastCode = left.LastError, left.LastCode
		m.request(t, w)
		return
	}
	m.request(t, &wait{
		Kind: WaitActivity, Attempt: attempt, LastError: left.LastError, LastCode: left.LastCode,
		Repair: left.Repair, Repaired: left.Repaired,
	})
}

func mayRetry(r *definition.Retry, attempt int, code string) bool {
	return r != nil && attempt < r.MaxAttempts && !endsAttempts(r, code)
}

// The retry policy of nodes without one whose type is in Config.Attempts.
const (
	firstBackoff   = 2 * time.Second
	longestBackoff = time.Minute
	backoffFactor  = 2
	backoffJitter  = 0.2
)

// retryOf returns the retry policy of a node, nil without one.
func (m *Machine) retryOf(n *definition.Node) *definition.Retry {
	if attempts := m.cfg.Attempts[string(n.Type)]; n.Retry == nil && attempts > 1 {
		return &definition.Retry{MaxAttempts: attempts, Initial: firstBackoff, Max: longestBackoff, Coefficient: backoffFactor, Jitter: backoffJitter}
	}
	return n.Retry
}

// maxAttempts returns the number of attempts that the policy of a node allows.
func (m *Machine) maxAttempts(n *definition.Node) int {
	if r := m.retryOf(n); r != nil {
		return max(r.MaxAttempts, 1)
	}
	return 1
}

// mayRepair reports whether a failed attempt gets the repair that it asks for, even without an attempt left: otherwise the result of the
// attempt would be lost.
func mayRepair(t *token, o Outcome) bool {
	w := t.wait
	return o.Repair != nil && !o.Host && w.Kind == WaitActivity && !w.Repaired && !endsAttempts(t.node.Retry, o.Code)
}

// endsAttempts reports whether a policy lists a code as non-retryable.
func endsAttempts(r *definition.Retry, code string) bool {
	return r != nil && code != "" && slices.Contains(r.NonRetryable, code)
}
