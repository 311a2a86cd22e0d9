// Package cli is the command line: cobra commands that read flags and files, call the engine once or a few times, and
// print. Each command has one file, with a cobra part and a work function that does not depend on cobra.
//
// Only the result of a command goes to standard output; progress and errors
// go to standard error. The exit statuses are below.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
)

// app holds the streams and settings of all commands.
type app struct {
	// ctx ends when the command is interrupted. Reads of stdin and of files on the command line end then, too.
	ctx   context.Context
	stdin io.Reader
	// stdout receives JSON and other exact text; text for people goes to human, which is stdout, too, or to stderr.
	stdout, human, stderr io.Writer
	env                   config.Environment
	flags                 *config.Flags
	now                   func() time.Time
	// newEngine makes an engine over a store; nil makes a graph.Runner.
	newEngine func(history.Store, graph.Options) (graph.Engine, error)
	// backend is set for a program whose runs are in no store.
	backend *Backend
	// paint colours text on stderr, or leaves it as it is.
	paint palette
	// screen keeps a tree at the end of stderr; nil if stderr is no terminal, or one that cannot.
	screen *screen
	// columns is the width of stdout, 0 if it is not a terminal.
	columns func() int
	// terminalOut is stdout if that is a terminal.
	terminalOut *os.File
	// terminal returns the width of stderr; nil if it is not a terminal.
	terminal func() int
	// interactive is true if stdin and stderr are a terminal.
	interactive bool
	// database is the file that a session has opened, "" without one.
	database string
	// lines reads stdin line by line once a person is asked.
	lines *bufio.Reader
	// standardLog receives the logger for lines of package log, which net/http uses; nil changes nothing.
	standardLog func(*slog.Logger)
	// browse opens an address in the browser; nil opens nothing.
	browse func(address string) error
}

// logger returns the logger of a command.
func (a *app) logger(c *config.Config) *slog.Logger {
	log := c.Logger(a.stderr)
	if a.standardLog != nil {
		a.standardLog(log)
	}
	return log
}

// Main runs one command and returns the exit status. The arguments are those after the program's name. A cancelled ctx
// stops the command in order.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return start(ctx, nil, args, stdin, stdout, stderr)
}

// start runs one command over a Backend, or over stores without one.
func start(ctx context.Context, b *Backend, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{backend: b, stdin: stdin, stdout: stdout, stderr: stderr, env: config.System(), now: time.Now, browse: openBrowser}
	if stderr == io.Writer(os.Stderr) { // otherwise the process and its log belong to an embedder
		a.standardLog = slog.SetDefault
	}
	a.paint = newPalette(isTerminal(stderr), a.env)
	if a.screen = newScreen(stderr, a.env); a.screen != nil {
		a.stderr = a.screen
	}
	if isTerminal(stderr) {
		a.terminal = func() int {
			columns, _, ok := terminalSize(stderr.(*os.File))
			if !ok || columns < smallestColumns {
				return usualColumns
			}
			return columns
		}
	}
	a.interactive = isTerminal(stdin) && isTerminal(stderr)
	if isTerminal(stdout) {
		a.terminalOut = stdout.(*os.File)
	}
	a.columns = func() int {
		if a.terminalOut == nil {
			return 0
		}
		columns, _, _ := terminalSize(a.terminalOut)
		return columns
	}
	return a.execute(graph.WithActor(ctx, person()), args)
}

// person returns the user who runs this program, by name, or by number without a name.
func person() history.Actor {
	a := history.Actor{Via: "command", Name: fmt.Sprintf("uid %d", os.Getuid())}
	if u, err := user.Current(); err == nil && u.Username != "" {
		a.Name = u.Username
	}
	return a
}

// terminalColumns returns the width of stderr, 0 if it is not a terminal.
func (a *app) terminalColumns() int {
	if a.terminal == nil {
		return 0
	}
	return a.terminal()
}

// say prints a text for people on stderr, wrapped at blanks to the width of the terminal.
func (a *app) say(format string, values ...any) {
	// A failed write to standard error cannot be reported.
	_, _ = io.WriteString(a.stderr, wrapped(fmt.Sprintf(format, values...), a.terminalColumns()))
}

