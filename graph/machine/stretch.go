package machine

import (
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A walk between two waits may be long: a loop of set_state nodes, ten thousand branches. It is made in stretches of about equal
// length, which is counted, not timed. Between two stretches, the driver commits and other calls get the lock; the token waits for Continue with a
// WalkEffect. Stretches are not recorded, and until the walk has ended, every input except Cancel is rejected. So the records are those of
// one long walk, and a replay, which walks up to the end of the history, does not depend on stretches.

// stretchUnits is the length of a stretch, about 50 ms, in units of expr.Env: about one step of the interpreter.
const stretchUnits = 1_000_000

// visitUnits is the cost of making, encoding and storing the records of a visit, without its expressions.
const visitUnits = 400

// stateBytesPerUnit is the part of the state that is validated, encoded and stored in the time of a unit.
const stateBytesPerUnit = 16

// sizedVisits is the number of visits before a stretch measures the state; most stretches end earlier.
const sizedVisits = 8

// maxSizedState is the size of a state, in bytes, above which the cost of a visit stays the same.
const maxSizedState = 16 << 20

// walkDue is the time until the timer of a walk is due, by which other processes find a walk without a driver.
const walkDue = 5 * time.Second

// WalkEffect asks the driver to continue a walk, after the records that came with it. Respond with Continue.
type WalkEffect struct{ EffectBase }

// Continue continues a walk; Key is that of the WalkEffect.
type Continue struct{ Key string }

func (Continue) input() {}

// GoesOn reports whether an input only continues a walk.
func GoesOn(in Input) bool {
	_, walk := in.(Continue)
	return walk
}

// ErrWalking rejects an input while a walk is under way. It is not a rejection by the protocol: pass the input again after the walk.
var ErrWalking = errors.New("the run is computing")

// ErrAbandoned reports that Limits.Stop has ended the walk; see Machine.Stopped.
var ErrAbandoned = expr.ErrAbandoned

// pace counts the cost of a stretch.
type pace struct {
	spent, length int
	visits        int
	// visit is the price of a visit.
	visit int
	// at is the token whose walk continues in the next stretch, or nil.
	at *token
	// again is true until the token has continued its walk.
	again bool
}

// Walking reports whether a walk is in progress. The machine then accepts only Continue and Cancel.
func (m *Machine) Walking() bool { return m.pace.at != nil }

// beginStretch resets the count.
func (m *Machine) beginStretch() {
	p := &m.pace
	p.spent, p.length, p.visits, p.visit = 0, stretchUnits, 0, visitUnits
	if n := m.cfg.Limits.StretchUnits; n > 0 {
		p.length = n
	}
	if short := m.cfg.Limits.Short; short != nil && short() {
		p.length = 0
	}
}

// countVisit counts a visit, apart from the cost of its expressions.
func (m *Machine) countVisit() {
	p := &m.pace
	if p.visits++; p.visits == sizedVisits {
		p.visit += jsonvalue.Size(m.main.view, maxSizedState) / stateBytesPerUnit
	}
	p.spent += p.visit
}

// stretchExhausted reports whether the stretch is over. It is never over before the end of the history.
func (m *Machine) stretchExhausted() bool {
	return m.pace.spent >= m.pace.length && !m.repeating() && (m.recorded == nil || m.recorded.tailLeft == 0)
}

// env is the environment of a node's expressions. They share one budget: a stretch ends only between nodes.
func (m *Machine) env() expr.Env {
	return expr.Env{Now: m.clock, Spent: &m.pace.spent, Stop: m.stop, Budget: &expr.Budget{}}
}

// askStop reports whether to abandon the current evaluation.
func (m *Machine) askStop() bool {
	if stop := m.cfg.Limits.Stop; stop != nil && stop() {
		m.stopped = true
	}
	return m.stopped
}

// Stopped reports whether Limits.Stop has ended an evaluation. The machine is then in a state without a history: drop it.
func (m *Machine) Stopped() bool { return m.stopped }

// endStretch ends the stretch before a token visits a node.
func (m *Machine) endStretch(t *token, n *definition.Node) {
	if !t.item() {
		t.node, t.visit, t.limit = n, m.visits[n.Index], time.Time{}
	}
	m.waitFor(t, &wait{Kind: waitWalk, Clock: m.clock, Due: m.now.Add(walkDue)})
	m.pace.at = t
	m.effects = append(m.effects, t.effect())
}

func (m *Machine) acceptContinue(in Continue) (*token, error) {
	if t := m.pace.at; t != nil && t.key() == in.Key {
		return t, nil
	}
	return nil, errNoWalk
}

var errNoWalk = errors.New("no walk has this key")

// walkOn makes the next stretch of a walk: expressions see the time of the input that led to it.
func (m *Machine) walkOn(t *token) {
	m.clock = t.wait.Clock
	n, b := t.node, t.block
	m.stopWaiting(t)
	if t.item() {
		m.beginItem(t)
		m.startItems(b)
		b = b.owner.block
	} else {
		m.pace.again = true
		m.walk(t, n)
	}
	for ; b != nil; b = b.owner.block {
		m.startBranches(b)
	}
	if !m.Walking() {
		m.timersDirty = true // no timer was fired meanwhile
	}
}

// waitWalk is the kind of wait of a token between two stretches. Pending omits it.
const waitWalk WaitKind = "walk"

// walkKey identifies the rest of a walk by its node and the number of visits.
func walkKey(t *token) string { return "walk:" + visitKey(t.node.ID, t.visit) }
