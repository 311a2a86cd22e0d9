package work

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Pool runs attempts of a run in goroutines. What answers at once is performed by the goroutine that comes to it, in branch order; of what
// takes time, one attempt is, and each other one by a goroutine of its own. So a run without branches needs one goroutine, and
// no hand-over between nodes. When an executor ends its goroutine (runtime.Goexit), another one goes on.
type Pool struct {
	Performer   *Performer
	ExecutionID string
	Run         Run
}

// Run is the run of a Pool.
type Run interface {
	// Hold keeps the run in memory until drop is called.
	Hold() (drop func())
	// Perform performs an attempt, records its outcome and returns the attempts that follow.
	Perform(*Attempt) []*Attempt
	// Exited records the outcome of an attempt whose executor has ended its goroutine, and returns the attempts that follow.
	Exited(*Attempt) []*Attempt
}

// begin calls f in a goroutine of its own, which holds the run.
func (p *Pool) begin(f func()) {
	drop := p.Run.Hold()
	p.Performer.Go(func() {
		defer drop()
		f()
	})
}

// Begin performs attempts, and whatever follows from them, in the background.
func (p *Pool) Begin(attempts []*Attempt) {
	if attempts = p.enqueue(attempts); len(attempts) > 0 {
		p.begin((&worker{Pool: p, next: attempts}).run)
	}
}

// worker is the work of one goroutine.
type worker struct {
	*Pool
	// queue is performed in order. next is what follows from the last attempt, slow the part of it that is not answered at once.
	queue, next, slow []*Attempt
}

func (w *worker) run() {
	over := false
	defer func() {
		if v := recover(); v != nil {
			panic(v) // a fault of the engine: executors' panics do not come here
		}
		if !over {
			w.begin(w.goOn)
		}
	}()
	for w.split(); len(w.queue) > 0; w.split() {
		w.next = w.Run.Perform(w.queue[0])
		passTurn(w.queue[0], w.next)
		w.next = w.enqueue(w.next)
		w.done()
	}
	over = true
}

// goOn goes on after an executor has ended the goroutine: while it was asked whether it answers at once, or while it performed.
func (w *worker) goOn() {
	if len(w.next) > 0 {
		w.slow, w.next = append(w.slow, w.next[0]), w.next[1:]
	} else {
		w.next = w.enqueue(w.Run.Exited(w.queue[0]))
		w.done()
	}
	w.run()
}

func (w *worker) done() {
	w.queue[0].Release()
	w.queue = w.queue[1:]
}

// split adds the attempts that follow to the queue, and hands those that would hold it up to others.
func (w *worker) split() {
	for ; len(w.next) > 0; w.next = w.next[1:] {
		if a := w.next[0]; w.Performer.Immediate(a) {
			w.queue = append(w.queue, a)
		} else {
			w.slow = append(w.slow, a)
		}
	}
	slow := w.slow
	w.slow = nil
	if len(w.queue) == 0 && len(slow) > 0 {
		w.queue, slow = append(w.queue, slow[0]), slow[1:]
	}
	for _, a := range slow {
		w.Begin([]*Attempt{a})
	}
}

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
