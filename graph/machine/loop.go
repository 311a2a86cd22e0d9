package machine

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// A switch with a loop (the extension loop) is written like any switch: its CompleteNode has the counter as output, and the next
// ScheduleNode says where it led. The rounds are counted by the token, not by the state, which other nodes may change.

// loopNode begins the next round of a loop, or leads on as a switch does once the loop has ended.
func (m *Machine) loopNode(t *token) *definition.Node {
	l := t.node.Loop
	round, inside := t.rounds[t.node.ID]
	view := t.view
	if l.Counter != "" && !inside {
		view = definition.OverlayState(view, map[string]any{l.Counter: 0.0}) // not what a loop before has left there
	}
	more, err := m.anotherRound(l, view, inside)
	target := l.Body
	switch {
	case err != nil:
	case !more:
		target, err = m.route(t.node, view)
	case round < l.Max:
	case l.OnLimit == nil:
		message := fmt.Sprintf("the loop %q needs more rounds than its max of %d", t.node.ID, l.Max)
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
	if !m.goesOn(t) {
		return nil
	}
	if more {
		t.setRound(t.node.ID, round)
	} else {
		delete(t.rounds, t.node.ID)
	}
	return target
}

// anotherRound decides, inside of a loop or as it is entered, whether it continues.
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

// leaveLoops forgets the rounds of the loops that a token has left by coming to a node.
func (m *Machine) leaveLoops(t *token, n *definition.Node) {
	for id := range t.rounds {
		if l := m.prog.Node(id); l != n && !l.Loop.Inside(n) {
			delete(t.rounds, id)
		}
	}
}

// looping reports whether the rounds of a token that was read from a position are those of loops.
func (m *Machine) looping(t *token) bool {
	for id, round := range t.rounds {
		n := m.prog.Node(id)
		if n == nil || n.Loop == nil || round < 1 || round > n.Loop.Max {
			return false
		}
	}
	return true
}
