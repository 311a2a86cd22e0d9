package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// driveOptions are what the commands that drive a run have in common.
type driveOptions struct {
	// answers for the places where the run waits, used before a person is asked.
	answers answers
	// wait bounds the time until the run rests; nil waits as long as it takes.
	wait *time.Duration
	// json prints where the run stands instead of its result alone.
	json bool
	// mode says who performs activities from now on; "" keeps the run's.
	mode string
	// definition is the file of the run's definition, needed only for runs whose definition is not stored.
	definition string
	// noStream keeps what models of agents say from being printed on a terminal as it arrives.
	noStream bool
}

// drive continues a run until it has ended or waits for something that is not at hand.
type drive struct {
	driveOptions
	app      *app
	session  *session
	deadline time.Time
	// caller is what every call about the run repeats. None of them waits: rest does.
	caller graph.Caller
	// leaveTimers makes rest leave runs that wait for a time to a later command.
	leaveTimers bool
	// cancelling: the run was being rolled back for a cancel when the command began, so that it is to end as cancelled.
	cancelling bool
	// ownWords: an answer that this command gave has been taken, or the command began the run, so that what the run asks next has not been
	// asked when an earlier call of the same command answered it. Until then the answers of flags name no interrupt: see graph.Runner.Resume.
	ownWords bool
	// reported: it has been said that another process owns the run.
	reported bool
	// text prints what models of agents say as it arrives; nil where nobody sees it.
	text *replyPrinter
}

func (a *app) drive(s *session, o driveOptions) *drive {
	d := &drive{driveOptions: o, app: a, session: s, caller: graph.Caller{Wait: graph.Wait{Limit: graph.NoWait}}}
	if o.wait != nil {
		d.deadline = a.now().Add(*o.wait)
	}
	if a.terminal != nil && !o.noStream {
		d.text = &replyPrinter{out: a.stderr, clean: s.oneLine, paint: a.paint, columns: a.terminal}
		d.caller.Wait.Progress = d.text.progress
	}
	return d
}

// from takes the answer of the call that began or continued the run, and drives on. What it returns decides the exit
// status; everything else has been printed.
func (d *drive) from(ctx context.Context, run *view.Run, err error) error {
	if err == nil {
		d.warn(run)
	}
	for {
		if err == nil {
			run, err = d.rest(ctx, run)
		}
		if err == nil && run.Status.Terminal() {
			return d.ended(ctx, run)
		}
		if err != nil || ctx.Err() != nil {
			return d.stopped(ctx, run, err)
		}
		next, found, answerErr := d.nextAnswer(ctx, run)
		switch {
		case answerErr != nil:
			err = answerErr
		case !found && d.goesOn(run):
			run, err = d.change(ctx, run)
		case !found:
			return d.paused(ctx, run)
		default:
			run, err = d.apply(ctx, run, next)
		}
	}
}

// warn prints what became of a call other than it asked for. What is missing has been said before.
func (d *drive) warn(run *view.Run) {
	for _, w := range run.Warnings {
		if w.Limit == 0 && w.Code != problem.ExecutorNotConfigured {
			d.session.view.settle(run)
			fmt.Fprintf(d.app.stderr, "%s %s (%s)\n", d.app.paint.wait("warning:"), w.Message, w.Code)
		}
	}
}

// rest waits until the run has ended, waits for a caller or for what no process performs, the time is over or ctx ends.
func (d *drive) rest(ctx context.Context, run *view.Run) (*view.Run, error) {
	left := d.left()
	if run.Status.Terminal() || awaited(run) != nil || left <= 0 || ctx.Err() != nil {
		return run, nil
	}
	d.session.view.follow()
	next, err := d.continueFor(ctx, run.ExecutionID, left)
	if d.text != nil {
		d.text.end()
	}
	if err != nil {
		return run, err
	}
	return next, nil
}

// continueFor continues a run for a time.
func (d *drive) continueFor(ctx context.Context, id string, limit time.Duration) (*view.Run, error) {
	req := graph.DriveRequest{ExecutionID: id, Caller: d.caller, StopAtTimer: d.leaveTimers, OwnedElsewhere: d.reportOwner}
	req.Wait.Limit = graph.WaitAtMost(limit).Limit
	return d.session.driver.Drive(ctx, req)
}