// execute runs one command, prints its error and returns the exit status.
func (a *app) execute(ctx context.Context, args []string) int {
	ctx = arrival.With(ctx, arrival.At(time.Now()))
	a.ctx, a.stdin = ctx, &interruptible{ctx: ctx, from: a.stdin}
	out := &output{out: a.stdout}
	a.stdout, a.human, a.stderr = out, &plainWriter{out: out}, &plainWriter{out: a.stderr}
	if a.columns == nil {
		a.columns = func() int { return 0 }
	}
	root := newRoot(a)
	root.SetArgs(args)
	err := out.verdict(root.ExecuteContext(ctx))
	a.printError(err)
	return status(err)
}

// The exit statuses.
const (
	exitOK = 0
	// exitFailed: a document or a call was rejected, a run failed or was cancelled, or an id was not found.
	exitFailed = 1
	// exitUsage: wrong arguments, flags or settings, or input that cannot be read.
	exitUsage = 2
	// exitPaused: the run is alive and waits for an answer, a signal, a host or a time.
	exitPaused = 3
	// exitInterrupted: Ctrl-C or SIGTERM ended the command; recover continues the run.
	exitInterrupted = 130
)

const exitHelp = `Exit status: 0 done; 1 rejected, failed or not found; 2 wrong usage or unreadable input;
3 the run is paused and waits; 130 interrupted by a signal.`

// silent ends a command with a status whose error is already printed.
type silent struct{ status int }

func (s silent) Error() string { return "" }

// status returns the exit status for a command's error.
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

// usage returns the error for an invalid argument or flag.
func usage(format string, args ...any) *problem.Error {
	return problem.New(problem.UsageError, format, args...)
}

// printError prints the error of a command: code, message, place and hint.
func (a *app) printError(err error) {
	if err == nil {
		return
	}
	if _, said := errors.AsType[silent](err); said {
		return
	}
	e, ok := errors.AsType[*problem.Error](err)
	switch {
	case ok:
		var store []string
		if a.flags != nil {
			store = a.flags.GivenStore()
		}
		var text strings.Builder
		writeProblem(&text, a.paint, a.fileAsID(e), store)
		a.say("%s", text.String())
		if a.database != "" && errors.Is(err, problem.ExecutionNotFound) {
			a.say("  searched: %s\n", a.database)
		}
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "interrupted")
	default:
		a.say("%s %v\n", a.paint.bad("error:"), err)
	}
}

// fileAsID replaces the hint of the error for an unknown run if a file has that name.
func (a *app) fileAsID(e *problem.Error) *problem.Error {
	file := e.At.ExecutionID
	if info, err := os.Stat(a.path(file)); e.Code != problem.ExecutionNotFound || file == "" || err != nil || info.IsDir() {
		return e
	}
	hinted := *e
	return hinted.WithHint("Did you mean --db %s?", shellword.Quote(file))
}

// writeProblem prints a problem. store holds the flags that the commands in its hint need to reach the same runs.
func writeProblem(w io.Writer, paint palette, e *problem.Error, store []string) {
	label := "error:"
	if e.Code != problem.UsageError {
		label = "error " + string(e.Code) + ":"
		if finest := e.Finest(); finest != e.Code {
			label = "error " + string(e.Code) + " (" + string(finest) + "):"
		}
	}
	fmt.Fprintf(w, "%s %s\n", paint.bad(label), e.Error())
	if at := plainCell(e.At.String()); at != "" && len(e.Findings) == 0 { // each finding has its own place
		fmt.Fprintf(w, "  at: %s\n", at)
	}
	for _, f := range e.Findings {
		if !e.Says(f) {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(plainCell(f.At.String())+" "+f.Message))
		}
		if f.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", f.Hint)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", commandHint(e.Hint, e.At.ExecutionID, store...))
	}
}

// commandHint replaces the library's calls and options in a hint by commands and flags. store holds the flags that name the
// database, if the caller has them.
func commandHint(hint, id string, store ...string) string {
	return renamed(calls.CommandWords(id, store...).Translate(hint))
}
