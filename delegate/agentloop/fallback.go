package agentloop

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
)

// The forms of a journal, stored in its first entry as "v". A journal keeps the rules of its form.
const (
	// formFirst asks the next model after an overload or for a conversation that is too large, and does not count the turn of an early
	// answer.
	formFirst = 1
	// formClasses chooses the next model by the class of a failure (Fallback), and reserves that turn in the budgets.
	formClasses = 2

	formNow = formClasses
)

// Class is the kind of a failure of a model.
type Class = chat.Class

// Classes returns all classes.
func Classes() []Class { return chat.Classes() }

// Fallback configures when the next of several models is asked.
type Fallback struct {
	// On are the classes of failures that lead to the next model; nil means chat.Outages, an empty list no class.
	On []chat.Class `json:"on"`
	// AfterTries is how often a model is asked within a turn while there is a next one.
	AfterTries int `json:"afterTries,omitempty"` // 2
	// ReturnAfterMs is how long the agent stays with another model than its first.
	ReturnAfterMs int `json:"returnAfterMs,omitempty"` // 300,000
}

func (f *Fallback) withDefaults() *Fallback {
	if f == nil {
		return nil
	}
	full := *f
	if full.On == nil {
		full.On = chat.Outages()
	}
	or(&full.AfterTries, 2)
	or(&full.ReturnAfterMs, 300_000)
	return &full
}

// withFallbacks sets the default rules for several models in the configuration of a new agent and its sub-agents. Recorded configurations
// have theirs already.
func (c Config) withFallbacks() Config {
	if c.Fallback == nil && len(c.Models) > 1 {
		c.Fallback = &Fallback{}
	}
	subs := slices.Clone(c.Agents)
	for i := range subs {
		subs[i].Config = subs[i].Config.withFallbacks()
	}
	c.Agents = subs
	return c
}

func (f *Fallback) check() string {
	switch {
	case f == nil:
		return ""
	case f.AfterTries < 0 || f.ReturnAfterMs < 0:
		return "fallback.afterTries or fallback.returnAfterMs is negative"
	}
	for _, class := range f.On {
		if !slices.Contains(chat.Classes(), class) {
			return fmt.Sprintf("fallback.on: there is no class %q; use %v", class, chat.Classes())
		}
	}
	return ""
}

// modelFailure is how a model has failed, for the last time.
type modelFailure struct {
	model   int
	class   chat.Class
	status  int
	code    problem.Code
	message string
	final   bool
	after   time.Duration
}

// maxFallbackPause is the longest pause of a provider that is kept while there is another model.
const (
	maxFallbackPause = 30 * time.Second
	maxRoundPause    = time.Minute
)

// classOf is the class of a failed try. A model that does not classify is judged by its code.
func classOf(in *ModelFailed) chat.Class {
	switch {
	case in.Class != "":
		return in.Class
	case in.Code == chat.CodeContextExceeded:
		return chat.ClassContext
	case in.Overloaded:
		return chat.ClassBusy
	case in.Code == problem.Timeout:
		return chat.ClassSlow
	case in.Code == problem.LLMCredentialsMissing, in.Code == problem.LLMCredentialsRefused:
		return chat.ClassCredentials
	case in.Code == problem.LLMQuotaExceeded:
		return chat.ClassQuota
	case in.Final:
		return chat.ClassRequest
	}
	return chat.ClassDown
}

// falls reports whether the next model is asked after a failure of a class.
func (a *agent) falls(class chat.Class) bool {
	return a.cfg.Fallback != nil && slices.Contains(a.cfg.Fallback.On, class)
}

// nextModel is the model that is asked after the current one: the next of the list that has not failed, behind its end the first again. An
// agent that has tried to return goes back to the model that it had. A model that has rejected a smaller
// conversation is not asked about one that is too large.
func (a *agent) nextModel(class chat.Class) (int, bool) {
	failed := func(i int) bool {
		at, refused := a.tooLarge[i]
		return i == a.model || class == chat.ClassContext && refused && at <= a.prompt() || slices.ContainsFunc(a.fails, func(f modelFailure) bool { return f.model == i })
	}
	if a.trial && !failed(a.stay) {
		return a.stay, true
	}
	for n := 1; n < len(a.cfg.Models); n++ {
		if i := (a.model + n) % len(a.cfg.Models); !failed(i) {
			return i, true
		}
	}
	return 0, false
}

