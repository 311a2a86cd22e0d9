package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// An executor may record journal entries (steps) of an attempt, so that another process continues after the last one, and may rest: until a
// person has answered a question, or until a time.
//
// The records are events that every engine of the protocol knows, with the field agentStep: another ActivityRequested for a step,
// InterruptRaised for a question, InterruptResumed for its answer. There are no commands, so the script of a run does not depend on
// the work of an executor in an attempt. The machine keeps the number of steps and their positions, not their bodies.
// After a rest, an attempt waits for its turn; the turn is recorded as the step "woken". So if an attempt is in flight, and its last record is
// neither its request nor "woken", then a process has started the work after the last step.

// Step is a journal entry: a fact that an executor recorded in an attempt.
type Step struct {
	// Key identifies the entry in the attempt; Kind names the event.
	Key, Kind string
	// Body holds the fields of the entry, Totals the sums up to it, for views. Plain JSON; do not change it afterwards.
	Body, Totals map[string]any
}

// The kinds of steps that the machine writes.
const (
	StepQuestion = "question"
	StepAnswer   = "answer"
	StepRest     = "rest"
	StepWoken    = "woken"
)

// StepReconfigured is the kind of an entry with the configuration that the executor uses from then on.
const StepReconfigured = "reconfigured"

// The reserved fields of a recorded entry, which a body must not contain.
const (
	stepKey       = "key"
	stepKind      = "kind"
	stepNumber    = "n"
	stepTotals    = "totals"
	stepSchema    = "schema"
	stepOtherwise = "otherwise"
	stepExpires   = "expires"
	stepExpired   = "expired"
)

// StepPayload is the field of an answer's body that holds the answer.
const StepPayload = "payload"

// reservedFields are the names that a body must not use.
var reservedFields = []string{stepKey, stepKind, stepNumber, stepTotals, stepSchema, stepOtherwise, stepExpires, stepExpired}

// Question is an executor's question to a person.
type Question struct {
	Key    string `json:"key"`
	Prompt string `json:"prompt"`
	// Schema of the answer, nil or {} for any object that is not empty.
	Schema map[string]any `json:"schema,omitempty"`
	// Otherwise is the answer that counts once Expires has passed, if that is not zero.
	Otherwise map[string]any `json:"otherwise,omitzero"`
	Expires   time.Time      `json:"expires,omitzero"`
	// Body holds further fields of the entry. The machine does not keep them; record Seq holds them.
	Body map[string]any `json:"-"`
	Seq  int64          `json:"seq,omitempty"`
}

// StepsRecorded reports new journal entries of an attempt in flight.
type StepsRecorded struct {
	// Key of the attempt; Index is the number of entries before these.
	Key   string
	Index int
	Steps []Step
	// With Question or Until set, the attempt rests after the entries.
	Question *Question
	Until    time.Time
}

func (StepsRecorded) input() {}

// Rests reports whether the attempt rests after the entries, so that it is not in flight any more.
func (s *StepsRecorded) Rests() bool { return s.Question != nil || !s.Until.IsZero() }

// Rests reports whether an attempt rests until a time.
func (w *Wait) Rests() bool { return w.Kind == WaitTimer && w.Journal != nil }