// reportOwner says once that another process owns a run.
func (d *drive) reportOwner(o graph.OwnedRun) {
	if d.reported {
		return
	}
	d.reported = true
	d.session.view.flush()
	fmt.Fprintf(d.app.stderr, "run %s is held by another process, until %s unless that process renews its lease; waiting to take it over\n",
		o.ExecutionID, timeText(d.app.now().Add(o.Owner.Left)))
}

// forever is the limit of calls that may take as long as they need.
const forever = 100 * 365 * 24 * time.Hour

// left is how long the command may still wait.
func (d *drive) left() time.Duration {
	if d.deadline.IsZero() {
		return forever
	}
	return d.deadline.Sub(d.app.now())
}

// goesOn reports whether a run that waits for somebody goes on elsewhere meanwhile: attempts of this process in other branches, and with
// --wait timers that are due by then.
func (d *drive) goesOn(run *view.Run) bool {
	left := d.left()
	return awaited(run) != nil && left > 0 && slices.ContainsFunc(run.Pending, func(p view.Pending) bool {
		switch p.Kind {
		case machine.WaitActivity, machine.WaitDelegate:
			return !p.Host && run.Lacks == nil
		case machine.WaitTimer, machine.WaitBackoff:
			return d.wait != nil && p.Due.Sub(d.app.now()) < left
		}
		return false
	})
}

// change waits until something happens to the run, or the time is over.
func (d *drive) change(ctx context.Context, run *view.Run) (*view.Run, error) {
	d.session.view.follow()
	wait := graph.WaitAtMost(min(d.left(), statusInterval))
	wait.Progress = d.caller.Wait.Progress
	return d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID, Since: run.Seq, Wait: &wait})
}

// awaited returns the first entry that a person, a host or another system has to end, nil if there is none.
func awaited(run *view.Run) *view.Pending {
	for i, p := range run.Pending {
		if p.NeedsInput() {
			return &run.Pending[i]
		}
	}
	return nil
}

// nextAnswer takes the next scripted answer, or asks the person at the terminal.
func (d *drive) nextAnswer(ctx context.Context, run *view.Run) (filled, bool, error) {
	p := awaited(run)
	if p == nil || p.Host {
		return filled{}, false, nil
	}
	if scripted, ok := d.answers.take(); ok {
		f := filled{signal: scripted.signal, payload: scripted.object}
		if d.ownWords {
			f.interruptID = interruptID(p)
		}
		return f, true, nil
	}
	if !d.app.interactive {
		return filled{}, false, nil
	}
	d.session.view.settle(run)
	return d.app.ask(ctx, p)
}

// filled is an answer ready to be given.
type filled struct {
	signal      string // "" for an interrupt
	signalKey   string
	interruptID string
	payload     map[string]any
	// asked is true if a person gave it, who can be asked again.
	asked bool
}

func interruptID(p *view.Pending) string {
	if p.Kind == machine.WaitInterrupt {
		return p.ID
	}
	return ""
}

