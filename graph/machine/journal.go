package machine

import (
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// An executor may record steps of an attempt, so that another process continues where it stood, and may rest: until a person has
// answered a question, or until a time.
//
// The records are events that every engine of the protocol knows, with the member agentStep: another ActivityRequested for a step,
// InterruptRaised for a question, InterruptResumed for its answer. There are no commands, so the script of a run does not depend on
// the work of an executor in an attempt. The machine keeps the number of steps and their positions, not their bodies.
//
// A rest ends with an attempt that waits for a turn to continue; the turn ends with the step "woken". So the work after the last step has been begun
// by some process if, and only if, an attempt is in flight without having been requested or woken just then.

// Step is something that an executor has recorded of an attempt.
type Step struct {
	// Key identifies the step in the attempt; Kind names the event.
	Key, Kind string
	// Body are the members of the step, Totals the sums as of it, for views. Plain JSON, not to be changed afterwards.
	Body, Totals map[string]any
}

// The kinds of steps that the machine writes.
const (
	StepQuestion = "question"
	StepAnswer   = "answer"
	StepRest     = "rest"
	StepWoken    = "woken"
)

// StepReconfigured is the kind of steps by which executors record the configuration that they use from now on.
const StepReconfigured = "reconfigured"

// The members of a recorded step. A body has no such field.
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

// stepMembers are the names that a body must not use.
var stepMembers = []string{stepKey, stepKind, stepNumber, stepTotals, stepSchema, stepOtherwise, stepExpires, stepExpired}

// Question is an executor's question to a person.
type Question struct {
	Key    string `json:"key"`
	Prompt string `json:"prompt"`
	// Schema of the answer, nil or {} for any object that is not empty.
	Schema map[string]any `json:"schema,omitempty"`
	// Otherwise is the answer that counts once Expires has passed, if that is not zero.
	Otherwise map[string]any `json:"otherwise,omitzero"`
	Expires   time.Time      `json:"expires,omitzero"`
	// Body are more members of the step. The machine does not keep them: they are in the record Seq.
	Body map[string]any `json:"-"`
	Seq  int64          `json:"seq,omitempty"`
}

// StepsRecorded says that an executor has got further in an attempt that is in flight.
type StepsRecorded struct {
	// Key of the attempt, Index how many steps were recorded before these.
	Key   string
	Index int
	Steps []Step
	// With a Question or Until the attempt rests after the steps.
	Question *Question
	Until    time.Time
}

func (StepsRecorded) input() {}

// Rests reports whether the attempt rests after the steps: it is not in flight any more.
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
	// Totals are those of the last step that had any.
	Totals map[string]any `json:"totals,omitempty"`
	// Question is open, unless nil. Due is when the attempt continues by itself, zero if it does not rest until a time.
	Question *Question `json:"question,omitempty"`
	Due      time.Time `json:"due,omitzero"`
	// Rests counts the rests until a time.
	Rests int `json:"rests,omitempty"`
	// Idle is set if a rest has ended, and that the attempt waits for its turn to continue.
	Idle bool `json:"idle,omitempty"`
}

// acceptSteps finds the attempt that steps belong to.
func (m *Machine) acceptSteps(s StepsRecorded) (*token, error) {
	t := m.find(func(t *token) bool {
		w := t.wait
		return w.counts() && !w.Host && !w.Queued && w.Task == nil && !w.rests() && t.key() == s.Key
	})
	if t == nil {
		return nil, problem.New(problem.SubmitNotAwaiting, "no pending attempt %s for a step", s.Key)
	}
	if err := t.fitsJournal(s.Index, s.Steps); err != nil {
		return nil, err
	}
	if q := s.Question; q != nil {
		if _, err := compileAnswer(q.Schema); err != nil {
			return nil, stepRefused("the schema of question %q cannot be used: %v", q.Key, err)
		}
		return t, checkStep(q.Key, StepQuestion, q.Body, true)
	}
	return t, nil
}

// fitsJournal reports whether steps follow those that are recorded.
func (t *token) fitsJournal(index int, steps []Step) error {
	count := 0
	if j := t.wait.Journal; j != nil {
		count = j.Count
	}
	if index != count {
		return problem.New(problem.HistoryConflict, "step %d of attempt %s does not follow %d recorded steps", index+1, t.key(), count)
	}
	for i := range steps {
		if err := checkStep(steps[i].Key, steps[i].Kind, steps[i].Body, false); err != nil {
			return err
		}
	}
	return nil
}

func checkStep(key, kind string, body map[string]any, own bool) error {
	switch kind {
	case "":
		return stepRefused("step %q has no kind", key)
	case StepQuestion, StepAnswer, StepRest, StepWoken:
		if !own {
			return stepRefused("the kind %q of step %q is the engine's own", kind, key)
		}
	}
	if key == "" {
		return stepRefused("a step of kind %q has no key", kind)
	}
	for _, name := range stepMembers {
		if _, taken := body[name]; taken {
			return stepRefused("the member %q of step %q is the engine's own", name, key)
		}
	}
	return nil
}

func stepRefused(format string, args ...any) error {
	return problem.New(problem.JournalInvalid, format, args...).WithHint("The executor records what no journal can hold. Nothing was recorded.")
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

// writeStep records a step. seq is that of its record where the history has it.
func (m *Machine) writeStep(t *token, s *Step, seq int64) {
	p := m.stepFact(t, s)
	m.event(history.ActivityRequested, p)
	m.noteStep(t, s.Totals, seq)
	if s.Kind == StepReconfigured {
		t.wait.Journal.Reconfigured = t.wait.Journal.Last
	}
}

// stepFact begins the payload of a fact about a step. It repeats the request, for readers that take it for one.
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
			w.Deadline, m.timersDirty = at, true // Restart has moved it, for an attempt that was to begin again
		}
	}
	j.Count++
	if j.Last = seq; totals != nil {
		j.Totals = totals
	}
	t.wait.Journal = &j
}