// after decides what to do about a failed try: the same model again, the next one, another round of all, or the end of the attempt. attempts are
// those of the current model. The decision is recorded.
func (a *agent) after(b body, in *ModelFailed, attempts int, rounds bool, now time.Time) {
	class := classOf(in)
	b["class"] = string(class)
	if in.Status != 0 {
		b["status"] = float64(in.Status)
	}
	next, others := a.nextModel(class)
	others = others && a.falls(class)
	tries := a.cfg.Retry.MaxAttempts
	switch class {
	case chat.ClassBusy, chat.ClassDown, chat.ClassSlow, chat.ClassAnswer:
		if others {
			tries = min(tries, class.Tries(in.Status, a.cfg.Fallback.AfterTries, in.After > maxFallbackPause))
			if a.trial {
				tries = 1
			}
		}
	default: // the same again would fail again
		tries = 1
	}
	if in.Final {
		tries = 1
	}
	switch {
	case attempts < tries:
		b["retryAt"] = instant(now.Add(a.cfg.Retry.pause(attempts, in.After) + time.Millisecond - 1))
	case others:
		b["next"], b["to"] = a.cfg.Models[next].Model, float64(next)
		if in.After > 0 {
			b["afterMs"] = millis(in.After)
		}
	case rounds && a.anotherRound(class):
		pause := in.After
		for i := range a.fails {
			pause = max(pause, a.fails[i].after)
		}
		if pause = min(pause, maxRoundPause); pause <= 0 {
			pause = a.cfg.Retry.pause(1, 0)
		}
		b["next"], b["to"] = a.cfg.Models[0].Model, 0.0
		b["retryAt"] = instant(now.Add(pause + time.Millisecond - 1))
	}
}

// anotherRound reports whether all models are asked once more, now that the last one has failed, too. A conversation that is too large for all
// of them stays so.
func (a *agent) anotherRound(class chat.Class) bool {
	if a.cfg.Fallback == nil || len(a.cfg.Models) < 2 || a.round > 0 || len(a.fails)+1 < len(a.cfg.Models) {
		return false
	}
	heals := func(class chat.Class) bool { return class != chat.ClassContext && a.falls(class) }
	return heals(class) || slices.ContainsFunc(a.fails, func(f modelFailure) bool { return heals(f.class) })
}

// destination reads the index of the model that a step continues with, -1 if it continues with the same one.
func (a *agent) destination(e *agentsteps.Tried) (int, error) {
	if e.Next == "" {
		return -1, nil
	}
	if e.To < 0 || e.To >= len(a.cfg.Models) || a.cfg.Fallback == nil {
		return -1, errors.New("there is no other model")
	}
	return e.To, nil
}

// failed notes that a model has failed.
func (a *agent) failed(e *agentsteps.Tried) {
	if e.Class == string(chat.ClassContext) {
		if a.tooLarge == nil {
			a.tooLarge = map[int]int{}
		}
		a.tooLarge[a.model] = max(a.prompt(), 1)
	}
	a.fails = append(a.fails, modelFailure{
		model: a.model, class: chat.Class(e.Class), status: e.Status, code: problem.Code(orElse(e.Code, string(problem.LLMProviderError))),
		message: e.Message, final: e.Final, after: e.After,
	})
}

// moveTo continues a turn with another model, whose smaller context may need a compaction first.
func (a *agent) moveTo(model int) {
	switch {
	case model == 0:
		a.leftAt = time.Time{}
	case a.model == 0:
		a.leftAt = a.m.now
	}
	a.model, a.attempts, a.trial = model, 1, false
	a.room.refusedAt, a.room.urgent, a.room.stage = a.tooLarge[model], false, roomNone
	a.req, a.phase = nil, ready
}

