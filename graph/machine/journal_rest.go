package machine

import (
	"maps"
	"strconv"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// rests reports whether an attempt waits for an answer or a time.
func (w *wait) rests() bool {
	return w != nil && w.Journal != nil && (w.Journal.Question != nil || !w.Journal.Due.IsZero())
}

// executorAsks reports whether an executor waits for the answer to a question.
func (w *wait) executorAsks() bool { return w.rests() && w.Journal.Question != nil }

// restTimer returns the timer that ends a rest, "" without one.
func (t *token) restTimer() (key string, due time.Time) {
	if !t.wait.rests() {
		return "", time.Time{}
	}
	j := t.wait.Journal
	if q := j.Question; q != nil {
		key, due = q.Key, q.Expires
	} else {
		key, due = restKey(j.Rests), j.Due
	}
	if due.IsZero() {
		return "", due
	}
	return timerRest + t.key() + "/" + key, due
}

// ask records a question; the attempt rests until it is answered.
func (m *Machine) ask(t *token, q *Question, seq int64) {
	s := Step{Key: q.Key, Kind: StepQuestion, Body: map[string]any{}}
	for name, v := range q.Body {
		s.Body[name] = v
	}
	if q.Schema != nil {
		s.Body[stepSchema] = q.Schema
	}
	if q.Otherwise != nil {
		s.Body[stepOtherwise] = q.Otherwise
	}
	asked := *q
	asked.Expires = q.Expires.Truncate(time.Millisecond)
	if !asked.Expires.IsZero() {
		s.Body[stepExpires] = history.FormatTimestamp(asked.Expires)
	}
	p := m.stepFact(t, &s)
	p.Prompt = q.Prompt
	m.event(history.InterruptRaised, p)
	m.noteStep(t, nil, seq)
	asked.Body, asked.Seq = nil, t.wait.Journal.Last
	t.wait.Journal.Question = &asked
	m.timersDirty = true
}

// restUntil records that the attempt rests until a time.
func (m *Machine) restUntil(t *token, due time.Time, seq int64) {
	rests := 1
	if t.wait.Journal != nil {
		rests = t.wait.Journal.Rests + 1
	}
	p := m.stepFact(t, &Step{Key: restKey(rests), Kind: StepRest})
	p.DueAt = due
	m.event(history.ActivityRequested, p)
	m.noteStep(t, nil, seq)
	t.wait.Journal.Due, t.wait.Journal.Rests = due, rests
	m.timersDirty = true
}

func restKey(n int) string { return "r" + strconv.Itoa(n) }

func compileAnswer(schema map[string]any) (*jsonschema.Schema, error) {
	if schema == nil {
		return nil, nil
	}
	return jsonschema.Compile(schema)
}

// checkStepAnswer validates the answer to an executor's question.
func (m *Machine) checkStepAnswer(t *token, payload map[string]any) error {
	at := problem.Place{ExecutionID: m.cfg.ExecutionID, NodeID: t.node.ID}
	q := t.wait.Journal.Question
	if len(q.Schema) == 0 && len(payload) == 0 {
		return problem.New(problem.InvalidResumePayload, "payload must not be empty: node %q waits for an answer", t.node.ID).WithPlace(at).
			WithHint("Put the answer into the payload, such as {\"text\": \"…\"}. The run is still waiting for it.")
	}
	schema, err := compileAnswer(q.Schema)
	if err != nil || schema == nil {
		return nil // it was compiled before the question was recorded
	}
	if vs := schema.Validate(object(payload)); len(vs) > 0 {
		return invalidAnswer(at, "the payload breaks the schema of the question", vs)
	}
	return nil
}

// takeStepAnswer records the answer to an executor's question. The attempt then waits for its turn to continue.
func (m *Machine) takeStepAnswer(t *token, payload map[string]any, expired bool, seq int64) {
	id := m.cfg.ExecutionID + ":" + t.answerKey()
	s := Step{Key: t.wait.Journal.Question.Key, Kind: StepAnswer}
	if expired {
		s.Body = map[string]any{stepExpired: true}
	}
	p := m.stepFact(t, &s)
	p.SignalPayload, p.IdempotencyKey = payload, id
	m.event(history.InterruptResumed, p)
	m.noteStep(t, nil, seq)
	j := t.wait.Journal
	j.Question, j.Idle = nil, true
	t.wait.Queued = true
	m.timersDirty = true
}

// answerStep takes the answer to an executor's question, and asks for a turn.
func (m *Machine) answerStep(t *token, payload map[string]any, expired bool) {
	m.resumed = m.resumed || !expired
	m.takeStepAnswer(t, object(payload), expired, 0)
	m.effects = append(m.effects, t.effect())
}

// restOver ends a rest whose time has come: the question has expired, or the attempt has its turn to continue.
func (m *Machine) restOver(t *token) {
	if t.wait.executorAsks() {
		m.answerStep(t, t.wait.Journal.Question.Otherwise, true)
		return
	}
	m.wake(t, 0)
	m.effects = append(m.effects, t.effect())
}

// BeginFork prepares a forked run to continue at now, and returns the records that it adds. Attempts with a journal rest until now, since
// work that follows from the journal has not started in this run; those with a key in started have. A host attempt whose config cannot be
// filled in fails, as it did in the original run in the record after the request.
func (m *Machine) BeginFork(now time.Time, started map[string]bool) []history.Record {
	m.setNow(now)
	type unfit struct {
		t   *token
		err error
	}
	var fails []unfit
	for t := range m.waiting {
		w := t.wait
		if w.Journal != nil && w.counts() && !w.Queued && !w.rests() && !started[t.key()] {
			m.restUntil(t, m.now, 0)
		}
		if w.Host && !w.Queued {
			env := m.env()
			env.Now = w.Since
			if _, err := t.fill(w, env); err != nil {
				fails = append(fails, unfit{t, err})
			}
		}
	}
	for _, f := range fails {
		if f.t.wait != nil && !m.ended() { // an earlier failure may have ended its branch
			m.beginStretch()
			m.takeOutcome(f.t, unfilled(f.err))
			m.settle()
		}
	}
	return m.Ready().Records
}

// MovedStep returns a recorded entry with its times moved.
func MovedStep(step map[string]any, shift time.Duration) map[string]any {
	expires, _ := step[stepExpires].(string)
	at, err := history.ParseTimestamp(expires)
	if err != nil {
		return step
	}
	moved := maps.Clone(step)
	moved[stepExpires] = history.FormatTimestamp(at.Add(shift))
	return moved
}

// answerableUntil returns the time after which an answer is too late, zero without one.
func (t *token) answerableUntil() time.Time {
	until := t.wait.Deadline
	if t.wait.executorAsks() {
		if e := t.wait.Journal.Question.Expires; !e.IsZero() && (until.IsZero() || e.Before(until)) {
			until = e
		}
	}
	return until
}

// wake records that the attempt continues after a rest.
func (m *Machine) wake(t *token, seq int64) {
	p := m.stepFact(t, &Step{Key: "w" + strconv.Itoa(t.wait.Journal.Count+1), Kind: StepWoken})
	m.event(history.ActivityRequested, p)
	m.noteStep(t, nil, seq)
	j := t.wait.Journal
	j.Due, j.Idle = time.Time{}, false
	t.wait.Queued = false
	m.timersDirty = true
}
