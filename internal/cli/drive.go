package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/fleet"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// driveOptions are the common options of commands that drive a run.
type driveOptions struct {
	// answers for the places where the run waits, used before a person is asked.
	answers answers
	// wait bounds the time until the run rests; nil is no limit.
	wait *time.Duration
	// json prints the status of the run instead of only its result.
	json bool
	// mode selects who performs activities from now on; "" keeps the run's mode.
	mode string
	// definition is the file of the run's definition, needed only for runs whose definition is not stored.
	definition string
	// noStream does not stream the answers of models to a terminal.
	noStream bool
}

// drive continues a run until it has ended or waits for input that is missing here.
type drive struct {
	driveOptions
	app      *app
	session  *session
	deadline time.Time
	// caller is passed to every call about the run. No call waits: rest does.
	caller graph.Caller
	// leaveTimers makes rest leave runs that wait for a time to a later command.
	leaveTimers bool
	// cancelling is set if the run was being rolled back for a cancel when the command started: it should end as cancelled.
	cancelling bool
	// rejected is the id of the wait whose last answer from the terminal the run rejected.
	rejected string
	// unanswered is the questionKey of the wait that a person has left open.
	unanswered string
	// ownWords is set if this command started or answered the run, so that its next question is new. Until then answers of
	// flags name no interrupt: see graph.Runner.Resume.
	ownWords bool
	// reported is set once the owner of the run has been reported.
	reported bool
	// text streams the answers of models; nil without a terminal.
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

// from takes the result of the call that started or continued the run, and drives on. Its error decides the exit status; everything else
// is printed.
func (d *drive) from(ctx context.Context, run *view.Run, err error) error {
	if err == nil {
		if d.session.elsewhere {
			d.session.view.record(graph.RecordEvent{ExecutionID: run.ExecutionID}) // the run to show
		}
		d.warn(run)
	}
	finished := false // the branches beside the current questions
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
		case !found && !finished && awaited(run) != nil:
			finished, d.unanswered = true, questionKey(awaited(run))
			run, err = d.finishBranches(ctx, run)
		case !found:
			return d.paused(ctx, run)
		default:
			finished = false
			run, err = d.apply(ctx, run, next)
		}
	}
}

// warn prints the warnings of a call. Missing executors have been reported before.
func (d *drive) warn(run *view.Run) {
	for _, w := range run.Warnings {
		if w.Limit == 0 && w.Code != problem.ExecutorNotConfigured {
			d.session.view.settle(run)
			d.app.say("%s %s (%s)\n", d.app.paint.wait("warning:"), w.Message, w.Code)
		}
	}
}

// rest waits until the run has ended or waits for a caller or a missing executor, the time limit has passed, or ctx ends.
func (d *drive) rest(ctx context.Context, run *view.Run) (*view.Run, error) {
	if awaited(run) != nil {
		return run, nil
	}
	return d.further(ctx, run, graph.DriveRequest{StopAtTimer: d.leaveTimers})
}

// finishBranches continues the other branches and subworkflows of a run that waits for an input: those of this process and those that an ended
// process has left. Timers count only with --wait.
func (d *drive) finishBranches(ctx context.Context, run *view.Run) (*view.Run, error) {
	return d.further(ctx, run, graph.DriveRequest{StopAtTimer: d.leaveTimers || d.wait == nil, FinishBranches: true})
}

// further continues a run, unless it has ended or the command must end.
func (d *drive) further(ctx context.Context, run *view.Run, req graph.DriveRequest) (*view.Run, error) {
	left := d.left()
	if run.Status.Terminal() || left <= 0 || ctx.Err() != nil {
		return run, nil
	}
	if !req.FinishBranches || len(run.Pending) > 1 { // a question alone stays as it was shown
		d.session.view.follow()
	}
	next, err := d.continueFor(ctx, run.ExecutionID, left, req)
	if d.text != nil {
		d.text.end()
	}
	if err != nil {
		return run, err
	}
	return next, nil
}

// continueFor continues a run for a time.
func (d *drive) continueFor(ctx context.Context, id string, limit time.Duration, req graph.DriveRequest) (*view.Run, error) {
	req.ExecutionID, req.Caller, req.OwnedElsewhere = id, d.caller, func(o graph.OwnedRun) { d.reportOwner(ctx, o) }
	req.Wait.Limit = graph.WaitAtMost(limit).Limit
	return d.session.driver.Drive(ctx, req)
}

