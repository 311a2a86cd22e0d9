package stepcommand

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
)

// Defaults of Command and Config.
const (
	DefaultTimeout        = 10 * time.Minute
	DefaultMaxOutputBytes = 64 << 20
	DefaultStopGrace      = 2 * time.Second
	DefaultMaxLogBytes    = 64 << 10
)

// Command is the program that performs the steps of one handler. Nothing in it comes from a workflow document.
type Command struct {
	// Command is a path, or a name that is looked up in PATH. Args are passed unchanged.
	Command string
	Args    []string
	// Env holds variables of the process in addition to Config.Environ. A value that begins with
	// "env:" or "file:" is a reference to a secret, and "${env:NAME}" within a value is replaced; "literal:" before a
	// value keeps the rest as it is. References are resolved whenever the program is started.
	Env map[string]string
	// Directory is where the process runs; "" means the engine's working directory.
	Directory string
	// Timeout bounds one attempt; a node's own earlier deadline counts. 0 means DefaultTimeout.
	Timeout time.Duration
	// MaxOutputBytes bounds standard output. 0 means DefaultMaxOutputBytes.
	MaxOutputBytes int
}

// Config configures Commands. Only Commands is required.
type Config struct {
	// Commands are the programs by handler name, which is trimmed.
	Commands map[string]Command
	// Environ is the engine's environment in the form of os.Environ. A program gets only HOME, LOGNAME, PATH, SHELL,
	// TERM and USER of it, or their counterparts on Windows.
	Environ []string
	// Secret resolves a reference "env:…" or "file:…". Without it such references are errors.
	Secret func(reference string) (string, error)
	// StopGrace is how long a program may take to end after SIGTERM before its group is killed. 0 means
	// DefaultStopGrace.
	StopGrace time.Duration
	// MaxLogBytes limits the standard error of one attempt that is logged. 0 means DefaultMaxLogBytes.
	MaxLogBytes int
	// Logger gets the standard error of programs. nil discards it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.StopGrace = cmp.Or(max(c.StopGrace, 0), DefaultStopGrace)
	c.MaxLogBytes = cmp.Or(max(c.MaxLogBytes, 0), DefaultMaxLogBytes)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	commands := make(map[string]Command, len(c.Commands))
	for name, command := range c.Commands {
		command.Timeout = cmp.Or(max(command.Timeout, 0), DefaultTimeout)
		command.MaxOutputBytes = cmp.Or(max(command.MaxOutputBytes, 0), DefaultMaxOutputBytes)
		commands[strings.TrimSpace(name)] = command
	}
	c.Commands = commands
	return c
}

// check resolves every reference once, so that a missing secret is found at start and not at the first call.
func (c Config) check() error {
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		command := c.Commands[name]
		switch {
		case strings.TrimSpace(name) == "":
			return problem.New(problem.UsageError, "a step command needs the name of its handler").
				WithHint("Use a URN such as \"urn:example:resize\".")
		case strings.TrimSpace(command.Command) == "":
			return problem.New(problem.UsageError, "step command %q names no program", name)
		}
		if _, _, err := childprocess.Resolve(command.Env, c.Secret); err != nil {
			return problem.New(problem.UsageError, "step command %q", name).WithCause(err)
		}
	}
	return nil
}

// The keys of log lines.
const (
	logHandler = "handler"
	logRun     = "execution_id"
	logNode    = "node_id"
	logLine    = "line"
)
