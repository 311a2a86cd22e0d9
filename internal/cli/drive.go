package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// driveOptions are what the commands that drive a run have in common.
type driveOptions struct {
	// answers for the places where the run waits, used before anybody is asked.
	answers answers
	// wait bounds the time until the run rests; 0 waits as long as it takes.
	wait waitLimit
	// json prints where the run stands instead of its result alone.
	json bool
	// mode says who performs activities from now on; "" keeps the run's.
	mode string
	// definition is the file of the run's definition, needed only for runs whose definition is not stored.
	definition string
}

// drive carries a run on until it has ended or waits for something that is not at hand.
type drive struct {
	driveOptions
	app      *app
	session  *session
	deadline time.Time
	// caller is what every call about the run repeats.
	caller graph.Caller
	// leaveTimers makes rest leave runs that wait for a time to a later command.
	leaveTimers bool
	// saidHeld is true once the command has said that another process holds the run.
	saidHeld bool
}

func (a *app) drive(s *session, o driveOptions) *drive {
	d := &drive{driveOptions: o, app: a, session: s}
	if o.wait.given {
		d.deadline = a.now().Add(o.wait.limit)
	}
	// Calls wait for a short time only, since rest waits out the remainder.
	d.caller.Wait = graph.Wait{Set: true, Limit: max(0, min(firstLook, d.left()))}
	return d
}

// from takes the answer of the call that began or continued the run, and drives on. What it returns decides the exit
// status; everything else has been printed.
func (d *drive) from(ctx context.Context, run *graph.Run, err error) error {
	for {
		if err == nil {
			run, err = d.rest(ctx, run)
		}
		if err == nil && run.Status.Terminal() {
			return d.ended(run)
		}
		if err != nil || ctx.Err() != nil {
			return d.stopped(ctx, run, err)
		}
		next, found, answerErr := d.nextAnswer(ctx, run)
		switch {
		case answerErr != nil:
			err = answerErr
		case !found:
			return d.paused(ctx, run)
		default:
			run, err = d.apply(ctx, run, next)
		}
	}
}

// rest waits until the run has ended, waits for somebody, the time is over or ctx ends. Timers, back-offs and executors
// come to an end by themselves, so those are waited out; a run that needs what is missing here does not.
func (d *drive) rest(ctx context.Context, run *graph.Run) (*graph.Run, error) {
	for look := firstLook; !run.Status.Terminal() && somebody(run) == nil && ctx.Err() == nil; look = min(2*look, lastLook) {
		if d.left() <= 0 || d.leaveTimers && idle(run, d.app.now()) {
			return run, nil
		}
		if left, err := d.leftToNobody(ctx, run); left || err != nil {
			return run, err
		}
		p, err := d.patience(ctx, run, look)
		if err != nil {
			return run, err
		}
		wait, stop := graph.Wait{Set: true, Limit: p.limit}, func() {}
		if p.takeOver {
			wait.End, stop = d.session.leaseEnds(ctx, d.app.now, family(run), p.held)
		}
		next, err := d.session.runner.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID, Wait: wait})
		stop()
		if err != nil {
			return run, err
		}
		run = next
		if left, err := d.leftToNobody(ctx, run); left || err != nil {
			return run, err
		}
		if p.takeOver && run.Status == machine.Running && d.left() > 0 {
			if run, err = d.session.takeOver(ctx, run.ExecutionID, d.atOnce()); err != nil {
				return next, err
			}
		}
		// With a deadline, the engine answers at once when a timer is due later than that.
		if run.Status == machine.AwaitingTimer && (d.leaveTimers || !d.deadline.IsZero()) {
			return run, nil
		}
	}
	return run, nil
}

// idle reports whether a run waits for times that have not come.
func idle(run *graph.Run, now time.Time) bool {
	return run.Status == machine.AwaitingTimer &&
		!slices.ContainsFunc(run.Pending, func(p graph.Pending) bool { return !p.Due.After(now) })
}

// forever is the limit of calls that may take as long as they need.
const forever = 100 * 365 * 24 * time.Hour

// atOnce is the caller of calls that do not wait.
func (d *drive) atOnce() graph.Caller {
	caller := d.caller
	caller.Wait = graph.Wait{Set: true}
	return caller
}

