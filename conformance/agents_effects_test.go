package conformance_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/internal/soak"
)

// strike is the effect of agents at which the process dies: before it begins, or after it has ended and before that is recorded.
type strike struct {
	at    int // 0 for none
	after bool
}

func (s strike) String() string {
	if s.after {
		return fmt.Sprintf("effect %d has ended", s.at)
	}
	return fmt.Sprintf("effect %d is to begin", s.at)
}

var errGone = errors.New("the process is dead")

// effect is a request to the model, or a call of a tool.
type effect struct{ key, tool string }

// gated reports whether a person has to be asked before.
func (e effect) gated() bool { return e.tool == "shop__refund" || e.tool == "shop__mail" }

// onCrash is what becomes of the effect if its process dies meanwhile. The model is always asked again.
func (e effect) onCrash() string {
	switch e.tool {
	case "", "shop__price", "shop__report":
		return "repeat"
	case "shop__ship":
		return "ask"
	}
	return "report"
}

// effect performs an effect, or dies.
func (x *trial) effect(key, tool string, do func()) error {
	x.mu.Lock()
	e := effect{key, tool}
	x.effects = append(x.effects, e)
	dies := x.dies.at == len(x.effects)
	if !x.gone {
		x.mayBegin(e)
	}
	if dies {
		x.struck = e
		x.gone = x.gone || !x.dies.after
	}
	gone := x.gone
	x.mu.Unlock()
	if !gone {
		do()
	}
	if dies {
		x.mu.Lock()
		x.gone = true
		x.mu.Unlock()
		x.fault.Set(historytest.Fault{At: 1, Reads: true, Dead: true})
	}
	if gone {
		return errGone
	}
	return nil
}

// mayBegin checks that the outcome of an effect is not recorded, and that a call that waits for a person has been answered.
func (x *trial) mayBegin(e effect) {
	answered, recorded := false, false
	for _, s := range x.steps() {
		switch {
		case s.continues: // what it does not go on after is performed again
			recorded = recorded && !strings.HasPrefix(e.key, s.attempt)
		case isOutcome(s.Kind) && e.key == s.key:
			recorded = true
		case s.Kind == agentloop.StepAnswer && strings.HasPrefix(e.key, s.attempt):
			answered = true
		}
	}
	if recorded {
		x.wrong = append(x.wrong, e.key+" was performed after its outcome was recorded")
	}
	if e.gated() && !answered {
		x.wrong = append(x.wrong, e.key+" was performed before a person was asked")
	}
}

func isOutcome(kind string) bool {
	return kind == agentloop.StepReply || kind == agentloop.StepResult || kind == agentloop.StepCompacted
}

// performed reports whether a step is the outcome of an effect outside: a sub-agent's answer and the shrinking of old results are not.
func performed(s machine.Step) bool {
	switch tool, _ := s.Body["tool"].(string); s.Kind {
	case agentloop.StepReply, agentloop.StepTried:
		return true
	case agentloop.StepResult:
		return !strings.HasPrefix(tool, "agent__")
	case agentloop.StepCompacted:
		return s.Body["summary"] != nil
	}
	return false
}

// recordedStep is a step with the idempotency key of its effect.
type recordedStep struct {
	machine.Step
	seq int64
	// attempt is what the keys of its attempt begin with: those of the first one, where it goes on where another stood.
	attempt, key string
	// continues marks the first step of an attempt that does, copied one that it has taken over.
	continues, copied bool
}

// steps are those of all agents of the run.
func (x *trial) steps() (all []recordedStep) {
	bases, taking := map[string]string{}, map[string]bool{} // by attempts of the run
	for _, r := range x.records(crashRun) {
		step, _, ok := machine.StepOf(&r)
		if !ok {
			continue
		}
		p := &r.Payload
		id := fmt.Sprintf("%s#%d.%d", p.NodeID, max(p.Visit, 1), max(p.Attempt, 1))
		s := recordedStep{Step: step, seq: r.Seq}
		from, _ := step.Body["continues"].(object)
		if s.continues = from != nil; s.continues {
			bases[id], taking[id] = fmt.Sprint(from["execution"], ":", from["attempt"]), true
		}
		s.copied = taking[id]
		if step.Kind == agentloop.StepContinued {
			delete(taking, id)
		}
		s.attempt = cmp.Or(bases[id], crashRun+":"+id) + "/"
		s.key = s.attempt + step.Key
		all = append(all, s)
	}
	return all
}

// outcomes are those that are recorded, and how often a model has refused, or was asked again by an attempt that goes on, by the keys of their
// effects.
func (x *trial) outcomes() (results map[string]machine.Step, tried map[string]int) {
	results, tried = map[string]machine.Step{}, map[string]int{}
	for _, s := range x.steps() {
		switch {
		case s.copied || !performed(s.Step):
		case isOutcome(s.Kind):
			if _, again := results[s.key]; again {
				tried[s.key]++
			}
			results[s.key] = s.Step
		case s.Kind == agentloop.StepTried:
			tried[s.key]++
		}
	}
	return results, tried
}

