package work

import (
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// Pool performs attempts of a run in goroutines. A goroutine performs the immediate attempts itself, in branch order, and one slow
// attempt; each other slow attempt gets a goroutine. So a run without branches needs one goroutine and no hand-over between nodes. If an
// executor ends its goroutine (runtime.Goexit), another one continues.
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

// Begin performs attempts, and those that follow, in the background.
func (p *Pool) Begin(attempts []*Attempt) {
	if attempts = p.enqueue(attempts); len(attempts) > 0 {
		p.begin((&worker{Pool: p, next: attempts}).run)
	}
}

// worker is the work of one goroutine.
type worker struct {
	*Pool
	// queue is performed in order. next are the attempts after the last one, slow those of them that are not immediate.
	queue, next, slow []*Attempt
}

func (w *worker) run() {
	over := false
	defer func() {
		if v := recover(); v != nil {
			panic(v) // a bug in the engine: panics of executors are caught before
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

// goOn continues after an executor has ended the goroutine, in a call of Immediate or of Perform.
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

// split adds the next attempts to the queue, and hands slow ones to other goroutines.
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

// enqueue lets the attempts that need a turn wait, and returns the others.
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

// passTurn passes a turn on to the attempt that was begun with it, if any.
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