// reportOwner reports once that another process owns a run.
func (d *drive) reportOwner(ctx context.Context, o graph.OwnedRun) {
	if d.reported {
		return
	}
	d.reported = true
	owner := "another process"
	if f, err := d.session.fleet(ctx); err == nil && f.NameOf(o.Owner.Process) != o.Owner.Process {
		owner += " (" + f.NameOf(o.Owner.Process) + ")"
	}
	d.session.view.flush()
	d.app.say("run %s is owned by %s, until %s unless it renews its lease; waiting to claim it\n",
		o.ExecutionID, owner, timeText(d.app.now().Add(o.Owner.Left)))
}

// forever is the limit of calls that may take as long as they need.
const forever = 100 * 365 * 24 * time.Hour

// left returns how long the command may still wait.
func (d *drive) left() time.Duration {
	if d.deadline.IsZero() {
		return forever
	}
	return d.deadline.Sub(d.app.now())
}

// change waits until the run changes, or a time limit has passed: that of the command or limit.
func (d *drive) change(ctx context.Context, run *view.Run, limit time.Duration) (*view.Run, error) {
	d.session.view.follow()
	wait := graph.WaitAtMost(min(d.left(), limit))
	wait.Progress = d.caller.Wait.Progress
	return d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID, Since: run.Seq, Wait: &wait})
}

// awaited returns the first entry that a person, a host or another system must end; nil without one.
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
	if !d.app.interactive || questionKey(p) == d.unanswered {
		return filled{}, false, nil
	}
	again := p.ID != "" && p.ID == d.rejected
	if d.rejected = ""; !again {
		d.session.view.settle(run)
	}
	return d.app.ask(ctx, p, again)
}

// questionKey identifies what a run waits for.
func questionKey(p *view.Pending) string { return p.ExecutionID + "\n" + p.NodeID + "\n" + p.ID }

// filled is a complete answer.
type filled struct {
	signal      string // "" for an interrupt
	signalKey   string
	interruptID string
	payload     map[string]any
	// asked is true if a person at the terminal gave it; they can be asked again.
	asked bool
}

func interruptID(p *view.Pending) string {
	if p.Kind == machine.WaitInterrupt {
		return p.ID
	}
	return ""
}

// apply gives an answer to the run. A person whose answer is rejected sees the error alone, and is asked again.
func (d *drive) apply(ctx context.Context, run *view.Run, f filled) (*view.Run, error) {
	var (
		next *view.Run
		err  error
	)
	if f.signal != "" {
		next, err = d.session.engine.Signal(ctx, graph.SignalRequest{
			ExecutionID: run.ExecutionID, Name: f.signal, Payload: f.payload, IdempotencyKey: f.signalKey, Caller: d.caller,
		})
	} else {
		next, err = d.session.resume(ctx, graph.ResumeRequest{
			ExecutionID: run.ExecutionID, InterruptID: f.interruptID, Payload: f.payload, Caller: d.caller,
		})
	}
	refused := errors.Is(err, problem.InvalidResumePayload) || errors.Is(err, problem.SignalValidationError)
	if f.asked && refused {
		e, _ := problem.As(err)
		shown := *e
		shown.At, shown.Hint = problem.Place{}, ""
		d.app.printError(&shown)
		d.rejected = cmp.Or(f.interruptID, f.signalKey)
		return run, nil
	}
	if err != nil {
		return run, err
	}
	d.session.view.follow()
	d.taken(next)
	return next, nil
}

// taken notes that the run accepted an answer of this command, and reports a repeated answer.
func (d *drive) taken(run *view.Run) {
	if run.Repeated {
		d.app.say("%s the same answer was given before; nothing changed\n", d.app.paint.wait("repeated:"))
		return
	}
	d.ownWords = true
}