// checkAgents checks what agents have done outside, in a run that has met so many deaths: what is recorded was performed, each effect as
// often as it may be, and the model knows what is not known.
func (x *trial) checkAgents(at string, deaths int) {
	x.t.Helper()
	office := x.c.team.office
	made, asked := office.made(x.t), office.asked()
	results, tried := x.outcomes()
	requests, replies := 0, 0
	for key, n := range asked {
		requests += n
		replies += tried[key]
		if n > 1+deaths+tried[key] {
			x.t.Errorf("%s: the model was asked %d times for %s", at, n, key)
		}
	}
	for key, s := range results {
		code := errorCode(s)
		switch {
		case s.Kind == agentloop.StepReply || s.Kind == agentloop.StepCompacted:
			replies++
			if asked[key] == 0 {
				x.t.Errorf("%s: %s is recorded, and the model was not asked", at, key)
			}
		case code == unknown:
			if !office.told(unknown) {
				x.t.Errorf("%s: %s is not known, and the model was not told", at, key)
			}
		case code != "":
			x.t.Errorf("%s: %s has failed: %s", at, key, code)
		case made[key] == 0:
			x.t.Errorf("%s: %s has a result, and the call was not made", at, key)
		}
	}
	if requests > replies+deaths*x.c.team.atOnce {
		x.t.Errorf("%s: %d requests for %d replies and %d deaths", at, requests, replies, deaths)
	}
	for _, e := range x.effects {
		may := 1 + deaths
		if e.onCrash() == "report" {
			may = 1
		}
		if n := made[e.key]; e.tool != "" && n > may {
			x.t.Errorf("%s: the call %s of %s, with onCrash %s, was made %d times", at, e.key, e.tool, e.onCrash(), n)
		}
	}
}

func errorCode(s machine.Step) string {
	failure, _ := s.Body["error"].(object)
	code, _ := failure["code"].(string)
	return code
}

// checkStrike checks what has become of the effect at which the process died.
func (x *trial) checkStrike(at string) {
	x.t.Helper()
	e, office := x.struck, x.c.team.office
	if e == (effect{}) {
		x.t.Errorf("%s: there was no such effect", at)
		return
	}
	results, tried := x.outcomes()
	times := office.asked()[e.key]
	if e.tool != "" {
		times = office.made(x.t)[e.key]
	}
	want, code := 1, "" // by the process that takes over, after a person has said so where that is how it is set up
	if e.onCrash() == "report" {
		want, code = 0, unknown
	}
	if x.dies.after {
		want++
	}
	if e.tool == "" {
		want += tried[e.key] // the model has refused, and that is recorded
	}
	if got := errorCode(results[e.key]); times != want || got != code {
		x.t.Errorf("%s: %s %s was performed %d times, want %d; its result has the code %q, want %q", at, e.tool, e.key, times, want, got, code)
	}
	asked := slices.ContainsFunc(x.steps(), func(s recordedStep) bool { return s.Kind == agentloop.StepDecided && s.key == e.key })
	if asked != (e.onCrash() == "ask") {
		x.t.Errorf("%s: %s %s is put to a person: %v", at, e.tool, e.key, asked)
	}
}

// strikes tries the death of the process at every effect of agents, before and after it.
func strikes(t *testing.T, c *crashCase, m crashMode, want *trial, newStore func() history.Store) (tried int) {
	step := 1
	if soak.UnderRace && !soak.On() {
		step = 3
	}
	for n := 0; n < 2*len(want.effects); n += step {
		got := newTrial(t, c, m, newStore())
		got.dies = strike{at: n/2 + 1, after: n%2 == 1}
		at := "died when " + got.dies.String()
		got.disturbed(0, way{name: "died in an effect", dead: true}, 0)
		got.compare(want, at)
		if !m.cancel {
			got.checkAgents(at, 1)
			got.checkStrike(at)
		}
		got.closeStore()
		tried++
	}
	return tried
}

// checkFork checks that a fork has performed what was not recorded before it, once, and nothing else.
func (x *trial) checkFork(at string, seq int64) {
	x.t.Helper()
	made := map[string]int{}
	for _, e := range x.effects {
		made[e.key]++
	}
	recorded := map[string]int{}
	for _, s := range x.steps() {
		if s.seq > seq && !s.copied && performed(s.Step) {
			recorded[s.key]++
		}
	}
	if !maps.Equal(made, recorded) {
		x.t.Errorf("%s: performed %v, recorded %v", at, made, recorded)
	}
}
