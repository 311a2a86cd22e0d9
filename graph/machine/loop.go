package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A switch with a loop (the extension loop) is recorded like any switch: its CompleteNode has the counter as output, and the next ScheduleNode
// has the target. The token counts the rounds, since other nodes may change the counter in the state.

// loopNode starts the next round of a loop, or routes like a switch after the loop has ended.
func (m *Machine) loopNode(t *token) *definition.Node {
	l := t.node.Loop
	round, inside := t.rounds[t.node.ID]
	view := t.view
	if l.Counter != "" && !inside {
		view = definition.OverlayState(view, map[string]any{l.Counter: 0.0}) // an earlier loop may have left another value there
	}
	more, err := m.anotherRound(l, view, inside)
	target := l.Body
	switch {
	case err != nil:
	case !more:
		target, err = m.route(t.node, view)
	case round < l.Max:
	case l.OnLimit == nil:
		message := fmt.Sprintf("loop %q exceeds its limit of %d rounds", t.node.ID, l.Max)
		m.failNode(t, reasonLoop, message, string(problem.LoopLimitExceeded))
		return nil
	default:
		more, target = false, l.OnLimit
	}
	if err != nil {
		m.failErr(t, reasonSwitch, err)
		return nil
	}
	c := completion{output: map[string]any{}, checkpoint: true}
	if more {
		round++
	}
	if l.Counter != "" && (more || !inside) {
		c.output = map[string]any{l.Counter: float64(round)}
		c.delta = c.output
	}
	m.complete(t, c)
	if !m.continues(t) {
		return nil
	}
	if more {
		t.setRound(t.node.ID, round)
	} else {
		delete(t.rounds, t.node.ID)
	}
	return target
}

// anotherRound reports whether a loop starts a round; inside is false as the loop is entered.
func (m *Machine) anotherRound(l *definition.Loop, view map[string]any, inside bool) (bool, error) {
	condition := l.While
	if l.Until != nil {
		if !inside {
			return true, nil
		}
		condition = l.Until
	}
	v, err := condition.EvalAt(view, m.env())
	return expr.Truthy(v) == (l.While != nil), err
}

func (t *token) setRound(id string, round int) {
	if t.rounds == nil {
		t.rounds = map[string]int{}
	}
	t.rounds[id] = round
}

// leaveLoops removes the rounds of the loops that a token leaves by moving to a node.
func (m *Machine) leaveLoops(t *token, n *definition.Node) {
	for id := range t.rounds {
		if l := m.prog.Node(id); l != n && !l.Loop.Inside(n) {
			delete(t.rounds, id)
		}
	}
}

// validRounds reports whether the rounds of a token from a position belong to loops of the definition.
func (m *Machine) validRounds(t *token) bool {
	for id, round := range t.rounds {
		n := m.prog.Node(id)
		if n == nil || n.Loop == nil || round < 1 || round > n.Loop.Max {
			return false
		}
	}
	return true
}