// left is how long the command may still wait.
func (d *drive) left() time.Duration {
	if d.deadline.IsZero() {
		return forever
	}
	return d.deadline.Sub(d.app.now())
}

// somebody gives the first entry that a person, a host or another system has to end, nil if there is none.
func somebody(run *graph.Run) *graph.Pending {
	for i, p := range run.Pending {
		switch {
		case p.Kind == machine.WaitInterrupt, p.Kind == machine.WaitSignal, p.Host:
			return &run.Pending[i]
		}
	}
	return nil
}

// nextAnswer takes the next scripted answer, or asks whoever sits at the terminal.
func (d *drive) nextAnswer(ctx context.Context, run *graph.Run) (filled, bool, error) {
	p := somebody(run)
	if p == nil || p.Host {
		return filled{}, false, nil
	}
	if scripted, ok := d.answers.take(); ok {
		return filled{signal: scripted.signal, interruptID: interruptID(p), payload: scripted.object}, true, nil
	}
	if !d.app.interactive {
		return filled{}, false, nil
	}
	d.session.flush()
	return d.app.ask(ctx, p)
}

// filled is an answer ready to be given.
type filled struct {
	signal      string // "" for an interrupt
	interruptID string
	payload     map[string]any
	// asked is true if a person gave it, who can be asked again.
	asked bool
}

func interruptID(p *graph.Pending) string {
	if p.Kind == machine.WaitInterrupt {
		return p.ID
	}
	return ""
}

// apply gives an answer to the run. A person whose answer is refused is told why and asked again.
func (d *drive) apply(ctx context.Context, run *graph.Run, f filled) (*graph.Run, error) {
	var (
		next *graph.Run
		err  error
	)
	if f.signal != "" {
		next, err = d.session.runner.Signal(ctx, graph.SignalRequest{
			ExecutionID: run.ExecutionID, Name: f.signal, Payload: f.payload, Caller: d.caller,
		})
	} else {
		next, err = d.session.runner.Resume(ctx, graph.ResumeRequest{
			ExecutionID: run.ExecutionID, InterruptID: f.interruptID, Payload: f.payload, Caller: d.caller,
		})
	}
	refused := errors.Is(err, problem.InvalidResumePayload) || errors.Is(err, problem.SignalValidationError)
	if f.asked && refused {
		d.app.printError(err)
		return run, nil
	}
	if err != nil {
		return run, err
	}
	return next, nil
}

// ended prints the outcome of a run that has ended.
func (d *drive) ended(run *graph.Run) error {
	d.session.flush()
	if len(d.answers) > 0 {
		fmt.Fprintf(d.app.stderr, "%s %s not needed\n", d.app.paint.wait("warning:"), count(len(d.answers), "answer"))
	}
	d.app.summarize(run)
	if d.json {
		if err := writeEncoded(d.app.stdout, encodeRun(run)); err != nil {
			return err
		}
	} else if run.Status == machine.Completed {
		if err := writeJSON(d.app.stdout, run.Result); err != nil {
			return err
		}
	}
	if run.Status != machine.Completed {
		return silent{exitFailed}
	}
	return nil
}

// paused says what a run waits for and which command continues it.
func (d *drive) paused(ctx context.Context, run *graph.Run) error {
	d.session.flush()
	if run.Lacks != nil {
		if err := d.session.equip(ctx, run); err != nil {
			return err
		}
	}
	d.app.summarize(run)
	d.app.explainPause(run, d.session)
	if d.json {
		if err := writeEncoded(d.app.stdout, encodeRun(run)); err != nil {
			return err
		}
	}
	return silent{exitPaused}
}

// stopped ends the command before the run has come to rest. run is nil if there is none.
func (d *drive) stopped(ctx context.Context, run *graph.Run, err error) error {
	d.session.flush()
	if run == nil || ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(d.app.stderr, "\ninterrupted; everything that run %s has done is recorded. Continue with:\n  %s\n",
		run.ExecutionID, d.session.command("recover", run.ExecutionID))
	return silent{exitInterrupted}
}

// flush prints what the live view still holds, so that lines stay in order.
func (s *session) flush() {
	if s.view != nil {
		s.view.flush()
	}
}

// command gives the line that calls another command that drives the same runs.
func (s *session) command(name string, args ...string) string {
	words := append([]string{program, name}, args...)
	return commandLine(append(words, s.repeat...)...)
}
