package machine

import (
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// wait: duration, until, signal (spec: execution, 2.6).

func (m *Machine) beginWait(t *token) *definition.Node {
	c := t.node.Wait
	if c.Err != nil {
		m.failErr(t, reasonWait, c.Err)
		return nil
	}
	if c.Kind == definition.WaitSignal {
		m.command(t, history.StartSignalWait, history.Payload{NodeID: t.node.ID, SignalName: c.Signal})
		p, w := m.fact(t), &wait{Kind: WaitSignal, Signal: c.Signal}
		p.SignalName = c.Signal
		t.locate(&p)
		m.limitWait(t, w, &p, c.Timeout)
		m.event(history.SignalWaitStarted, p)
		m.waitFor(t, w)
		if c.Keep {
			if payload, ok := m.takeKept(c.Signal); ok {
				return m.signalled(t, payload, "")
			}
		}
		return nil
	}
	if m.recorded != nil {
		m.setNow(m.recorded.waitingSince(t, m.present))
	}
	if c.Template != nil {
		text, err := c.Template.EvalAt(func() map[string]any { return t.view }, m.env())
		if err == nil {
			c, err = c.TemplateTime(text)
		}
		if err != nil {
			return m.failErr(t, reasonWait, err)
		}
	}
	due := c.UntilAt
	start := history.Payload{NodeID: t.node.ID, TimerKind: string(c.Kind), Until: c.Until}
	if c.Kind == definition.WaitDuration {
		due = m.now.Add(c.Duration())
		start.Until, start.WaitMS = "", history.Some(c.DurationMS)
	}
	m.command(t, history.StartTimer, start)
	p := m.fact(t)
	p.TimerKind = string(c.Kind)
	t.locate(&p)
	pending := due.After(m.now)
	if pending {
		p.DueAt = due
	}
	m.event(history.TimerStarted, p)
	if pending {
		m.waitFor(t, &wait{Kind: WaitTimer, Due: due})
		return nil
	}
	return m.timerFired(t)
}

// timerFired ends a wait of kind duration or until.
func (m *Machine) timerFired(t *token) *definition.Node {
	p := m.fact(t)
	p.TimerKind = string(t.node.Wait.Kind)
	m.event(history.TimerFired, p)
	m.stopWaiting(t)
	return m.complete(t, completion{output: map[string]any{}, checkpoint: true})
}

// timer returns the key and time of the timer that the token's wait or block needs, or "".
func (t *token) timer() (key string, due time.Time) {
	w := t.wait
	switch {
	case w == nil && t.inner != nil && !t.inner.deadline.IsZero():
		return timerDeadline + visitKey(t.node.ID, t.visit), t.inner.deadline
	case w == nil:
		return "", time.Time{}
	case w.Kind == WaitTimer:
		return timerWait + t.key(), w.Due
	case w.Kind == waitWalk:
		return t.key(), w.Due
	case w.Kind == WaitBackoff:
		return timerBackoff + t.key(), w.Due
	case !w.Deadline.IsZero():
		return timerDeadline + t.key(), w.Deadline
	default:
		return "", time.Time{}
	}
}

// acceptTimer finds the token of a due timer. It rejects a timer that is early or not open.
func (m *Machine) acceptTimer(f TimerFired, now time.Time) (*token, error) {
	t, due := m.timed(f.Key)
	if t == nil {
		return nil, problem.New(problem.HistoryConflict, "timer %s is not open", f.Key)
	}
	if now.Before(due) {
		return nil, problem.New(problem.HistoryConflict, "timer %s is due at %s", f.Key, due.UTC().Format(time.RFC3339Nano))
	}
	return t, nil
}

// timed finds the token whose wait or block has an open timer.
func (m *Machine) timed(key string) (found *token, due time.Time) {
	if k, at := m.runTimer(); k != "" && k == key {
		return m.main, at
	}
	for t := range m.living {
		if k, at := t.limitTimer(); k != "" && k == key {
			return t, at
		}
		if k, at := t.timer(); k != "" && k == key {
			return t, at
		}
		if k, at := t.restTimer(); k != "" && k == key {
			return t, at
		}
		if k, at := m.queueTimer(t); k != "" && k == key {
			return t, at
		}
	}
	return nil, time.Time{}
}

// fire ends the token's wait at its timer: it completes the wait node, starts the next attempt, or fails an attempt, interrupt or signal wait
// at its deadline.
func (m *Machine) fire(t *token) {
	w := t.wait
	switch w.Kind {
	case WaitTimer:
		m.walk(t, m.timerFired(t))
	case WaitBackoff:
		m.stopWaiting(t)
		m.requestAgain(t, w)
	case WaitInterrupt, WaitSignal:
		m.waitExpired(t)
	default:
		m.abandon(t)
		m.attemptFailed(t, Outcome{
			Host: w.Host, Code: string(problem.Timeout),
			Error: "the attempt timed out: no outcome within " + w.Timeout.String(),
		})
	}
}

// maxKeptNamed limits the names of early signals in a rejection.
const maxKeptNamed = 10

// acceptSignal finds the first wait for a signal (spec: execution, 7.3).
func (m *Machine) acceptSignal(s Signal, now time.Time) (*token, error) {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID}
	if s.IdempotencyKey != "" && slices.Contains(m.signalKeys, s.IdempotencyKey) {
		return nil, problem.New(problem.SignalNotAwaiting, "signal with idempotency key %q was already delivered", s.IdempotencyKey).WithReason(problem.NotAwaiting).
			WithPlace(at).WithHint("Use another idempotency key for another signal.")
	}
	t := m.find(func(t *token) bool { return t.wait.Kind == WaitSignal && t.wait.Signal == s.Name })
	late := t != nil && !t.wait.Deadline.IsZero() && !now.Before(t.wait.Deadline)
	if (t == nil || late) && m.prog.Keeps(s.Name) {
		return nil, m.acceptEarly(s, at)
	}
	first := m.find(func(t *token) bool { return t.wait.Kind == WaitSignal })
	if first == nil {
		taken := "only a wait with keep (extension early_signals) accepts early signals"
		if kept := m.prog.Kept(); len(kept) > 0 {
			taken = "the run keeps only early signals named " + problem.AndList(kept[:min(len(kept), maxKeptNamed)])
		}
		return nil, problem.New(problem.SignalNotAwaiting, "the run is %s and does not await a signal", m.Status()).WithReason(problem.NotAwaiting).
			WithPlace(at).WithHint("Ask Runner.Status for the current waits; %s.", taken)
	}
	if t == nil {
		return nil, problem.New(problem.SignalNameMismatch, "the run awaits signal %q, not %q", first.wait.Signal, s.Name).WithReason(problem.NotAwaiting).
			WithPlace(at).WithHint("Nothing was recorded. Leave the signal %q to the system that has it; do not invent one.", first.wait.Signal)
	}
	at.NodeID = t.node.ID
	if late {
		return nil, problem.New(problem.SignalNotAwaiting, "signal %q was awaited until %s", s.Name, t.wait.Deadline.UTC().Format(time.RFC3339)).
			WithReason(problem.NotAwaiting).WithPlace(at).WithHint("Do not send the signal again; Runner.Status shows how the run continued.")
	}
	return t, m.acceptable(t, object(s.Payload), problem.SignalValidationError, at)
}

// takeSignal applies a signal.
func (m *Machine) takeSignal(t *token, payload map[string]any, key string) {
	m.resumed = false
	m.noteSignalKey(key)
	m.walk(t, m.signalled(t, payload, key))
}

func (m *Machine) noteSignalKey(key string) {
	if key != "" {
		m.signalKeys = append(slices.Clone(m.signalKeys), key)
		m.signalKeys = m.signalKeys[max(len(m.signalKeys)-MaxSignalKeys, 0):]
	}
}

// signalled ends a wait for a signal, and returns the next node.
func (m *Machine) signalled(t *token, payload map[string]any, key string) *definition.Node {
	name := t.wait.Signal
	m.command(t, history.DeliverSignal, history.Payload{NodeID: t.node.ID, SignalName: name, SignalPayload: payload})
	p := m.fact(t)
	p.SignalName, p.SignalPayload, p.IdempotencyKey = name, payload, key
	m.event(history.SignalReceived, p)
	m.stopWaiting(t)
	return m.complete(t, completion{output: payload, delta: payload, checkpoint: true})
}