// ended prints the outcome of a run that has ended.
func (d *drive) ended(ctx context.Context, run *view.Run) error {
	d.session.view.settle(run)
	if len(d.answers) > 0 {
		d.app.say("%s %s not needed\n", d.app.paint.wait("warning:"), count(len(d.answers), "answer"))
	}
	d.app.summarize(run)
	if run.Status == machine.Failed && d.session.config.Store != config.Memory && !d.session.elsewhere {
		how, flags := "correct the cause, then retry from before the failure (with --state or --definition to change them):", []string(nil)
		if flag := limitFlags[problem.Code(run.ErrorCode)]; flag != "" {
			how, flags = "continue with a higher limit N:", []string{flag, "N"}
		} else if stood, err := d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: run.ExecutionID}); err == nil && stood.GoesOn.After != "" {
			how = "correct the cause; its agent " + plainCell(stood.GoesOn.String()) + ":"
		}
		if agentsteps.Spent(run.ErrorCode) {
			how, flags = strings.Replace(how, "correct the cause", "raise the agent's budget", 1), currentConfig
		}
		d.app.say("  hint: %s\n  %s\n", how, d.session.command("retry", run.ExecutionID, flags...))
		if strings.HasPrefix(run.ErrorCode, "AGENT_") && run.ErrorCode != string(problem.AgentConfigInvalid) {
			d.app.say("  conversation of the agent:\n  %s\n", shellword.Command([]string{program, "agent", "transcript"}, []string{run.ExecutionID}, d.session.sameStore...))
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

// paused prints the wait of a run, and the command that continues it.
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

// registerDetach adds the flag --detach.
func registerDetach(cmd *cobra.Command, detach *bool) {
	cmd.Flags().BoolVar(detach, "detach", false, "start the run, print its id, and let workers perform it")
	cmd.PreRunE = exclusive("detach", "wait")
}

// detached prints the id of a run that workers perform.
func (d *drive) detached(run *view.Run) error {
	d.session.view.settle(run)
	d.warn(run)
	waits := ""
	if r := run.Ready; r != nil {
		waits = "; it waits for " + fleet.ReadyText(r)
	}
	d.app.say("run %s has started%s. Watch it with:\n  %s\n", run.ExecutionID, waits, d.session.reading("watch", run.ExecutionID))
	if d.json {
		return d.session.writeJSON(d.app.stdout, runjson.Full(run, envname.Options))
	}
	_, err := fmt.Fprintln(d.app.human, run.ExecutionID)
	return err
}

// stopped reports the run after an interrupt. run is nil if it does not exist yet.
func (d *drive) stopped(ctx context.Context, run *view.Run, err error) error {
	d.session.view.settle(run)
	if run == nil || ctx.Err() == nil {
		return err
	}
	d.app.say("\ninterrupted; all steps of run %s are recorded\n", run.ExecutionID)
	if d.session.config.Store != config.Memory {
		d.printNextCommands(ctx, run.ExecutionID)
	}
	return silent{exitInterrupted}
}

// reading returns the command line of a command that reads the run.
func (s *session) reading(name, id string, flags ...string) string {
	return shellword.Command([]string{program, name}, []string{id}, slices.Concat(flags, s.sameStore)...)
}

// lastLook bounds the final status read of an interrupted command.
const lastLook = 2 * time.Second

// printNextCommands prints the commands that end the waits of a run, or else the one that recovers it.
func (d *drive) printNextCommands(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
	defer cancel()
	commands, watch := []string{d.session.goesOn(id)}, d.session.command("watch", id)
	if run, err := d.session.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err == nil && d.session.addRequiredFlags(ctx, run) == nil {
		commands[0] = d.session.goesOn(id)
		var ending []string
		for i := range run.Pending {
			if p := &run.Pending[i]; p.NeedsInput() && len(ending) < maxNextCommands {
				ending = append(ending, d.session.continuation(run, p))
			}
		}
		if len(ending) > 0 {
			commands = ending
		}
	}
	if commands[0] == watch {
		d.app.say("Watch it with:\n  %s\n", watch)
		return
	}
	d.app.say("Continue with:\n  %s\nWatch it with:\n  %s\n", strings.Join(commands, "\n  "), watch)
}

// maxNextCommands limits the waits whose command is printed.
const maxNextCommands = 5

// command returns the command line of a command that drives the run. A flag in flags replaces the same flag of this command.
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

// goesOn returns the command line that continues a run, or watches it where workers continue it.
func (s *session) goesOn(id string) string {
	if s.elsewhere {
		return s.command("watch", id)
	}
	return s.command("recover", id)
}

// registerContinue adds the flags of all commands that drive a stored run.
func registerContinue(set *pflag.FlagSet, o *driveOptions, folder *string) {
	config.RegisterWorkflowDir(set, folder, "none")
	set.StringVar(&o.definition, flagDefinition, "", "`file` of the run's definition, if it is not stored or must be signed")
	registerDrive(set, o)
}

// registerDrive adds the flags of all commands that drive a run.
func registerDrive(set *pflag.FlagSet, o *driveOptions) {
	o.answers.register(set)
	set.StringVar(&o.mode, flagMode, "", "`mode` of activities: in_process (executors of this process) or host_mediated (callers submit outcomes)")
	registerWait(set, &o.wait)
	set.BoolVar(&o.json, "json", false, "print the status of the run as JSON")
	registerStream(set, o)
}

// registerStream adds the flag that turns off printing the answers of models as they arrive.
func registerStream(set *pflag.FlagSet, o *driveOptions) {
	set.BoolVar(&o.noStream, "no-stream", false, "do not stream the answers of models to a terminal")
}

// registerWait adds the flag that bounds how long a command waits for a run. Without the flag the limit stays nil.
func registerWait(set *pflag.FlagSet, limit **time.Duration) {
	help := "stop waiting after this `time`, as in 30s; recover continues the run; 0 for no wait (default: no limit)"
	set.Func("wait", help, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("write a time with its unit, as in 500ms, 30s or 2m, or 0 for no wait")
		}
		*limit = &d
		return nil
	})
}

