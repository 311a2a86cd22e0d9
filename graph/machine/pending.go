package machine

import (
	"cmp"
	"slices"
	"time"
)

// Status returns the status of the run.
func (m *Machine) Status() Status {
	if m.status.Terminal() {
		return m.status
	}
	rank := map[Status]int{Running: 0, Interrupted: 1, AwaitingActivity: 1, AwaitingSignal: 1, AwaitingChild: 2, AwaitingTimer: 3}
	best, lowest := Status(""), 0
	for t := range m.waiting {
		s := t.wait.status()
		n := rank[s]
		if s == Running && t.wait.atAgent() {
			n = rank[AwaitingTimer]
		}
		if best == "" || n < lowest {
			best, lowest = s, n
		}
	}
	return cmp.Or(best, Running)
}

func (w *wait) status() Status {
	switch w.Kind {
	case waitWalk:
		return Running
	case WaitActivity, WaitDelegate:
		if w.Host {
			return AwaitingActivity
		}
		switch {
		case w.agentAsks() || w.executorAsks():
			return Interrupted
		case w.rests() && !w.Queued:
			return AwaitingTimer
		}
		return Running
	case WaitBackoff:
		if w.Queued {
			return Running
		}
		return AwaitingTimer
	case WaitInterrupt:
		return Interrupted
	case WaitSignal:
		return AwaitingSignal
	case WaitChild:
		return AwaitingChild
	default:
		return AwaitingTimer
	}
}

// Pending lists the waits of the run, in branch order. It is empty once the run has ended.
func (m *Machine) Pending() []Wait {
	var ws []Wait
	for t := range m.waiting {
		if t.wait.Kind != waitWalk {
			ws = append(ws, m.describe(t))
		}
	}
	return ws
}

func (m *Machine) describe(t *token) Wait {
	w := t.wait
	d := Wait{Key: t.key(), Filled: t.filled(), Question: w.Question, WaitInfo: WaitInfo{
		Kind: w.Kind, NodeID: t.node.ID, Visit: t.visit, Attempt: w.Attempt, Span: t.span(), Host: w.Host, Queued: w.Queued,
		State: t.nodeState(), RequestedAt: w.Since, Deadline: w.Deadline, Timeout: w.Timeout,
		LastError: w.LastError, LastCode: w.LastCode, SignalName: w.Signal, Prompt: w.Prompt, Show: w.Show, Due: w.Due,
	}}
	if _, due := m.queueTimer(t); w.Queued && !due.IsZero() {
		d.Deadline = due
	}
	d.Deadline = earlier(d.Deadline, t.visitLimit())
	for b := t.block; b != nil; b = b.owner.block {
		if !b.deadline.IsZero() && (d.BlockDeadline.IsZero() || b.deadline.Before(d.BlockDeadline)) {
			d.BlockDeadline = b.deadline
		}
	}
	if t.item() {
		d.Item, d.Items = t.index, len(t.block.items.values)
	}
	if w.Kind == WaitInterrupt {
		d.Written = slices.Clone(t.written)
		slices.Reverse(d.Written)
	}
	switch d.Journal = w.Journal; {
	case w.executorAsks():
		d.Kind, d.Key, d.Prompt = WaitInterrupt, t.answerKey(), w.Journal.Question.Prompt
		d.Due = w.Journal.Question.Expires
	case w.rests():
		d.Kind, d.Due = WaitTimer, w.Journal.Due
	}
	switch w.Kind {
	case WaitActivity, WaitDelegate, WaitBackoff:
		d.MaxAttempts = m.maxAttempts(t.node)
	}
	switch w.Kind {
	case WaitDelegate:
		c := t.node.Delegate
		d.AgentID, d.Protocol, d.CorrelationID, d.DelegateInput = c.AgentID, c.Protocol, w.Correlation, w.Input
		d.Task = w.Task
		if w.agentAsks() {
			d.Kind, d.Key, d.Prompt = WaitInterrupt, t.answerKey(), w.Task.Prompt
		}
	case WaitChild:
		d.ChildExecutionID, d.WorkflowRef = w.Child, t.node.Subworkflow.WorkflowRef
	}
	return d
}

