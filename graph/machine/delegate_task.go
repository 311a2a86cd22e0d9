package machine

import (
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// A delegate's task may run at a remote agent for a long time. Once the agent has accepted it, its id is recorded and no process waits for
// it: a timer determines when to poll it, and any process may poll. While the agent asks a question, the run is interrupted.
//
// The records are events that every engine of the protocol knows, with the id of the task: another ActivityRequested when
// the agent has accepted the task or an answer, InterruptRaised for a question, InterruptResumed for the answer. There are
// no commands, so the script of a run does not depend on how an agent works. A poll that finds no change is not recorded; it only moves the timer.

// TaskUpdate is the status of a delegate's task at its agent: the response to a PollEffect, or to a DelegateEffect that did
// not end the attempt.
type TaskUpdate struct {
	// Key of the attempt. Polled is true for the response to a PollEffect; Round is then the Round of its task.
	Key    string
	Polled bool
	Round  int
	// Failed reports that the agent could not be polled. Of the fields below, only PollAt is used then.
	Failed bool
	// TaskID and ContextID identify the task at the agent.
	TaskID, ContextID string
	// Asks reports that the agent waits for an answer to Prompt.
	Asks   bool
	Prompt string
	// PollAt is when to poll the task again.
	PollAt time.Time
}

func (TaskUpdate) input() {}

// Task is a delegate's task at its agent, in effects and waits. Shared: do not change it.
type Task struct {
	ID      string `json:"id"`
	Context string `json:"context,omitempty"`
	// Since is when the agent accepted the task, or the answer to its last question.
	Since time.Time `json:"since"`
	// Due is when to poll it. Polls counts the polls since it last changed, Failures the polls in a row that failed last.
	Due      time.Time `json:"due,omitzero"`
	Polls    int       `json:"polls,omitempty"`
	Failures int       `json:"failures,omitempty"`
	// Pause is the time from the last successful poll to the next one.
	Pause time.Duration `json:"pause,omitempty"`
	// Round counts the answers, Questions the questions. Prompt is the last question while Asks is set.
	Round     int    `json:"round,omitempty"`
	Questions int    `json:"questions,omitempty"`
	Asks      bool   `json:"asks,omitempty"`
	Prompt    string `json:"prompt,omitempty"`
	// Answer is the answer to deliver to the agent, or nil.
	Answer map[string]any `json:"answer"`
}

// PollEffect asks for the status of a task at its agent. It is due at Task.Due, and several processes may perform it at
// once. Respond with an Outcome or a TaskUpdate, both with the key of the attempt.
type PollEffect struct{ DelegateEffect }

// Key is the key of the timer that the poll belongs to.
func (e *PollEffect) Key() string { return timerPoll + e.EffectKey }

// Poll returns the poll of a timer; nil if the timer is not open or has another purpose.
func (m *Machine) Poll(timerKey string) *PollEffect {
	t := m.find(func(t *token) bool { return t.wait.atAgent() && timerPoll+t.key() == timerKey })
	if t == nil {
		return nil
	}
	return &PollEffect{t.delegateEffect()}
}

// atAgent reports whether a task runs at a remote agent, which is polled.
func (w *wait) atAgent() bool {
	return w != nil && w.Kind == WaitDelegate && w.Task != nil && w.Task.Answer == nil
}

// agentAsks reports whether an agent waits for an answer.
func (w *wait) agentAsks() bool { return w.atAgent() && w.Task.Asks }

// answerKey identifies the question that a resume answers: an interrupt, or a question of an agent.
func (t *token) answerKey() string {
	if t.wait.agentAsks() {
		return t.key() + "/" + strconv.Itoa(t.wait.Task.Questions)
	}
	if t.wait.executorAsks() {
		return t.key() + "/" + t.wait.Journal.Question.Key
	}
	return t.key()
}

func (t *token) delegateEffect() DelegateEffect {
	w, c := t.wait, t.node.Delegate
	return DelegateEffect{
		EffectBase: t.effectBase(), AgentID: c.AgentID, Protocol: c.Protocol, Input: w.Input, Metadata: t.node.Metadata, CorrelationID: w.Correlation, Task: w.Task, Journal: w.Journal,
	}
}

// acceptTask finds the attempt whose task an update is about.
func (m *Machine) acceptTask(u TaskUpdate) (*token, error) {
	t := m.find(func(t *token) bool {
		return t.wait.Kind == WaitDelegate && !t.wait.Host && !t.wait.Queued && !t.wait.rests() && t.key() == u.Key
	})
	if t == nil || t.wait.atAgent() != u.Polled || u.Polled && t.wait.Task.Round != u.Round {
		return nil, problem.New(problem.SubmitNotAwaiting, "no pending attempt %s for an update of its task", u.Key)
	}
	return t, nil
}

// takeTask applies the status of a task.
func (m *Machine) takeTask(t *token, u TaskUpdate) {
	w := t.wait
	accepted := !w.atAgent() // the agent has just accepted the task, or an answer
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
	if !accepted && u.Asks == k.Asks && (!u.Asks || u.Prompt == k.Prompt) {
		k.Polls++
		return
	}
	k.Polls = 0
	if accepted {
		k.ID, k.Context, k.Since, k.Answer = u.TaskID, u.ContextID, m.now, nil
	}
	k.Asks, k.Prompt = false, ""
	if accepted || !u.Asks {
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
	p.ExternalTask, p.ExternalContext, p.DueAt = k.ID, k.Context, k.Due
	t.locate(&p)
	return p
}

// checkTaskAnswer rejects an empty answer to an agent's question.
func (m *Machine) checkTaskAnswer(t *token, payload map[string]any) error {
	if len(payload) > 0 {
		return nil
	}
	return problem.New(problem.InvalidResumePayload, "payload must not be empty: the agent of node %q waits for an answer", t.node.ID).
		WithPlace(problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: t.node.ID}).
		WithHint("Put the answer into the payload, such as {\"text\": \"…\"}. The run is still waiting for it.")
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

// dropTask adds a token's task to those that are no longer needed.
func (m *Machine) dropTask(t *token) {
	if t.wait.Task == nil || m.recorded != nil {
		return
	}
	e := t.delegateEffect()
	m.dropped = append(m.dropped, &e)
	m.abandoned = append(m.abandoned, timerPoll+t.key())
}

// isTaskRecord reports whether a record is about a remote task.
func isTaskRecord(rec *history.Record) bool {
	switch rec.Name {
	case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
		return rec.Payload.ExternalTask != ""
	}
	return false
}

// resolveTask returns the next recorded step of a remote task, if it came before the end of the attempt.
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
	if answered && !t.wait.agentAsks() {
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