// continued opens a session, makes one call that continues a run, and drives the run on. answers is set if the call answers a wait
// of the run.
func (a *app) continued(
	ctx context.Context, id, folder string, o driveOptions, answers bool, call func(*session, graph.Caller) (*view.Run, error),
) error {
	caller, err := a.caller(o)
	if err != nil {
		return err
	}
	return a.with(ctx, sessionOptions{display: showTree, drives: true, shown: id, folder: folder}, func(s *session) error {
		if o.definition != "" {
			s.repeat = append(s.repeat, "--"+flagDefinition, o.definition)
		}
		d := a.drive(s, o)
		d.caller.Mode, d.caller.Definition = caller.Mode, caller.Definition
		stored, err := s.store.Execution(ctx, id)
		if err != nil {
			return err // before the call, which may return another code
		}
		if before, err := s.engine.Status(ctx, graph.StatusRequest{ExecutionID: id}); err == nil { // the call has the same error
			// A subworkflow whose parent was cancelled may end already while its status is read.
			d.cancelling = before.Status == machine.Cancelled && !stored.Phase.Terminal() ||
				slices.ContainsFunc(before.Rollbacks, func(p machine.RollbackProgress) bool { return p.Reason == machine.RollbackCancel })
		}
		run, err := call(s, d.caller)
		if err == nil && answers {
			d.taken(run)
		}
		return explainDefinition(d.from(ctx, run, err))
	})
}

// caller reads the flags about the run, before anything is changed.
func (a *app) caller(o driveOptions) (caller graph.Caller, err error) {
	if caller.Mode, err = parseMode(o.mode); err != nil {
		return caller, err
	}
	if caller.Definition, err = a.readDefinition(o.definition); err != nil {
		return caller, err
	}
	return caller, o.answers.read(a)
}

const (
	flagDefinition = "definition"
	flagMode       = "mode"
	// flagAgentConfig is a flag of retry, with its values.
	flagAgentConfig = "agent-config"
	configRecorded  = "recorded"
	configCurrent   = "current"
)

func parseMode(text string) (machine.Mode, error) {
	switch mode := machine.Mode(text); mode {
	case "", machine.InProcess, machine.HostMediated:
		return mode, nil
	}
	return "", usage("invalid value %q for --mode", text).
		WithHint("Write %s or %s.", machine.InProcess, machine.HostMediated)
}

// limitFlags are the flags that set the limits which a run can fail at.
var limitFlags = map[problem.Code]string{
	problem.StepBudgetExceeded: "--max-visits", problem.RecordLimitExceeded: "--max-records",
	problem.ByteLimitExceeded: "--max-bytes", problem.PendingLimitExceeded: "--max-pending",
}