// TimedWait returns the wait that a timer belongs to. ok is false for the deadline of a block and for a timer that is not
// open.
func (m *Machine) TimedWait(timerKey string) (w Wait, ok bool) {
	t := m.find(func(t *token) bool {
		key, _ := t.timer()
		rest, _ := t.restTimer()
		return key == timerKey || rest == timerKey || t.wait.atAgent() && timerPoll+t.key() == timerKey
	})
	if t == nil {
		return Wait{}, false
	}
	return m.describe(t), true
}

// Timers returns the complete set of open timers, in branch order.
func (m *Machine) Timers() []Timer {
	var ts []Timer
	if key, due := m.runTimer(); key != "" {
		ts = append(ts, Timer{Key: key, Due: due})
	}
	for t := range m.living {
		if key, due := t.limitTimer(); key != "" {
			ts = append(ts, Timer{Key: key, Due: due}) // before an attempt that is over, too
		}
		if key, due := m.queueTimer(t); key != "" {
			ts = append(ts, Timer{Key: key, Due: due}) // before a back-off that is over
		}
		if key, due := t.timer(); key != "" {
			ts = append(ts, Timer{Key: key, Due: due})
		}
		if key, due := t.restTimer(); key != "" {
			ts = append(ts, Timer{Key: key, Due: due})
		}
		if t.wait.atAgent() {
			ts = append(ts, Timer{Key: timerPoll + t.key(), Due: t.wait.Task.Due})
		}
	}
	return ts
}

// InFlight returns the in-process effects that have no outcome yet, in branch order, for a process that claims the run.
func (m *Machine) InFlight() []Effect {
	var es []Effect
	for t := range m.waiting {
		if e := t.effect(); e != nil {
			es = append(es, e)
		}
	}
	return es
}

// Restart restarts the timeout of an attempt in process, for a process that claims the run and performs the attempt again. It returns the
// effect with the new deadline, nil if the attempt has no timeout or is not in flight. The new
// deadline is part of the position, but not recorded: after a Replay, call Restart again.
func (m *Machine) Restart(key string, at time.Time) Effect {
	t := m.find(func(t *token) bool {
		w := t.wait
		return (w.Kind == WaitActivity || w.Kind == WaitDelegate) && !w.Host && !w.Queued && w.Task == nil && w.Journal == nil && w.Timeout > 0 && t.key() == key
	})
	if t == nil {
		return nil
	}
	t.wait.Deadline = at.Add(t.wait.Timeout)
	m.timersDirty = true
	return t.effect()
}

// Resting reports whether nothing is in flight: the run waits for a host, a person, a signal, a timer or a remote agent only.
func (m *Machine) Resting() bool {
	return m.find(func(t *token) bool {
		switch t.wait.Kind {
		case WaitActivity, WaitChild:
			return !t.wait.Host && (t.wait.Queued || !t.wait.rests())
		case WaitDelegate:
			return !t.wait.Host && !t.wait.atAgent() && (t.wait.Queued || !t.wait.rests())
		default:
			return t.wait.Queued || t.wait.Kind == waitWalk
		}
	}) == nil
}

// effect returns the effect that the token waits for, nil if it waits for a host, a timer or a remote agent.
func (t *token) effect() Effect {
	w := t.wait
	if w.Host || w.atAgent() {
		return nil
	}
	if w.Queued {
		return t.turnEffect()
	}
	if w.rests() {
		return nil
	}
	switch w.Kind {
	case WaitActivity:
		return &ActivityEffect{EffectBase: t.effectBase(), NodeType: string(t.node.Type), Config: t.node.Config, Metadata: t.node.Metadata, Repair: w.Repair, Journal: w.Journal}
	case WaitDelegate:
		e := t.delegateEffect()
		return &e
	case WaitChild:
		c := t.node.Subworkflow
		return &ChildEffect{EffectBase: t.effectBase(), ChildExecutionID: w.Child, WorkflowRef: c.WorkflowRef, VersionPin: c.VersionPin, Version: w.Version, Input: w.Input, From: w.From}
	case waitWalk:
		return &WalkEffect{EffectBase: t.effectBase()}
	default:
		return nil
	}
}

func (t *token) effectBase() EffectBase {
	return EffectBase{
		EffectKey: t.key(), NodeID: t.node.ID, Visit: t.visit, Attempt: max(t.wait.Attempt, 1), Span: t.span(),
		State: t.nodeState(), Requested: t.wait.Since, Deadline: earlier(t.wait.Deadline, t.visitLimit()), Heartbeat: t.node.Heartbeat, LastError: t.wait.LastError, LastCode: t.wait.LastCode,
	}
}
