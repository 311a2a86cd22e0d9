package machine

import (
	"fmt"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxPromptUnits bounds a recorded prompt, in UTF-16 units (spec: execution, 2.6).
const maxPromptUnits = 200

func (m *Machine) beginInterrupt(t *token) *definition.Node {
	question, shown, show, err := m.question(t)
	if err != nil {
		return m.failErr(t, reasonInterrupt, err)
	}
	prompt := cutPrompt(question)
	m.command(t, history.RaiseInterrupt, history.Payload{NodeID: t.node.ID, Prompt: prompt})
	w := &wait{Kind: WaitInterrupt, Prompt: prompt, Show: show}
	if t.node.Interrupt.Template != nil {
		w.Question = shown // shows null values, unlike the recorded prompt
	}
	p := m.fact(t)
	p.Prompt = prompt
	if t.block != nil {
		t.locate(&p)
	}
	m.limitWait(t, w, &p, t.node.Interrupt.Timeout)
	m.event(history.InterruptRaised, p)
	m.checkpointOnly(t)
	m.waitFor(t, w)
	return nil
}

// question evaluates an interrupt's prompt, in the form for the record and the form for a person, and its show.
func (m *Machine) question(t *token) (prompt, shown string, show any, err error) {
	c, env := t.node.Interrupt, m.env()
	if prompt, shown = c.Prompt, c.Prompt; c.Template != nil {
		if prompt, shown, err = c.Template.EvalShown(func() map[string]any { return t.view }, env); err != nil {
			return "", "", nil, err
		}
	}
	if c.Show != nil {
		show, err = c.Show.EvalAt(t.view, env)
	}
	return prompt, shown, show, err
}

// limitWait sets the deadline of the wait of an interrupt or signal, and its timeout in the record that begins the wait.
func (m *Machine) limitWait(t *token, w *wait, p *history.Payload, timeout time.Duration) {
	if timeout <= 0 {
		return
	}
	if m.recorded != nil {
		if began := m.recorded.of(t).waiting; began != nil && began.Foreign {
			return // the npm engine has no such deadline
		}
		m.setNow(m.recorded.waitingSince(t, m.present))
	}
	w.Timeout, w.Deadline = timeout, m.now.Add(timeout)
	p.TimeoutMS = timeout.Milliseconds()
}

// waitExpired fails an interrupt or signal wait at its deadline. The fact records the deadline, so that a rebuilt machine knows it even while
// the script is held back.
func (m *Machine) waitExpired(t *token) {
	reason, message := reasonInterrupt, fmt.Sprintf("interrupt %q was not answered within %s", t.node.ID, t.wait.Timeout)
	if t.wait.Kind == WaitSignal {
		reason, message = reasonWait, fmt.Sprintf("signal %q was not received within %s", t.wait.Signal, t.wait.Timeout)
	}
	m.deadlinePassed(t)
	m.walk(t, m.failNode(t, reason, message, string(problem.Timeout)))
}

// deadlinePassed records that the deadline of an interrupt, a signal or a parallel block has passed.
func (m *Machine) deadlinePassed(t *token) {
	p := m.fact(t)
	p.TimerKind = TimerKindDeadline
	m.event(history.TimerFired, p)
}

// TimerKindDeadline is the kind of a TimerFired that ends an interrupt, a signal wait or a parallel block. The protocol's kinds are duration
// and until.
const TimerKindDeadline = "deadline"

func cutPrompt(s string) string {
	if first := jsonvalue.FirstUnits(s, maxPromptUnits); first != s {
		return first + "…"
	}
	return s
}

// acceptResume finds the interrupt, or the question of an agent, that a payload answers, and validates the payload.
func (m *Machine) acceptResume(r Resume, now time.Time) (*token, error) {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID}
	var open []*token
	for t := range m.waiting {
		if t.wait.Kind == WaitInterrupt || t.wait.agentAsks() || t.wait.executorAsks() {
			open = append(open, t)
		}
	}
	if len(open) == 0 {
		return nil, problem.New(problem.InvalidResumePayload, "cannot resume: the run is %s, not interrupted", m.Status()).WithReason(problem.NotAwaiting).
			WithPlace(at).WithHint("Ask Runner.Status for the current waits.")
	}
	t := open[0]
	if r.Key == "" && len(open) > 1 {
		return nil, problem.New(problem.InvalidResumePayload, "cannot resume: %d interrupts are open", len(open)).
			WithPlace(at).WithHint("Send the id of one interrupt; Runner.Status lists them.")
	}
	if r.Key != "" {
		t = nil
		for _, o := range open {
			if o.answerKey() == r.Key {
				t = o
			}
		}
		if t == nil {
			return nil, problem.New(problem.InvalidResumePayload, "cannot resume: interrupt %q is not open", r.Key).WithReason(problem.NotAwaiting).
				WithPlace(at).WithHint("Ask Runner.Status for the open interrupts.")
		}
	}
	if until := t.answerableUntil(); !until.IsZero() && !now.Before(until) {
		at.NodeID = t.node.ID
		return nil, problem.New(problem.InvalidResumePayload, "cannot resume: the deadline of interrupt %q was %s", t.node.ID, until.UTC().Format(time.RFC3339)).
			WithReason(problem.NotAwaiting).WithPlace(at).WithHint("The answer came too late; Runner.Status shows how the run continued.")
	}
	if t.wait.agentAsks() {
		return t, m.checkTaskAnswer(t, r.Payload)
	}
	if t.wait.executorAsks() {
		return t, m.checkStepAnswer(t, r.Payload)
	}
	return t, m.checkAnswer(t, object(r.Payload))
}

// takeAnswer applies the answer to an interrupt.
func (m *Machine) takeAnswer(t *token, payload map[string]any) {
	m.resumed = true
	m.command(t, history.ResumeInterrupt, history.Payload{NodeID: t.node.ID})
	p := m.fact(t)
	p.SignalPayload = payload
	m.event(history.InterruptResumed, p)
	m.stopWaiting(t)
	m.walk(t, m.complete(t, completion{output: payload, delta: payload, overlay: true, checkpoint: true}))
}

// checkAnswer validates a resume payload against resume_schema, and the resulting state (spec: execution, 7.2).
func (m *Machine) checkAnswer(t *token, payload map[string]any) error {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: t.node.ID}
	c := t.node.Interrupt
	if c.ResumeSchemaErr != nil {
		return problem.New(problem.InvalidResumePayload, "invalid resume_schema of interrupt %q: %v", t.node.ID, c.ResumeSchemaErr).WithPlace(at).
			WithHint("Cancel the run and start it with a corrected definition.")
	}
	if vs := c.ResumeSchema.Validate(payload); len(vs) > 0 {
		return invalidAnswer(at, "the payload breaks resume_schema", vs)
	}
	if vs := m.prog.State.Validate(definition.OverlayState(t.view, payload)); len(vs) > 0 {
		return invalidAnswer(at, "the payload would break state_schema", vs)
	}
	return nil
}

// invalidAnswer returns the error of an answer that a schema rejects. Its Data has the violations alone, for the person, who does not know
// the schema.
func invalidAnswer(at problem.Place, what string, vs []jsonschema.Violation) error {
	text := jsonschema.Text(vs)
	e := problem.New(problem.InvalidResumePayload, "%s: %s", what, text).WithPlace(at)
	e.Data = map[string]any{problem.DataViolations: text}
	return e.WithHint("The run is still interrupted. Correct the payload and resume again.")
}