// summarize prints in one line how a run ended, or its phase.
func (a *app) summarize(run *view.Run) {
	took := timeline.Elapsed(run.UpdatedAt.Sub(run.CreatedAt))
	switch run.Status {
	case machine.Completed:
		a.say("%s run %s in %s\n", a.paint.good("completed"), run.ExecutionID, took)
	case machine.Failed:
		code := run.ErrorCode
		if code != "" {
			code = " " + code
		}
		a.say("%s%s run %s: %s\n", a.paint.bad("failed"), code, run.ExecutionID, run.Error)
		if run.ErrorNodeID != "" {
			a.say("  at: node %s\n", plainCell(run.ErrorNodeID))
		}
		if run.ErrorData != nil {
			a.say("  data: %s\n", errorData(run))
		}
		a.summarizeRollback(run)
	case machine.Cancelled:
		reason := run.Reason
		if reason != "" {
			reason = ": " + reason
		}
		a.say("%s run %s%s\n", a.paint.wait("cancelled"), run.ExecutionID, reason)
		a.summarizeRollback(run)
	case machine.Running:
		a.say("%s run %s\n", a.paint.wait("still running:"), run.ExecutionID)
	default:
		phase := runjson.Phase(run.Status)
		if phase == history.PhaseRunning { // it waits for a timer
			a.say("%s run %s\n", a.paint.wait("paused"), run.ExecutionID)
			return
		}
		a.say("%s run %s (%s)\n", a.paint.wait("paused"), run.ExecutionID, phase)
	}
}

// maxErrorData bounds the shown data of a failure.
const maxErrorData = 1 << 10

// errorData returns the data of a failure as text, "" without any.
func errorData(run *view.Run) string {
	if run.ErrorData == nil {
		return ""
	}
	return plainCell(problem.Clip(string(jsonvalue.Canonical(history.RedactValue(run.ErrorData))), maxErrorData))
}

// summarizeRollback prints that the run was rolled back before it ended, if it was.
func (a *app) summarizeRollback(run *view.Run) {
	if run.Compensated > 0 {
		a.say("  rollback: %s\n", rolledBackText(run))
	}
}

// explainPause prints the wait of a run, and the command that ends it, ready to be pasted.
func (a *app) explainPause(run *view.Run, s *session) {
	p := awaited(run)
	if p == nil {
		a.explainTime(run, s)
		return
	}
	switch p.Kind {
	case machine.WaitInterrupt:
		a.describeInterrupt(p)
	case machine.WaitSignal:
		a.say("  %s waits for the signal %q\n  %s\n", plainCell(p.NodeID), p.SignalName, payloadText)
	default:
		a.say("  %s (%s) waits for the host\n", waiterText(p), p.NodeType)
	}
	if !p.Deadline.IsZero() {
		a.say("  %s\n", deadlineText(p, a.now()))
	}
	if run.Lacks != nil {
		a.say("  %s\n", lackText(run.Lacks, s.config.Located))
	}
	if s.config.Store == config.Memory {
		a.say("  the run was in memory and is lost; use --store sqlite, or pass --resume and --signal to run\n")
		return
	}
	a.say("continue with:\n  %s\n", s.continuation(run, p))
}

// payloadText explains JSON in the command that sends a signal: no example fits every workflow.
const payloadText = "replace JSON with the payload, {} for none: it is merged into the state"

// waiterText names the node of a wait, and the item of a map.
func waiterText(p *view.Pending) string {
	if p.Items == 0 {
		return plainCell(p.NodeID)
	}
	return fmt.Sprintf("%s, item %d of %d", plainCell(p.NodeID), p.Item+1, p.Items)
}

// explainTime is explainPause for a run that continues by itself or in a process with its executors.
func (a *app) explainTime(run *view.Run, s *session) {
	if run.Lacks != nil {
		a.say("  %s\n", lackText(run.Lacks, s.config.Located))
	}
	for _, p := range run.Pending {
		if !p.Due.IsZero() {
			a.say("  %s waits until %s\n", plainCell(p.NodeID), p.Due.UTC().Format(time.RFC3339))
			break
		}
	}
	if r := run.Ready; r != nil {
		a.say("  waits for %s\n", fleet.ReadyText(r))
		if r.Workers > 0 {
			return
		}
	}
	a.say("%scontinue with:\n  %s\n", s.before(run.Lacks), s.goesOn(run.ExecutionID))
}

// before returns the words before "continue with": what must be configured first, for the command alone makes no progress.
func (s *session) before(l *view.Lack) string {
	if l == nil || s.elsewhere {
		return ""
	}
	switch setting := commandHint(l.Setting, ""); {
	case strings.HasPrefix(setting, "--"): // the command has the flag
		return ""
	case setting == "":
		return "in a process that has it, "
	case l.Partial:
		return "once it is added, "
	default:
		return "once " + setting + " is set, "
	}
}

