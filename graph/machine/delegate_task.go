package machine

import (
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A delegate's task may run at a remote agent for long. Once the agent has taken it, its id is recorded and no process
// has to be at it any more: a timer says when it is to be looked at, and any process may do that. An agent that asks
// something makes the run pause like an interrupt.
//
// What is recorded are events that every engine of the protocol knows, with the task's id added: ActivityRequested again
// when the agent has taken the task or an answer, InterruptRaised for a question, InterruptResumed for the answer. No
// command is written, so that the script of a run does not depend on how an agent works. Looking at a task that has not
// changed is no fact: only the timer moves.

// TaskUpdate tells how a delegate's task stands at its agent: the answer to a DelegateEffect that did not end the
// attempt, or to a PollEffect.
type TaskUpdate struct {
	// Key of the attempt. Polled is true for the answer to a PollEffect, whose Round it repeats.
	Key    string
	Polled bool
	Round  int
	// Failed says that the agent could not be asked and is to be asked again; the members below but PollAt do not count.
	Failed bool
	// TaskID and ContextID name the task at the agent.
	TaskID, ContextID string
	// Asks says that the agent waits for an answer to Prompt.
	Asks   bool
	Prompt string
	// PollAt is when the task is to be looked at again.
	PollAt time.Time
}

func (TaskUpdate) input() {}

// Task is a delegate's task at its agent, as effects and waits show it. Shared: do not change it.
type Task struct {
	ID      string `json:"id"`
	Context string `json:"context,omitempty"`
	// Since is when the agent took the task, or the answer to its last question.
	Since time.Time `json:"since"`
	// Due is when it is to be looked at; Polls counts the looks since it last changed, Failures those in a row that failed.
	Due      time.Time `json:"due,omitzero"`
	Polls    int       `json:"polls,omitempty"`
	Failures int       `json:"failures,omitempty"`
	// Pause was left before the last look that did not fail.
	Pause time.Duration `json:"pause,omitempty"`
	// Round counts the answers given; Questions the questions asked, the last of which is Prompt.
	Round     int    `json:"round,omitempty"`
	Questions int    `json:"questions,omitempty"`
	Asks      bool   `json:"asks,omitempty"`
	Prompt    string `json:"prompt,omitempty"`
	// Answer is one that is to be delivered to the agent; nil if there is none.
	Answer map[string]any `json:"answer"`
}

// PollEffect asks to look how a task stands at its agent. It is due at Task.Due and may be performed by several processes
// at once. Answer with an Outcome or a TaskUpdate, both with the key of the attempt.
type PollEffect struct{ DelegateEffect }

// Key is that of the timer that the poll belongs to.
func (e *PollEffect) Key() string { return timerPoll + e.EffectKey }

// Poll gives the poll that a timer's key stands for, nil if it stands for another timer.
func (m *Machine) Poll(timerKey string) *PollEffect {
	t := m.find(func(t *token) bool { return t.wait.away() && timerPoll+t.key() == timerKey })
	if t == nil {
		return nil
	}
	return &PollEffect{t.delegateEffect()}
}

// away reports whether a task runs at a remote agent, which somebody looks at from time to time.
func (w *wait) away() bool {
	return w != nil && w.Kind == WaitDelegate && w.Task != nil && w.Task.Answer == nil
}

// asks reports whether an agent waits for an answer.
func (w *wait) asks() bool { return w.away() && w.Task.Asks }

// answerKey names what a resume answers: an interrupt, or a question of an agent.
func (t *token) answerKey() string {
	if t.wait.asks() {
		return t.key() + "/" + strconv.Itoa(t.wait.Task.Questions)
	}
	return t.key()
}

func (t *token) delegateEffect() DelegateEffect {
	w, c := t.wait, t.node.Delegate
	return DelegateEffect{
		EffectBase: t.effectBase(), AgentID: c.AgentID, Protocol: c.Protocol, Input: w.Input, CorrelationID: w.Correlation, Task: w.Task,
	}
}

// acceptTask finds the attempt whose task an update is about.
func (m *Machine) acceptTask(u TaskUpdate) (*token, error) {
	t := m.find(func(t *token) bool { return t.wait.Kind == WaitDelegate && !t.wait.Host && t.key() == u.Key })
	if t == nil || t.wait.away() != u.Polled || u.Polled && t.wait.Task.Round != u.Round {
		return nil, problem.New(problem.SubmitNotAwaiting, "nothing awaits how the task of %s stands", u.Key)
	}
	return t, nil
}

// takeTask applies how a task stands.
func (m *Machine) takeTask(t *token, u TaskUpdate) {
	w := t.wait
	taken := !w.away() // the agent has just taken the task, or an answer
	var k Task
	if w.Task != nil {
		k = *w.Task
	}
	m.timersDirty = true
	k.Due = u.PollAt.Truncate(time.Millisecond)
	w.Task = &k
	if u.Failed {
		k.Failures++
		return
	}
	k.Failures, k.Pause = 0, max(k.Due.Sub(m.now), 0)
	if !taken && u.Asks == k.Asks && (!u.Asks || u.Prompt == k.Prompt) {
		k.Polls++
		return
	}
	k.Polls = 0
	if taken {
		k.ID, k.Context, k.Since, k.Answer = u.TaskID, u.ContextID, m.now, nil
	}
	k.Asks, k.Prompt = false, ""
	if taken || !u.Asks {
		p := m.taskFact(t, &k)
		p.NodeType, p.AgentID, p.Protocol, p.Correlation = string(t.node.Type), t.node.Delegate.AgentID, t.node.Delegate.Protocol, w.Correlation
		if w.Attempt > 1 {
			p.Attempt = w.Attempt
		}
		m.event(history.ActivityRequested, p)
	}
	if u.Asks {
		k.Asks, k.Prompt = true, u.Prompt
		k.Questions++
		p := m.taskFact(t, &k)
		p.Prompt = u.Prompt
		m.event(history.InterruptRaised, p)
	}
}

// taskFact begins the payload of a fact about a task.
func (m *Machine) taskFact(t *token, k *Task) history.Payload {
	p := m.fact(t)
	p.Span, p.ExternalTask, p.ExternalContext, p.DueAt = t.span(), k.ID, k.Context, k.Due
	return p
}

// checkTaskAnswer refuses an answer that says nothing to the question of an agent.
func (m *Machine) checkTaskAnswer(t *token, payload map[string]any) error {
	if len(payload) > 0 {
		return nil
	}
	return problem.New(problem.InvalidResumePayload, "the agent of node %q asks for an answer, and resume_payload is empty", t.node.ID).
		WithPlace(problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: t.node.ID}).
		WithHint("Put the answer into resume_payload, for instance as {\"text\": \"…\"}. The run still waits for it.")
}

