package agent

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// shortRest is the longest pause that an attempt waits for itself. A longer one is left to the engine, and costs no goroutine.
const shortRest = 5 * time.Second

// attempt is one call of Work: it performs the effects of a loop and records their outcomes.
type attempt struct {
	agents  *Agents
	req     activities.Request
	journal activities.Journal
	machine *agentloop.Machine
	// base is the prefix of the keys of calls if another attempt started the agent, else "".
	base string

	inputs chan outcome
	// stops are the effects under way, by id.
	stops map[string]context.CancelFunc
	// results are those that fetch_result reads, pieces those of a large one that are not recorded yet, held how much room it takes.
	results results
	pieces  []agentloop.Step
	held    int
	all     sync.WaitGroup
}

// outcome is the outcome of an effect.
type outcome struct {
	effect string
	input  agentloop.Input
	// pieces are those of a large result, held is how much room it takes.
	pieces []agentloop.Step
	held   int
}

// stopWait is how long a cancelled effect may take to return. After that the agent continues without it.
const stopWait = 5 * time.Second

// run performs effects until the agent ends or rests.
func (w *attempt) run(ctx context.Context) (activities.End, error) {
	work, stop := context.WithCancel(ctx)
	defer w.waitForEffects(ctx)
	defer func() { w.agents.inWork.leave(w.held) }()
	defer stop()
	for {
		b := w.machine.Ready()
		b.Steps, w.pieces = append(w.pieces, b.Steps...), nil // in one commit: there is no result without its pieces
		switch {
		case b.Done != nil:
			return w.end(b)
		case b.Question != nil:
			return activities.End{Steps: steps(b.Steps), Question: question(b.Question)}, nil
		case !b.Rest.IsZero() && b.Rest.Sub(w.agents.now()) > shortRest:
			return activities.End{Steps: steps(b.Steps), Until: b.Rest}, nil
		}
		if err := w.journal.Record(work, steps(b.Steps)...); err != nil {
			return activities.End{}, err
		}
		w.results.note(b.Steps)
		w.agents.inWork.leave(w.held)
		w.held = 0
		for _, e := range b.Abandoned {
			if stop := w.stops[e.ID()]; stop != nil {
				stop()
				delete(w.stops, e.ID())
			}
		}
		for _, e := range b.Effects {
			w.begin(work, e)
		}
		in, err := w.next(work)
		if err != nil {
			return activities.End{}, err
		}
		w.handle(in)
	}
}

// next waits for an outcome, or for the end of the agent's work time.
func (w *attempt) next(ctx context.Context) (agentloop.Input, error) {
	began := w.agents.now()
	timer := time.NewTimer(w.machine.WorkLeft())
	defer timer.Stop()
	select {
	case out := <-w.inputs:
		delete(w.stops, out.effect)
		w.pieces, w.held = out.pieces, out.held
		return out.input, nil
	case <-timer.C:
		return agentloop.Expired{Worked: w.agents.now().Sub(began)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// waitForEffects waits for the effects under way, whose contexts have ended. The outcome of an agent does not wait for a tool that ignores
// its context. An attempt that was itself asked to stop does wait, so that Close can report it.
func (w *attempt) waitForEffects(ctx context.Context) {
	ended := make(chan struct{})
	go func() {
		w.all.Wait()
		close(ended)
	}()
	if ctx.Err() != nil {
		<-ended
		return
	}
	timer := time.NewTimer(stopWait)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// handle hands an input to the machine. One that no longer fits, such as the result of an abandoned call, changes nothing. A decision of a
// hook that cannot be used is ignored.
func (w *attempt) handle(in agentloop.Input) {
	err := w.machine.Handle(in, w.agents.now())
	if err != nil {
		w.pieces = nil
	}
	if d, ok := in.(agentloop.Decided); ok && err != nil {
		for _, e := range w.machine.Outstanding() {
			if open, ok := e.(agentloop.Decide); ok && open.Key == d.Key {
				_ = w.machine.Handle(unusable(&open, err.Error()), w.agents.now())
				return
			}
		}
	}
}

// begin performs an effect in a new goroutine.
func (w *attempt) begin(ctx context.Context, e agentloop.Effect) {
	ctx, stop := context.WithCancel(ctx)
	w.stops[e.ID()] = stop
	totals := w.machine.Totals().Map()
	w.all.Go(func() {
		defer stop()
		in := w.perform(ctx, e, totals)
		if in == nil || ctx.Err() != nil && failed(in) {
			return // it was stopped: that says nothing about the tool or the model
		}
		out := outcome{effect: e.ID(), held: weighed(in)}
		if out.held > 0 && w.agents.inWork.take(ctx, out.held) != nil {
			return
		}
		out.input = w.masked(in)
		out.split(e, w.most(ctx, out.held))
		select {
		case w.inputs <- out:
		case <-ctx.Done():
			w.agents.inWork.leave(out.held)
		}
	})
}

// split makes pieces of a result that is too large for a step.
func (o *outcome) split(e agentloop.Effect, most int) {
	call, called := e.(agentloop.CallTool)
	returned, ok := o.input.(agentloop.ToolReturned)
	if !called || !ok || returned.Failure != nil {
		return
	}
	plain, err := jsonvalue.Normalize(returned.Output)
	if err != nil {
		return // the machine says what is wrong
	}
	large, texts := agentloop.Split(plain, min(call.MaxBytes, most))
	if large == nil {
		return
	}
	for i, text := range texts {
		o.pieces = append(o.pieces, agentloop.PieceStep(call.Key, i, text))
	}
	returned.Output, returned.Large = nil, large
	o.input = returned
}

// failed reports whether an effect has brought nothing.
func failed(in agentloop.Input) bool {
	switch in := in.(type) {
	case agentloop.ToolsListed:
		return in.Failure != nil
	case agentloop.ToolReturned:
		return in.Failure != nil
	case agentloop.ModelFailed, agentloop.Woken:
		return true
	}
	return false
}
