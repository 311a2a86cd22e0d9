package cli

import (
	"context"
	"errors"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The exit statuses, all that there are.
const (
	exitOK = 0
	// exitFailed: a document was refused, a run failed or was cancelled, a call was refused, something was not found.
	exitFailed = 1
	// exitUsage: wrong arguments, flags or settings, or input that cannot be read.
	exitUsage = 2
	// exitPaused: the run is alive and waits for an answer, a signal, a host or a time.
	exitPaused = 3
	// exitInterrupted: Ctrl-C or SIGTERM ended the command; recover continues the run.
	exitInterrupted = 130
)

const exitHelp = `Exit status: 0 done; 1 refused, failed or not found; 2 wrong usage or unreadable input;
3 the run is paused and waits; 130 interrupted by a signal.`

// silent ends a command with a status whose reason has been printed already.
type silent struct{ status int }

func (s silent) Error() string { return "" }

// status returns the exit status for what a command returned.
func status(err error) int {
	if err == nil {
		return exitOK
	}
	if s, ok := errors.AsType[silent](err); ok {
		return s.status
	}
	switch {
	case errors.Is(err, problem.UsageError):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

// usage is the error of a wrong argument or flag.
func usage(format string, args ...any) *problem.Error {
	return problem.New(problem.UsageError, format, args...)
}
