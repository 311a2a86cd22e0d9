package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// An attempt in process may have to wait for its turn (Limits.Queued). Its timeout counts from its request, so it waits before the request:
// NodeScheduled marks it as queued, and the driver gets a TurnEffect. After a back-off, an attempt waits without a record; its timer stays
// open, so that any process finds it after a crash. An attempt that is restarted after a crash waits too, although it was requested.

// TurnEffect asks for a turn for an attempt in process. At its turn, respond with Input. An ActivityEffect or
// DelegateEffect for the attempt follows, unless the host performs it by then.
type TurnEffect struct {
	EffectBase
	Node *definition.Node
	// Timer is the key of the back-off's timer, "" without one.
	Timer string
}

// Key differs from the key of the attempt, which may be in flight later.
func (e *TurnEffect) Key() string { return TurnKey(e.EffectKey) }

// TurnKey returns the key of the TurnEffect of an attempt.
func TurnKey(effectKey string) string { return "turn:" + effectKey }

// Input is the driver's input to the machine at its turn.
func (e *TurnEffect) Input() Input {
	if e.Timer != "" {
		return TimerFired{Key: e.Timer}
	}
	return Turn{Key: e.EffectKey}
}

// Turn reports that it is the turn of an attempt.
type Turn struct{ Key string }

func (Turn) input() {}

// queues reports whether attempts of a node wait for a turn before they are requested.
func (m *Machine) queues(n *definition.Node) bool {
	return m.cfg.Mode == InProcess && m.limited(n)
}

func (m *Machine) limited(n *definition.Node) bool {
	return m.cfg.Limits.Queued != nil && n.Type.Info().Attempted() && m.cfg.Limits.Queued(n)
}

// scheduled is the payload of NodeScheduled.
func (m *Machine) scheduled(t *token) history.Payload {
	p := m.fact(t)
	p.FailFast = m.failsFast(t)
	p.DeadlineAt = t.limit
	owner := t.node.Map != nil && !t.item() // its items have the attempts
	if t.queued = t.node.TimeoutErr == nil && !owner && m.mustQueue(t); t.queued {
		p.Queued = true
		t.locate(&p)
	}
	if t.rollback != nil {
		p.Compensates = t.undoes().key()
	}
	return p
}

// firstAttempt requests the first attempt of a visit, or makes it wait for its turn.
func (m *Machine) firstAttempt(t *token, w *wait) {
	if !t.queued {
		m.request(t, w)
		return
	}
	if m.fatal = m.pendingLimitReached(t.node.ID); m.fatal != nil {
		return
	}
	w.Queued = true
	m.waitFor(t, w)
	if m.recorded != nil && t.node.QueueTimeout > 0 {
		w.Since = m.recorded.scheduledAt(t, w.Since)
	}
	if m.recorded == nil || !m.recorded.of(t).queued {
		m.effects = append(m.effects, t.effect())
	}
}

// mustQueue reports whether the first attempt of a visit waits for its turn. A replay reads that from the history, up to its end.
func (m *Machine) mustQueue(t *token) bool {
	if m.recorded != nil {
		f := m.recorded.of(t)
		if f.queued || f.request(1) != nil || f.closed != nil {
			return f.queued
		}
	}
	return m.queues(t.node)
}

func (t *token) turnEffect() *TurnEffect {
	e := &TurnEffect{EffectBase: t.effectBase(), Node: t.node}
	if t.wait.Kind == WaitBackoff {
		e.Attempt++
		e.Timer, _ = t.timer()
	} else if t.wait.rests() {
		e.Timer, _ = t.restTimer()
	}
	return e
}

// recorded returns the wait as the history has it, without the changes of Queue.
func (w *wait) recorded() *wait {
	if w == nil || !w.Queued || w.counts() && !w.again && !w.rests() {
		return w
	}
	r := *w
	r.Queued, r.again = false, false
	if r.Timeout > 0 && r.Journal == nil {
		r.Deadline = r.Since.Add(r.Timeout)
	}
	return &r
}

func (m *Machine) acceptTurn(in Turn) (*token, error) {
	t := m.find(func(t *token) bool { return t.wait.Queued && t.wait.counts() && t.key() == in.Key })
	if t == nil {
		return nil, problem.New(problem.HistoryConflict, "attempt %s does not wait for its turn", in.Key)
	}
	return t, nil
}

// takeTurn requests an attempt at its turn, or restarts one that was requested before.
func (m *Machine) takeTurn(t *token) {
	if j := t.wait.Journal; j != nil && j.Idle {
		m.wake(t, 0)
		m.effects = append(m.effects, t.effect())
		return
	}
	w := *t.wait
	w.Queued, w.again = false, false
	if !t.wait.again {
		m.stopWaiting(t)
		m.request(t, &w)
		return
	}
	if w.Timeout > 0 && w.Journal == nil {
		w.Deadline = m.now.Add(w.Timeout)
		m.timersDirty = true
	}
	t.wait = &w
	m.effects = append(m.effects, t.effect())
}

// Queue makes an attempt in process wait for its turn. key is the effect's key for an attempt that is performed again, or the timer's key for
// one after a back-off. It returns nil if the attempt need not wait. This is neither recorded nor part of the position: after Restore or
// Replay, call Queue again.
func (m *Machine) Queue(key string) Effect {
	t := m.find(func(t *token) bool {
		w := t.wait
		switch w.Kind {
		case WaitActivity, WaitDelegate:
			if rest, _ := t.restTimer(); rest != "" && rest == key {
				return !w.executorAsks()
			}
			return !w.Host && !w.Queued && w.Task == nil && !w.rests() && t.key() == key && m.limited(t.node)
		case WaitBackoff:
			timer, _ := t.timer()
			return timer == key && (w.Queued || m.queues(t.node))
		default:
			return false
		}
	})
	if t == nil {
		return nil
	}
	w := *t.wait
	if w.Queued = true; w.counts() && !w.rests() {
		if w.again = true; w.Journal == nil {
			m.timersDirty = m.timersDirty || !w.Deadline.IsZero()
			w.Deadline = time.Time{}
		}
	}
	t.wait = &w
	return t.effect()
}