// Journal summarizes the recorded steps of an attempt. Shared: do not change it.
type Journal struct {
	Count int `json:"count"`
	// First and Last are the seqs of the first and the last record with a step.
	First int64 `json:"first,omitempty"`
	Last  int64 `json:"last,omitempty"`
	// Reconfigured is the seq of the last step of that kind, 0 if absent.
	Reconfigured int64 `json:"reconfigured,omitempty"`
	// Totals are those of the last entry with totals.
	Totals map[string]any `json:"totals,omitempty"`
	// Question is the open question, or nil. Due is when the attempt continues by itself, zero unless it rests until a time.
	Question *Question `json:"question,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	// Rests counts the rests until a time.
	Rests int `json:"rests,omitempty"`
	// Idle is true if a rest has ended and the attempt waits for its turn to continue.
	Idle bool `json:"idle,omitempty"`
}

// acceptSteps finds the attempt that steps belong to.
func (m *Machine) acceptSteps(s StepsRecorded) (*token, error) {
	t := m.find(func(t *token) bool {
		w := t.wait
		return w.counts() && !w.Host && !w.Queued && w.Task == nil && !w.rests() && t.key() == s.Key
	})
	if t == nil {
		return nil, problem.New(problem.SubmitNotAwaiting, "attempt %s is not pending and takes no journal entry", s.Key)
	}
	if err := t.checkSteps(s.Index, s.Steps); err != nil {
		return nil, err
	}
	if q := s.Question; q != nil {
		if _, err := compileAnswer(q.Schema); err != nil {
			return nil, invalidStep("invalid schema of question %q: %v", q.Key, err)
		}
		return t, checkStep(q.Key, StepQuestion, q.Body, true)
	}
	return t, nil
}

// checkSteps rejects entries that are invalid, or do not follow the recorded ones.
func (t *token) checkSteps(index int, steps []Step) error {
	count := 0
	if j := t.wait.Journal; j != nil {
		count = j.Count
	}
	if index != count {
		return problem.New(problem.HistoryConflict, "journal entry %d of attempt %s must follow %d recorded entries", index+1, t.key(), count)
	}
	for i := range steps {
		if err := checkStep(steps[i].Key, steps[i].Kind, steps[i].Body, false); err != nil {
			return err
		}
	}
	return nil
}

// CheckStep returns the error of a journal entry that cannot be recorded in any attempt.
func CheckStep(s *Step) error { return checkStep(s.Key, s.Kind, s.Body, false) }

func checkStep(key, kind string, body map[string]any, own bool) error {
	switch kind {
	case "":
		return invalidStep("journal entry %q must have a kind", key)
	case StepQuestion, StepAnswer, StepRest, StepWoken:
		if !own {
			return invalidStep("kind %q of journal entry %q is reserved", kind, key)
		}
	}
	if key == "" {
		return invalidStep("journal entry of kind %q must have a key", kind)
	}
	for _, name := range reservedFields {
		if _, taken := body[name]; taken {
			return invalidStep("field %q of journal entry %q is reserved", name, key)
		}
	}
	return nil
}

func invalidStep(format string, args ...any) error {
	return problem.New(problem.JournalInvalid, format, args...).WithHint("Correct the executor. Nothing was recorded.")
}

// takeSteps applies the steps of an executor, and the rest that follows.
func (m *Machine) takeSteps(t *token, s StepsRecorded) {
	if m.fatal == nil {
		m.fatal = m.limitReached(t.node.ID)
	}
	if m.fatal != nil {
		return
	}
	m.writeSteps(t, s.Steps)
	switch {
	case s.Question != nil:
		m.ask(t, s.Question, 0)
	case !s.Until.IsZero():
		m.restUntil(t, s.Until.Truncate(time.Millisecond), 0)
	}
}

func (m *Machine) writeSteps(t *token, steps []Step) {
	for i := range steps {
		m.writeStep(t, &steps[i], 0)
	}
}

// writeStep records an entry. seq is the seq of its record in the history, 0 for a new record.
func (m *Machine) writeStep(t *token, s *Step, seq int64) {
	p := m.stepFact(t, s)
	m.event(history.ActivityRequested, p)
	m.noteStep(t, s.Totals, seq)
	if s.Kind == StepReconfigured {
		t.wait.Journal.Reconfigured = t.wait.Journal.Last
	}
}

// stepFact begins the payload of an entry's record. It repeats the request, for readers that do not know journals and take it for one.
func (m *Machine) stepFact(t *token, s *Step) history.Payload {
	w := t.wait
	var p history.Payload
	if w.Kind == WaitDelegate {
		p = m.delegateRequest(t, w)
		p.DelegateInput = nil
	} else {
		p = m.activityRequest(t, w)
	}
	n := 1
	if w.Journal != nil {
		n = w.Journal.Count + 1
	}
	step := make(map[string]any, len(s.Body)+4)
	for name, v := range s.Body {
		step[name] = v
	}
	step[stepKey], step[stepKind], step[stepNumber] = s.Key, s.Kind, float64(n)
	if s.Totals != nil {
		step[stepTotals] = s.Totals
	}
	p.AgentStep = step
	return p
}

// noteStep counts a step that has just been recorded.
func (m *Machine) noteStep(t *token, totals map[string]any, seq int64) {
	var j Journal
	if t.wait.Journal != nil {
		j = *t.wait.Journal
	}
	if seq == 0 {
		seq = m.seq
	}
	if j.Count == 0 {
		j.First = seq
		if w, at := t.wait, t.wait.Since.Add(t.wait.Timeout); w.Timeout > 0 && !at.Equal(w.Deadline) {
			w.Deadline, m.timersDirty = at, true // undo Restart: the attempt continues instead of starting over
		}
	}
	j.Count++
	if j.Last = seq; totals != nil {
		j.Totals = totals
	}
	t.wait.Journal = &j
}
