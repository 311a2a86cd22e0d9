package machine

import (
	"errors"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A walk between two waits may be long: a loop of set_state nodes, ten thousand branches. It is made in stretches of about equal
// length, counted and not timed. Between two of them the driver commits, and others get their turn: the token waits with a WalkEffect
// for Continue. Nothing of that is recorded, and until the walk has ended no other input but Cancel is taken. So the records are the
// same as those of one long walk, and a replay, which walks as far as the history goes, need not know the stretches.

// stretchUnits is the length of a stretch: some 50 ms. A unit is that of expr.Env: about a step of the interpreter.
const stretchUnits = 1_000_000

// visitUnits is the cost of a visit, besides the evaluation of its expressions: its records are made, encoded and stored.
const visitUnits = 400

// stateBytesPerUnit is how much of the state is validated, encoded and stored in the time of a unit.
const stateBytesPerUnit = 16

// sizedVisits is how many visits a stretch makes before it looks how large the state is: most are over by then.
const sizedVisits = 8

// maxSizedState is the size of a state above which visits cost no more.
const maxSizedState = 16 << 20

// walkDue is when the timer of a walk under way is due: other processes find by it a walk whose driver is gone.
const walkDue = 5 * time.Second

// WalkEffect asks the driver to continue a walk, after the records that came with it. Respond with Continue.
type WalkEffect struct{ EffectBase }

// Continue continues a walk; Key is that of the WalkEffect.
type Continue struct{ Key string }

func (Continue) input() {}

// GoesOn reports whether an input is no news, but the next stretch of a walk.
func GoesOn(in Input) bool {
	_, walk := in.(Continue)
	return walk
}

// ErrWalking rejects an input while a walk is under way. It is no refusal of the protocol: offer the input again once the walk is
// over.
var ErrWalking = errors.New("the run is computing")

// ErrAbandoned says that Limits.Stop has ended the walk; see Machine.Stopped.
var ErrAbandoned = expr.ErrAbandoned

// pace counts the cost of a stretch.
type pace struct {
	spent, length int
	visits        int
	// visit is the price of a visit.
	visit int
	// at is the token whose walk continues in the next stretch, or nil.
	at *token
	// again is true until the token has gone on with its walk.
	again bool
}

// Walking reports whether a walk is under way: the run continues Continue, and takes nothing else but Cancel.
func (m *Machine) Walking() bool { return m.pace.at != nil }

// beginStretch begins to count anew.
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

// tired reports whether the stretch is over. A replay first goes as far as the history.
func (m *Machine) tired() bool {
	return m.pace.spent >= m.pace.length && !m.repeating() && (m.recorded == nil || m.recorded.tailed == 0)
}

// env is the environment of a node's expressions. They share one budget: a stretch ends only between nodes.
func (m *Machine) env() expr.Env {
	return expr.Env{Now: m.clock, Spent: &m.pace.spent, Stop: m.stop, Budget: &expr.Budget{}}
}

// askStop asks whether the evaluation under way is to be abandoned.
func (m *Machine) askStop() bool {
	if stop := m.cfg.Limits.Stop; stop != nil && stop() {
		m.stopped = true
	}
	return m.stopped
}

// Stopped reports whether Limits.Stop has ended an evaluation. The machine then stands where no history does: drop it.
func (m *Machine) Stopped() bool { return m.stopped }

// rest ends the stretch before a token visits a node.
func (m *Machine) rest(t *token, n *definition.Node) {
	if !t.item() {
		t.node, t.visit = n, m.visits[n.Index]
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

var errNoWalk = errors.New("no walk goes on with this key")

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
		m.timersDirty = true // none was fired meanwhile
	}
}

// waitWalk is the kind of wait of the token whose walk is under way. It is in no list of the run's waits.
const waitWalk WaitKind = "walk"

// walkKey identifies the rest of a walk by the node and the visits that it has had.
func walkKey(t *token) string { return "walk:" + visitKey(t.node.ID, t.visit) }