// returns reports whether the agent goes back to its first model before a turn. In a replay the journal decides, otherwise the time.
func (a *agent) returns() bool {
	if a.again || a.model == 0 || a.leftAt.IsZero() || a.finishing != "" || a.cfg.Fallback == nil {
		return false
	}
	ahead := a.m.ahead
	for n := len(a.m.steps); len(ahead) > 0; ahead = ahead[1:] {
		s := &ahead[0]
		if s.Kind == StepWoken || s.Kind == StepRest { // the engine records them before what follows, too
			continue
		}
		if n == 0 {
			return s.Key == a.turnKey() && decisionOf(s) == decidedReturn
		}
		n--
	}
	return !a.m.now.Before(a.leftAt.Add(duration(a.cfg.Fallback.ReturnAfterMs)))
}

// The decisions of the engine: an agent asks its first model again; its work budget has ended during an effect.
const (
	decidedReturn  = "return"
	decidedExpired = "expired"
)

// decisionOf returns the decision that a step records, "" for another step.
func decisionOf(s *Step) string {
	if e, ok := agentsteps.Read(s.Kind, s.Body).(*agentsteps.Decided); ok {
		return e.Decision
	}
	return ""
}

// returned takes the decision decidedReturn: the first model gets one try.
func (a *agent) returned() error {
	if a.model == 0 || a.m.form < formClasses || a.again {
		return errors.New("the agent asks its first model")
	}
	a.stay, a.model, a.trial = a.model, 0, true
	a.leftAt = time.Time{}
	a.room.refusedAt = a.tooLarge[0]
	return nil
}

// failAll ends an agent with the failures of its first model and of the others.
func (a *agent) failAll() {
	if a.finishing != "" {
		last := &a.fails[len(a.fails)-1]
		a.failBudget("the model gave no final answer: " + string(last.code) + " " + last.message)
		return
	}
	fails := slices.Clone(a.fails)
	slices.SortStableFunc(fails, func(x, y modelFailure) int { return x.model - y.model })
	first := fails[0]
	first.final = !slices.ContainsFunc(fails, func(f modelFailure) bool { return !f.final })
	text := first.message
	for _, f := range fails[1:] {
		if f.model == first.model {
			continue
		}
		m := &a.cfg.Models[f.model]
		text = strings.TrimSuffix(problem.Excerpt(text, problem.MaxText/len(a.cfg.Models)), ".") + problem.Format("; then %s: %s %s", orElse(m.Name, m.Model), string(f.code), f.message)
	}
	if first.code == chat.CodeContextExceeded {
		a.failWith(stopError, problem.AgentContextExceeded, true, "the conversation is larger than the model takes: "+text)
	} else {
		where := problem.Format("%s, turn %d", a.cfg.Name, a.turn)
		if a.try > 1 {
			where += ", try " + itoa(a.try-1)
		}
		a.failure, a.failureStop = &Failure{Code: first.code, Message: problem.Excerpt(where+": "+text, problem.MaxText), Final: first.final}, stopError
	}
	a.failure.Class, a.failure.Status = first.class, first.status
}

// giveUp takes a reply that cannot be used: the next model is asked in another turn where the configuration says so, else the agent ends.
func (a *agent) giveUp(class chat.Class, code problem.Code, message string) {
	if a.m.form < formClasses || a.finishing != "" {
		a.failWith(stopError, code, false, message)
		return
	}
	next, others := a.nextModel(class)
	a.failed(&agentsteps.Tried{Class: string(class), Code: string(code), Message: message})
	if !others || !a.falls(class) {
		if len(a.fails) > 1 {
			a.failAll()
			return
		}
		a.failWith(stopError, code, false, message)
		a.failure.Class = class
		return
	}
	a.moveTo(next)
	a.empties, a.cuts, a.repairs, a.part, a.raised, a.answering = 0, 0, 0, "", false, false
}
