package agentloop

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Machine is an agent at work, with its sub-agents. It is not safe for concurrent use.
type Machine struct {
	root *agent
	// steps are made and not yet handed out.
	steps  []Step
	issued []Effect
	asked  int
	// question is the open one.
	question *question
	// remembered are tools that need no more approval (agent.approval).
	remembered map[string]bool
	done       *Done
	now        time.Time
	// wording is that of the journal.
	wording int
	// form is the version of the rules of the journal.
	form int
	// ahead are the recorded steps that a replay has not come to.
	ahead []Step
	// configHash is that of the configuration as it was recorded last.
	configHash string
	// reconfigures is true while the machine waits for today's configuration, begun if takeOver must follow.
	reconfigures, begun bool
}

// New starts an agent. The task is the first message.
func New(config Config, task string) *Machine {
	config = config.withFallbacks().withDefaults()
	f := config.check(strconv.Quote(config.Name), 0)
	if f == nil { // what is recorded is what counts, from the beginning
		v, err := toValue(config)
		if config = (Config{}); err == nil {
			err = fromValue(v, &config)
		}
		if err != nil {
			f = &Failure{Code: problem.AgentConfigInvalid, Message: "the configuration is not JSON: " + err.Error(), Final: true}
		}
	}
	m := &Machine{remembered: map[string]bool{}, wording: wording, form: formNow}
	m.root = &agent{m: m, cfg: &config, task: task}
	if f != nil {
		m.root.fail(stopError, *f)
	} else if strings.TrimSpace(task) == "" {
		m.root.fail(stopError, Failure{Code: problem.AgentConfigInvalid, Message: "the input is empty; give the agent a task", Final: true})
	}
	return m
}

// Replay makes the machine of recorded steps. The first step is the root's "begun". The argument begun is true if outstanding effects may
// have been started by a process that has died (activities.Journal.Begun). The error is AGENT_JOURNAL_INVALID: no agent can have made the steps.
func Replay(steps []Step, begun bool) (*Machine, error) {
	m, _, err := replayed(steps)
	switch {
	case err != nil || !begun:
	case m.reconfigures:
		m.begun = true
	default:
		m.takeOver(m.running())
	}
	return m, err
}

// replayed makes the machine of recorded steps. at is the index of the step that the error is about.
func replayed(steps []Step) (m *Machine, at int, err error) {
	if len(steps) == 0 {
		return nil, 0, invalid(&Step{}, 0, "there is no step")
	}
	config := Config{}
	first, begun := agentsteps.Read(steps[0].Kind, steps[0].Body).(*agentsteps.Begun)
	if !begun {
		first = &agentsteps.Begun{}
	}
	m = &Machine{remembered: map[string]bool{}, wording: first.Wording, form: first.Form}
	if steps[0].Key != listKey || !begun || m.form < formFirst || m.form > formNow {
		return nil, 0, invalid(&steps[0], 0, fmt.Sprintf("the first step is not a \"begun\" of the forms 1 to %d; a newer release may have written it", formNow))
	}
	if err := fromValue(first.PlainConfig, &config); err != nil {
		return nil, 0, invalid(&steps[0], 0, err.Error())
	}
	config = config.withDefaults()
	if f := config.check(strconv.Quote(config.Name), 0); f != nil {
		return nil, 0, invalid(&steps[0], 0, f.Message)
	}
	m.root = &agent{m: m, cfg: &config, task: first.Task}
	told, indexes := withoutPieces(steps)
	for i := range told {
		m.ahead = told[i+1:]
		if err := m.replay(&told[i]); err != nil {
			if indexes != nil {
				return nil, indexes[i], invalid(&told[i], indexes[i], err.Error())
			}
			return nil, i, invalid(&told[i], i, err.Error())
		}
	}
	return m, len(steps), nil
}

func invalid(s *Step, i int, why string) error {
	return &problem.Error{
		Code:    problem.AgentJournalInvalid,
		Message: problem.Format("step %d, %s %q: %s", i+1, problem.Clip(s.Kind, 40), s.Key, problem.Excerpt(why, problem.MaxText)),
		Hint:    "run the agent again; its recorded steps cannot be continued",
	}
}

