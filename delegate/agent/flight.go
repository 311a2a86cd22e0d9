package agent

import (
	"context"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// shortRest is the longest pause that is spent in the flight: a longer one is left to the engine, and costs no goroutine.
const shortRest = 5 * time.Second

// flight is one call of Work: it performs the effects of a loop, and records what comes of them.
type flight struct {
	agents  *Agents
	req     delegate.Request
	journal activities.Journal
	machine *agentloop.Machine

	inputs chan outcome
	// stops are the effects under way, by id.
	stops map[string]context.CancelFunc
	// results are those that fetch_result reads.
	results results
	all     sync.WaitGroup
}

// outcome is what an effect has brought.
type outcome struct {
	effect string
	input  agentloop.Input
}

// patience is how long what has been told to stop may take to do so, before the agent goes on without it.
const patience = 5 * time.Second

// fly goes on until the agent has ended, or rests.
func (f *flight) fly(ctx context.Context) (activities.End, error) {
	work, stop := context.WithCancel(ctx)
	defer f.land(ctx)
	defer stop()
	for {
		b := f.machine.Ready()
		switch {
		case b.Done != nil:
			return f.end(b)
		case b.Question != nil:
			return activities.End{Steps: steps(b.Steps), Question: question(b.Question)}, nil
		case !b.Rest.IsZero() && b.Rest.Sub(f.agents.now()) > shortRest:
			return activities.End{Steps: steps(b.Steps), Until: b.Rest}, nil
		}
		if err := f.journal.Record(work, steps(b.Steps)...); err != nil {
			return activities.End{}, err
		}
		f.results.note(b.Steps)
		for _, e := range b.Abandoned {
			if stop := f.stops[e.ID()]; stop != nil {
				stop()
				delete(f.stops, e.ID())
			}
		}
		for _, e := range b.Effects {
			f.begin(work, e)
		}
		in, err := f.next(work)
		if err != nil {
			return activities.End{}, err
		}
		f.handle(in)
	}
}

// next waits for what happens next: an outcome, or the end of the time that the agent may work.
func (f *flight) next(ctx context.Context) (agentloop.Input, error) {
	began := f.agents.now()
	timer := time.NewTimer(f.machine.WorkLeft())
	defer timer.Stop()
	select {
	case out := <-f.inputs:
		delete(f.stops, out.effect)
		return out.input, nil
	case <-timer.C:
		return agentloop.Expired{Worked: f.agents.now().Sub(began)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// land waits for the effects under way, which have been told to stop. The outcome of an agent does not wait for a tool that does not obey;
// a flight that was told to end does, so that Close can tell.
func (f *flight) land(ctx context.Context) {
	landed := make(chan struct{})
	go func() {
		f.all.Wait()
		close(landed)
	}()
	if ctx.Err() != nil {
		<-landed
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-landed:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// handle gives the machine an input. One that does not fit any more, such as the result of a call that was abandoned, changes nothing.
func (f *flight) handle(in agentloop.Input) { _ = f.machine.Handle(in, f.agents.now()) }

// begin performs an effect in a goroutine of its own.
func (f *flight) begin(ctx context.Context, e agentloop.Effect) {
	ctx, stop := context.WithCancel(ctx)
	f.stops[e.ID()] = stop
	f.all.Go(func() {
		defer stop()
		in := f.perform(ctx, e)
		if ctx.Err() != nil && failed(in) {
			return // it was stopped: that says nothing about the tool or the model
		}
		select {
		case f.inputs <- outcome{e.ID(), in}:
		case <-ctx.Done():
		}
	})
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