// apply gives an answer to the run. A person whose answer is refused sees why and is asked again.
func (d *drive) apply(ctx context.Context, run *view.Run, f filled) (*view.Run, error) {
	var (
		next *view.Run
		err  error
	)
	d.session.view.follow()
	if f.signal != "" {
		next, err = d.session.engine.Signal(ctx, graph.SignalRequest{
			ExecutionID: run.ExecutionID, Name: f.signal, Payload: f.payload, IdempotencyKey: f.signalKey, Caller: d.caller,
		})
	} else {
		next, err = d.session.engine.Resume(ctx, graph.ResumeRequest{
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
	d.taken(next)
	return next, nil
}

// taken notes that the run has taken an answer of this command, or says that it had taken it before.
func (d *drive) taken(run *view.Run) {
	if run.Repeated {
		fmt.Fprintf(d.app.stderr, "%s this was answered before, in the same way; nothing was changed\n", d.app.paint.wait("repeated:"))
		return
	}
	d.ownWords = true
}

// ended prints the outcome of a run that has ended.
func (d *drive) ended(ctx context.Context, run *view.Run) error {
	d.session.view.settle(run)
	if len(d.answers) > 0 {
		fmt.Fprintf(d.app.stderr, "%s %s not needed\n", d.app.paint.wait("warning:"), count(len(d.answers), "answer"))
	}
	d.app.summarize(run)
	if run.Status == machine.Failed && d.session.config.Store != config.Memory {
		how, flags := "correct the cause, and try again from before the failure (with --state or --definition, if that is where it lies) by", []string(nil)
		if flag := limitFlags[problem.Code(run.ErrorCode)]; flag != "" {
			how, flags = "continue from before the limit, with a higher one for N, by", []string{flag, "N"}
		} else if stood, err := d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID}); err == nil && stood.GoesOn.After != "" {
			how = "correct the cause; its agent " + plainCell(stood.GoesOn.String()) + ", by"
		}
		if agentsteps.Spent(run.ErrorCode) {
			how, flags = strings.Replace(how, "correct the cause", "raise the agent's budget", 1), currentConfig
		}
		fmt.Fprintf(d.app.stderr, "  hint: it has ended; %s\n  %s\n", how, d.session.command("retry", run.ExecutionID, flags...))
		if strings.HasPrefix(run.ErrorCode, "AGENT_") && run.ErrorCode != string(problem.AgentConfigInvalid) {
			fmt.Fprintf(d.app.stderr, "  what the agent was told and did:\n  %s\n", shellword.Command([]string{program, "agent", "transcript"}, []string{run.ExecutionID}, d.session.sameStore...))
		}
	}
	if err := d.app.reportBelow(ctx, d.session, run, d.app.stderr); err != nil {
		return err
	}
	if d.json {
		if err := d.session.writeJSON(d.app.stdout, runjson.Full(run, envname.Options)); err != nil {
			return err
		}
	} else if run.Status == machine.Completed {
		if err := writeJSON(d.app.stdout, run.Result); err != nil {
			return err
		}
	}
	if run.Status != machine.Completed && (run.Status != machine.Cancelled || !d.cancelling) {
		return silent{exitFailed}
	}
	return nil
}

// paused says what a run waits for and which command continues it.
func (d *drive) paused(ctx context.Context, run *view.Run) error {
	d.session.view.settle(run)
	if run.Lacks != nil {
		if err := d.session.addRequiredFlags(ctx, run); err != nil {
			return err
		}
	}
	d.app.summarize(run)
	d.app.explainPause(run, d.session)
	if d.json {
		if err := d.session.writeJSON(d.app.stdout, runjson.Full(run, envname.Options)); err != nil {
			return err
		}
	}
	return silent{exitPaused}
}

// stopped ends the command before the run has come to rest. run is nil if there is none.
func (d *drive) stopped(ctx context.Context, run *view.Run, err error) error {
	d.session.view.settle(run)
	if run == nil || ctx.Err() == nil {
		return err
	}
	fmt.Fprintf(d.app.stderr, "\ninterrupted; everything that run %s has done is recorded\n", run.ExecutionID)
	if d.session.config.Store != config.Memory {
		d.ways(ctx, run.ExecutionID)
	}
	return silent{exitInterrupted}
}

// reading returns the line that calls another command that reads the run.
func (s *session) reading(name, id string, flags ...string) string {
	return shellword.Command([]string{program, name}, []string{id}, slices.Concat(flags, s.sameStore)...)
}

// lastLook bounds how long a command that was interrupted looks where its run stands.
const lastLook = 2 * time.Second

// ways prints the commands by which a run goes on after this one: those that end its waits, or else take it over.
func (d *drive) ways(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	commands, watch := []string{d.session.command("recover", id)}, d.session.command("watch", id)
	if run, err := d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err == nil && d.session.addRequiredFlags(ctx, run) == nil {
		commands[0] = d.session.command("recover", id)
		var ending []string
		for i := range run.Pending {
			if p := &run.Pending[i]; p.NeedsInput() && len(ending) < maxWays {
				ending = append(ending, d.session.continuation(run, p))
			}
		}
		if len(ending) > 0 {
			commands = ending
		}
	}
	fmt.Fprintf(d.app.stderr, "Continue with:\n  %s\nWatch it with:\n  %s\n", strings.Join(commands, "\n  "), watch)
}

// maxWays is how many waits are named with the command that ends each.
const maxWays = 5

// command returns the line that calls another command that drives the run. A flag among flags stands for one that this command was given.
func (s *session) command(name, id string, flags ...string) string {
	repeat := slices.Clone(s.repeat)
	for i := 0; i+1 < len(repeat); {
		if slices.Contains(flags, repeat[i]) {
			repeat = slices.Delete(repeat, i, i+2)
		} else {
			i += 2
		}
	}
	return shellword.Command([]string{program, name}, []string{id}, slices.Concat(flags, repeat)...)
}