// replay applies a recorded step. One that follows from those before it has been made already, and must be the same.
func (m *Machine) replay(s *Step) error {
	if !s.At.IsZero() {
		m.now = s.At
	}
	if (s.Kind == StepWoken || s.Kind == StepRest) && (len(m.steps) > 0 || m.done != nil || m.reconfigures) {
		return nil // the engine records them after an answer, too, and in a fork, before what follows from that
	}
	if e, ok := agentsteps.Read(s.Kind, s.Body).(*agentsteps.Resumed); ok {
		return m.continued(e)
	}
	if len(m.steps) > 0 {
		made := m.steps[0]
		if made.Key != s.Key || made.Kind != s.Kind || m.wording == wording && (!jsonvalue.Equal(made.Body, s.Body) || !sameTotals(&made, s)) {
			return fmt.Errorf("expected %s %q", made.Kind, made.Key)
		}
		m.steps = m.steps[1:]
		return nil
	}
	if m.reconfigures != (s.Kind == StepReconfigured) {
		return errors.New("a retry with today's configuration has that step, and no other one, next")
	}
	if m.done != nil && !m.reconfigures {
		return fmt.Errorf("the agent has ended before")
	}
	again := *s
	if err := m.apply(&again); err != nil {
		return err
	}
	again.Totals = m.root.spent.Map()
	if m.wording == wording && !sameTotals(&again, s) {
		return fmt.Errorf("its totals do not follow from the steps")
	}
	m.settle()
	return nil
}

// sameTotals compares the totals of a recorded step, which those of the engine need not have.
func sameTotals(made, recorded *Step) bool {
	return recorded.Totals == nil || jsonvalue.Equal(made.Totals, recorded.Totals)
}

// Ready returns the outcome of the last input. A second call returns the open effects, and no steps to record.
func (m *Machine) Ready() Batch {
	b := Batch{Steps: m.steps, Done: m.done}
	m.steps = nil
	open := m.Outstanding()
	for _, e := range open {
		if indexOf(m.issued, e.ID()) < 0 {
			b.Effects = append(b.Effects, e)
		}
	}
	for _, e := range m.issued {
		if indexOf(open, e.ID()) < 0 {
			b.Abandoned = append(b.Abandoned, e)
		}
	}
	m.issued = open
	if m.question != nil && m.done == nil {
		q := m.question.Question
		b.Question = &q
	}
	b.Rest = resting(open)
	return b
}

// Outstanding returns the effects whose outcome is awaited, in a fixed order.
func (m *Machine) Outstanding() []Effect {
	if m.done != nil || m.reconfigures {
		return nil
	}
	return m.root.outstanding(nil)
}

func resting(open []Effect) (first time.Time) {
	for _, e := range open {
		r, ok := e.(Rest)
		if !ok {
			return time.Time{}
		}
		if first.IsZero() || r.Until.Before(first) {
			first = r.Until
		}
	}
	return first
}

func indexOf(effects []Effect, id string) int {
	for i, e := range effects {
		if e.ID() == id {
			return i
		}
	}
	return -1
}

// Totals returns the usage of the agent so far.
func (m *Machine) Totals() Totals { return m.root.spent }

// WorkLeft returns the rest of the work budget: an effect that takes longer is Expired. The turn of an early answer is limited by the time
// of a turn alone.
func (m *Machine) WorkLeft() time.Duration {
	if m.root.finishing != "" {
		return math.MaxInt64
	}
	return duration(max(0, m.root.cfg.Budgets.WorkMs-m.root.spent.WorkMs))
}

