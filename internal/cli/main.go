package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/arrival"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// app is what every command works with.
type app struct {
	// ctx ends when the command is interrupted, and with it what it reads: stdin, and the files of its command line.
	ctx   context.Context
	stdin io.Reader
	// stdout takes JSON and other exact text; what people read goes to human, which is stdout too, or to stderr.
	stdout, human, stderr io.Writer
	env                   config.Environment
	flags                 *config.Flags
	now                   func() time.Time
	// newEngine makes an engine over a store; nil makes a graph.Runner.
	newEngine func(history.Store, graph.Options) (graph.Engine, error)
	// paint colours text on stderr, or leaves it as it is.
	paint palette
	// screen keeps a tree at the end of stderr; nil if stderr is no terminal, or one that cannot.
	screen *screen
	// columns is how wide the terminal is that stdout is; 0 if it is none.
	columns func() int
	// terminal is how wide the terminal is that stderr is; nil if it is none.
	terminal func() int
	// interactive is true if a person sits at stdin and stderr.
	interactive bool
	// database is the file that a session has opened, "" before and for none.
	database string
	// lines reads stdin line by line once a person is asked.
	lines *bufio.Reader
	// standardLog is given the logger for what packages print with package log, such as net/http; nil leaves that as it is.
	standardLog func(*slog.Logger)
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
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, env: config.System(), now: time.Now}
	if stderr == io.Writer(os.Stderr) { // else the process is somebody else's, and so is its log
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
	a.columns = func() int {
		file, _ := stdout.(*os.File)
		if file == nil || !isTerminal(stdout) {
			return 0
		}
		columns, _, _ := terminalSize(file)
		return columns
	}
	return a.execute(graph.WithActor(ctx, person()), args)
}

// person is who runs this program: the user's name in the operating system, or the number of a user without one.
func person() history.Actor {
	a := history.Actor{Via: "command", Name: fmt.Sprintf("uid %d", os.Getuid())}
	if u, err := user.Current(); err == nil && u.Username != "" {
		a.Name = u.Username
	}
	return a
}

// execute runs one command, prints what ended it and returns the exit status.
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
