package work

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// awaitTurn makes an attempt wait for its turn, and begins it then.
func (p *Pool) awaitTurn(a *Attempt) {
	drop := p.Run.Hold()
	p.Performer.Turns.Enter(&Ticket{
		Run: p.ExecutionID, Priority: a.Config.Priority, Classes: p.Performer.Classes(a.Effect.(*machine.TurnEffect).Node), Context: a.Context,
		Turn: func(done func()) {
			defer drop()
			a.Done = done
			p.Begin([]*Attempt{a})
		},
		Left: func() {
			defer drop()
			a.Release()
		},
	})
}

// enqueue makes those of some attempts wait that need a turn, and returns the others.
func (p *Pool) enqueue(attempts []*Attempt) []*Attempt {
	waits := func(a *Attempt) bool {
		_, turn := a.Effect.(*machine.TurnEffect)
		return turn && a.Done == nil
	}
	var now, later []*Attempt
	for i, a := range attempts {
		switch {
		case waits(a):
			if later == nil {
				now = append(now, attempts[:i]...)
			}
			later = append(later, a)
		case later != nil:
			now = append(now, a)
		}
	}
	if later == nil {
		return attempts
	}
	for _, a := range later {
		p.awaitTurn(a)
	}
	return now
}

// passTurn hands the turn that has come on to the attempt that was begun with it, if there is one.
func passTurn(from *Attempt, begun []*Attempt) {
	e, ok := from.Effect.(*machine.TurnEffect)
	if !ok {
		return
	}
	for _, a := range begun {
		if a.Key == e.EffectKey && a.Done == nil {
			a.Done, from.Done = from.Done, nil
			a.Context = InheritTrace(a.Context, from.Context)
		}
	}
}