func duration(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

// Handle takes an input. An error means that it does not fit, and that nothing has changed.
func (m *Machine) Handle(in Input, now time.Time) error {
	_, reconfigures := in.(Reconfigured)
	switch {
	case reconfigures != m.reconfigures:
		return refuse("a retry takes today's configuration first, once")
	case reconfigures:
	case m.done != nil:
		return refuse("the agent has ended")
	case len(m.steps) > 0:
		return refuse("there are steps to record: call Ready first")
	}
	switch in := in.(type) {
	case Cancelled:
		m.end(Done{Stop: stopError, Failure: &Failure{Code: problem.ActivityCancelled, Message: orElse(in.Reason, "the agent was cancelled"), Final: true}})
		return nil
	case Woken:
		return m.wake(in, now)
	}
	s, err := m.step(in, now)
	if err != nil {
		return err
	}
	if s.Key == listKey && s.Kind == StepTried { // there is no agent yet that a journal could be of
		f := failureOf(agentsteps.Read(s.Kind, s.Body).(*agentsteps.Tried))
		m.root.fail(stopError, f)
		return nil
	}
	before := m.now
	m.now = now
	if err := m.apply(s); err != nil {
		m.now = before
		return refuse(err.Error())
	}
	running := m.running() // before what follows begins other calls, which nobody has begun
	m.settled(effectID(in))
	if s.Kind != StepAnswer { // the engine has recorded it
		s.Totals, s.At = m.root.spent.Map(), now
		m.steps = append(m.steps, *s)
	}
	m.settle()
	if reconfigures && m.begun {
		m.takeOver(running)
	}
	return nil
}

// settled forgets an effect whose outcome has come.
func (m *Machine) settled(id string) {
	if i := indexOf(m.issued, id); i >= 0 {
		m.issued = append(m.issued[:i:i], m.issued[i+1:]...)
	}
}

func effectID(in Input) string {
	switch in := in.(type) {
	case ToolsListed:
		return ListTools{Key: in.Key}.ID()
	case ModelReplied:
		return AskModel{Key: in.Key, Try: in.Try}.ID()
	case ModelFailed:
		return AskModel{Key: in.Key, Try: in.Try}.ID()
	case ToolReturned:
		return CallTool{Key: in.Key}.ID()
	case Decided:
		return Decide{Key: in.Key}.ID()
	}
	return ""
}

// wake ends pauses. A pause in memory is not recorded; the next step is.
func (m *Machine) wake(in Woken, now time.Time) error {
	a, _, err := m.find(in.Key)
	if err != nil || a.phase != pausing || in.Key != a.waitKey() {
		return refuse(problem.Format("nothing rests under %q", in.Key))
	}
	if now.Before(a.until) {
		return refuse(problem.Format("%q rests until %s", in.Key, instant(a.until)))
	}
	m.settled(Rest{Key: in.Key, Until: a.until}.ID())
	a.awake()
	return nil
}

func refuse(why string) error {
	return &problem.Error{Code: problem.ValidationError, Message: why}
}

// emit records a step that follows from those before it.
func (m *Machine) emit(key, kind string, b body) {
	s := Step{Key: key, Kind: kind, Body: b, At: m.now}
	if err := m.apply(&s); err != nil {
		panic("agentloop: a step of its own does not fit: " + kind + " " + key + ": " + err.Error())
	}
	s.Totals = m.root.spent.Map()
	m.steps = append(m.steps, s)
}

// settle advances all agents as far as they can go.
func (m *Machine) settle() {
	if m.reconfigures {
		return
	}
	for m.done == nil && m.root.advance() {
	}
	if m.done == nil && m.question == nil && len(m.Outstanding()) == 0 && !m.follows() {
		m.raise("")
	}
}

// follows reports whether an agent continues with the next entry of the journal, which may add outstanding effects.
func (m *Machine) follows() (yes bool) {
	m.root.each(func(a *agent) { yes = yes || a.phase == following })
	return yes
}

func (m *Machine) end(d Done) {
	d.Totals, d.Models = m.root.spent, m.root.models
	if d.Failure != nil {
		d.LastText = problem.Excerpt(m.root.lastText, 4<<10)
	}
	m.done, m.question = &d, nil
}

// listKey is the key of the first step of an agent.
const listKey = "0"

// find returns the agent that a key belongs to, and the call if it is one's.
func (m *Machine) find(key string) (*agent, *call, error) {
	a := m.root
	for {
		own := key[len(a.prefix):]
		head, _, nested := strings.Cut(own, "/")
		if !strings.Contains(head, ".") {
			if nested || head != listKey && head != "t"+strconv.Itoa(a.turn) && head != a.room.key() {
				return nil, nil, fmt.Errorf("nothing is outstanding under %q", problem.Clip(key, problem.MaxQuoted))
			}
			return a, nil, nil
		}
		c := a.callOf(a.prefix + head)
		switch {
		case c == nil || nested && c.child == nil:
			return nil, nil, fmt.Errorf("nothing is outstanding under %q", problem.Clip(key, problem.MaxQuoted))
		case !nested:
			return a, c, nil
		}
		a = c.child
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

const instantForm = "2006-01-02T15:04:05.000Z"

func instant(t time.Time) string { return t.UTC().Format(instantForm) }

func orElse(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