// nextDue returns the first time that a run waits for; zero without one.
func nextDue(run *view.Run) (first time.Time) {
	for _, p := range run.Pending {
		if !p.Due.IsZero() && (first.IsZero() || p.Due.Before(first)) {
			first = p.Due
		}
	}
	return first
}

// lackText names the missing executor of a run, and the process that continues it. located names a setting of this process with its file.
func lackText(l *view.Lack, located func(setting string) string) string {
	if l.Host {
		return fmt.Sprintf("node %s may follow and needs %s, which this command lacks: another process performs it%s, or a host with --mode host_mediated",
			plainCell(l.NodeID), l.Missing, settingText(l, located))
	}
	at := ""
	if l.NodeID != "" {
		at = "node " + plainCell(l.NodeID) + ": "
	}
	trial := ""
	if !l.Partial && strings.HasPrefix(l.Missing, "an executor ") {
		trial = "; for a trial, --profile demo answers with demo_output"
	}
	return fmt.Sprintf("%sthis command lacks %s: a process that has it continues the run%s%s", at, l.Missing, settingText(l, located), trial)
}

// settingText names a process with the missing executor, or the setting to add it to; "" if its setting is not known.
func settingText(l *view.Lack, located func(setting string) string) string {
	switch {
	case l.Setting == "":
		return ""
	case l.Partial:
		return "; add it to " + located(commandHint(l.Setting, "")) + " here, or of a worker"
	}
	return ", such as " + program + " worker with " + commandHint(l.Setting, "")
}

// maxShown bounds the data shown with a question, in bytes.
const maxShown = 8 << 10

// shownText returns the data shown with a question, without terminal controls. In the state, values that look like secrets are masked.
func shownText(p *view.Pending) string {
	shown := *p
	shown.State, _ = history.DefaultRedaction().Value(p.State).(map[string]any)
	return jsonvalue.Plain(shown.Shown(maxShown))
}

// shows reports whether a question, other than an agent's, has data to show.
func shows(p *view.Pending) bool { return !agentsteps.AsksPerson(p.Show) && p.Shown(1) != "" }

func indented(text, by string) string { return by + strings.ReplaceAll(text, "\n", "\n"+by) }

func (a *app) describeInterrupt(p *view.Pending) {
	prompt := p.Prompt
	if prompt == "" {
		prompt = p.PromptRef
	}
	a.say("  %s asks: %s\n", plainCell(p.NodeID), promptText(prompt))
	if calls := agentsteps.Approval(p.Show); calls != nil {
		writeCalls(a.stderr, calls, "    ")
		return
	}
	if shows(p) {
		a.say("%s\n", indented(shownText(p), "    "))
	}
	if rows := describeFields(p.ResumeSchema); len(rows) > 0 && !takesWords(p) {
		// A failed write to standard error cannot be reported.
		_ = writeTable(a.stderr, foldedRows(rows, a.terminalColumns()))
	}
}

// promptText returns a question with the lines after the first indented, so that they are not mistaken for other output.
func promptText(prompt string) string {
	var lines []string
	for line := range strings.Lines(prompt) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n    ")
}

// continuation returns the command line that ends one wait, with an example of the answer if one is needed.
func (s *session) continuation(run *view.Run, p *view.Pending) string {
	name, operands := "submit", []string{run.ExecutionID, p.NodeID}
	var flags []string
	switch p.Kind {
	case machine.WaitInterrupt:
		// With the id, a repeated command answers only this question.
		name, operands, flags = "resume", operands[:1], []string{"--payload", example(p.ResumeSchema)}
		if p.ID != "" {
			flags = append(flags, "--interrupt", p.ID)
		}
	case machine.WaitSignal:
		name, operands[1], flags = "signal", p.SignalName, []string{"--payload", "JSON"}
		if p.ID != "" {
			flags = append(flags, "--idempotency-key", p.ID)
		}
	default:
		if p.Span != nil {
			flags = append(flags, "--branch", p.Span.BranchName)
		}
		if p.Items > 0 {
			flags = append(flags, "--idempotency-key", p.IdempotencyKey) // it names the item
		}
		schema, _ := p.OutputSchema.(map[string]any)
		flags = append(flags, "--result", example(schema))
	}
	return shellword.Command([]string{program, name}, operands, slices.Concat(flags, s.repeat)...)
}

func example(schema map[string]any) string { return string(jsonvalue.Canonical(form.Example(schema))) }
