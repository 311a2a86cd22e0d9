package stepcommand

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// attempt is one run of a program.
type attempt struct {
	Command
	handler string
	config  *Config
	secret  childprocess.Scrubber
}

// printed is the standard output of a program. The text has at most one byte more than the limit.
type printed struct {
	text []byte
	err  error
}

// run starts the program and returns when all its processes have ended.
func (a *attempt) run(ctx context.Context, req activities.Request) (activities.Result, error) {
	if ctx.Err() != nil {
		return activities.Result{}, a.interrupted(ctx)
	}
	env, secrets, err := childprocess.Resolve(a.Env, a.config.Secret)
	if err != nil {
		return activities.Result{}, a.notStarted(err)
	}
	a.secret = childprocess.NewScrubber(secrets)
	log := a.config.Logger.With(logHandler, a.handler, logRun, req.ExecutionID, logNode, req.NodeID)
	var sign func()
	if req.Silence > 0 {
		sign = func() { req.Heartbeat(nil) }
	}
	process, err := childprocess.Start(
		childprocess.Program{
			Command: a.Command.Command, Args: a.Args, Directory: a.Directory,
			Environment: childprocess.Environment(a.config.Environ, env), Sign: sign,
		},
		&childprocess.Tail{
			Secret: a.secret, Allowance: childprocess.Allowance{Bytes: a.config.MaxLogBytes},
			Line: func(line string) { log.Info("step command prints", logLine, line) },
		}, nil)
	if err != nil {
		return activities.Result{}, a.notStarted(err)
	}
	return a.attend(ctx, process, document(ctx, a.handler, req))
}

// attend writes the input and waits for the process to end; it ends it on cancellation or too much output.
func (a *attempt) attend(ctx context.Context, process *childprocess.Process, input []byte) (activities.Result, error) {
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = process.Stdin.Write(input) // a program need not read what it is given
		_ = process.Stdin.Close()
	}()
	output, exceeded := make(chan printed, 1), make(chan struct{})
	go func() {
		text, err := io.ReadAll(io.LimitReader(process.Stdout, int64(a.MaxOutputBytes)+1))
		if len(text) > a.MaxOutputBytes {
			close(exceeded)
		}
		output <- printed{text, err}
	}()

	var failure *activities.Failure
	select {
	case <-process.Exited():
	case <-exceeded:
		process.Kill()
	case <-ctx.Done():
		select {
		case <-process.Exited(): // just in time
		default:
			failure = a.interrupted(ctx)
			process.End(a.config.StopGrace)
		}
	}
	<-process.Exited()
	_ = process.Stdin.Close() // a process outside the group may hold the other end
	<-fed
	out := <-output
	_ = process.Stdout.Close()

	switch {
	case failure != nil:
		if failure.Code == string(problem.Timeout) {
			failure.Message += a.onStderr(process)
		}
		return activities.Result{}, failure
	case len(out.text) > a.MaxOutputBytes:
		failure = activities.Fail(problem.ActivityOutputTooLarge, "step command %q printed more than %d bytes", a.handler, a.MaxOutputBytes)
		failure.Retryable = activities.RetryPointless
		return activities.Result{}, failure
	}
	return a.result(process, out)
}

// result returns the result of a program that has ended.
func (a *attempt) result(process *childprocess.Process, out printed) (activities.Result, error) {
	answer, fault := parse(out.text)
	switch {
	case fault == "" && answer.failure != nil:
		return activities.Result{}, a.scrubbed(answer.failure)
	case !process.Succeeded():
		failure := activities.Fail(problem.StepCommandFailed, "step command %q ended with %s%s", a.handler, process.State(), a.onStderr(process))
		if text := cut(a.secret.Scrub(string(out.text)), 500); text != "" {
			failure.Message += "; on standard output it printed: " + text
		}
		return activities.Result{}, failure
	case out.err != nil && len(out.text) == 0:
		// A process outside the group holds standard output open. A complete document counts all the same.
		fault = "it could not be read: " + out.err.Error()
	}
	if fault != "" {
		return activities.Result{}, activities.Fail(problem.ActivityOutputInvalid,
			"the answer of step command %q is invalid: %s; write one JSON document {\"output\": …} or {\"error\": \"…\"} to standard output%s",
			a.handler, fault, a.onStderr(process))
	}
	return activities.Result{Output: answer.output, Usage: answer.usage}, nil
}

// scrubbed returns a reported failure without secrets. They are masked before the text is cut, so that the cut leaves no
// part of one; a code that holds one is replaced.
func (a *attempt) scrubbed(failure *activities.Failure) *activities.Failure {
	failure.Message = cut(a.secret.Scrub(failure.Message), maxErrorText)
	if a.secret.ScrubOutput(failure.Code) != failure.Code || slices.Contains(a.secret, failure.Code) {
		failure.Code = string(problem.HandlerError)
	}
	return failure
}

func (a *attempt) interrupted(ctx context.Context) *activities.Failure {
	return activities.Interrupted(ctx, problem.Timeout, fmt.Sprintf("step command %q", a.handler))
}

func (a *attempt) notStarted(err error) error {
	return activities.Fail(problem.StepCommandNotStarted, "step command %q cannot be started: %v", a.handler, err)
}

// onStderr quotes standard error, as the end of a sentence.
func (a *attempt) onStderr(process *childprocess.Process) string {
	if text := process.Stderr.String(); text != "" {
		return "; on standard error it printed: " + text
	}
	return ""
}