// deliverAnswer takes the answer to an agent's question, and asks for its delivery.
func (m *Machine) deliverAnswer(t *token, payload map[string]any) {
	m.abandoned = append(m.abandoned, timerPoll+t.key())
	m.takeTaskAnswer(t, payload)
	m.effects = append(m.effects, t.effect())
}

func (m *Machine) takeTaskAnswer(t *token, payload map[string]any) {
	question := m.cfg.ExecutionID + ":" + t.answerKey()
	k := *t.wait.Task
	k.Asks, k.Prompt, k.Answer, k.Due = false, "", payload, time.Time{}
	k.Round++
	t.wait.Task = &k
	m.timersDirty = true
	p := m.taskFact(t, &k)
	p.SignalPayload, p.IdempotencyKey = payload, question
	m.event(history.InterruptResumed, p)
}

// dropTask notes that nobody wants to know any more what becomes of a token's task.
func (m *Machine) dropTask(t *token) {
	if t.wait.Task == nil || m.recorded != nil {
		return
	}
	e := t.delegateEffect()
	m.dropped = append(m.dropped, &e)
	m.abandoned = append(m.abandoned, timerPoll+t.key())
}

// isTaskRecord tells the records about a remote task.
func isTaskRecord(rec *history.Record) bool {
	switch rec.Name {
	case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
		return rec.Payload.ExternalTask != ""
	}
	return false
}

// resolveTask gives the next recorded step of a remote task, if it came before the attempt ended.
func (r *recorded) resolveTask(t *token, f *visitFacts) (resolution, bool) {
	if t.wait.Kind != WaitDelegate || f.usedTask == len(f.task) {
		return resolution{}, false
	}
	rec := &f.task[f.usedTask]
	if f.used < len(f.failed) && f.failed[f.used].Seq < rec.Seq {
		return resolution{}, false
	}
	p := &rec.Payload
	u := TaskUpdate{TaskID: p.ExternalTask, ContextID: p.ExternalContext, PollAt: p.DueAt}
	u.Asks, u.Prompt = rec.Name == history.InterruptRaised, p.Prompt
	answered := rec.Name == history.InterruptResumed
	if answered && !t.wait.asks() {
		return resolution{}, false
	}
	return resolution{seq: rec.Seq, at: rec.CreatedAt, apply: func(m *Machine) {
		f.usedTask++
		if answered {
			m.takeTaskAnswer(t, object(p.SignalPayload))
			return
		}
		m.takeTask(t, u)
	}}, true
}
