package toolcall

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/childprocess"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Defaults of Config.
const (
	DefaultTimeout        = 45 * time.Second
	DefaultConnectTimeout = 20 * time.Second
	DefaultIdleTimeout    = 5 * time.Minute
	DefaultStopGrace      = 2 * time.Second
	DefaultRestartDelay   = 100 * time.Millisecond
	DefaultMaxOutputBytes = 64 << 20
)

// maxRestartDelay bounds the pause before a server is started again.
const maxRestartDelay = 30 * time.Second

// Server configures one MCP server, reached by Command, which is started, or by URL.
//
// A value of Env or Headers that begins with "env:" or "file:" is a reference to a secret, and "${env:NAME}" within a
// value is replaced; "literal:" before a value keeps the rest as it is. References are resolved whenever the server is
// started.
type Server struct {
	Command string
	Args    []string
	// Env are variables of the process besides those that Config.Environ passes.
	Env map[string]string
	// Directory is where the process runs; "" means the engine's working directory.
	Directory string
	// URL is the address of a server that speaks streamable HTTP. Headers go with each request.
	URL     string
	Headers map[string]string
	// Disabled servers are never started.
	Disabled bool
}

// Config configures an Executor. Only Servers is required.
type Config struct {
	Servers map[string]Server
	// AllowCommands is the operator's list of commands that may be started, separated by commas; see Allowed.
	AllowCommands string
	// AllowSetting is the name of AllowCommands in errors; "" means "Config.AllowCommands".
	AllowSetting string
	// Environ is the engine's environment in the form of os.Environ. A server's process gets only HOME, LOGNAME, PATH,
	// SHELL, TERM and USER of it, or their counterparts on Windows.
	Environ []string
	// Secret resolves a reference "env:…" or "file:…". Without it such references are errors.
	Secret func(reference string) (string, error)
	// Timeout bounds each call, a start of its server included; a node's own earlier deadline counts. 0 means
	// DefaultTimeout.
	Timeout time.Duration
	// ConnectTimeout bounds the answer of a server to initialize, its start included. Where a call has less time, a quarter of that is left
	// so that the failure can name the server. 0 means DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// IdleTimeout is how long a session without calls is kept. 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// StopGrace is how long a process may take to end after its standard input has ended, and again after SIGTERM,
	// before it is killed. 0 means DefaultStopGrace.
	StopGrace time.Duration
	// RestartDelay is the pause before a start that follows a failure; it doubles with each further one, up to 30 s.
	// 0 means DefaultRestartDelay.
	RestartDelay time.Duration
	// MaxOutputBytes bounds the message with a tool's result. 0 means DefaultMaxOutputBytes.
	MaxOutputBytes int
	// Version is the client version that servers get; "" means "0.0.0".
	Version string
	// Logger gets the standard error of servers, and their starts and ends. nil discards it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.AllowSetting = cmp.Or(c.AllowSetting, "Config.AllowCommands")
	c.Timeout = cmp.Or(max(c.Timeout, 0), DefaultTimeout)
	c.ConnectTimeout = cmp.Or(max(c.ConnectTimeout, 0), DefaultConnectTimeout)
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), DefaultIdleTimeout)
	c.StopGrace = cmp.Or(max(c.StopGrace, 0), DefaultStopGrace)
	c.RestartDelay = cmp.Or(max(c.RestartDelay, 0), DefaultRestartDelay)
	c.MaxOutputBytes = cmp.Or(max(c.MaxOutputBytes, 0), DefaultMaxOutputBytes)
	c.Version = cmp.Or(c.Version, "0.0.0")
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

// check resolves every reference once, so that a missing secret is found at start and not at the first call.
func (c Config) check() error {
	names := map[string]any{}
	for name := range c.Servers {
		names[name] = nil
	}
	for _, name := range jsonvalue.Keys(names) {
		s := c.Servers[name]
		if (s.Command == "") == (s.URL == "") {
			return problem.New(problem.UsageError, "MCP server %q needs either a command or a URL", name)
		}
		if s.Disabled {
			continue
		}
		for _, values := range []map[string]string{s.Env, s.Headers} {
			if _, _, err := childprocess.Resolve(values, c.Secret); err != nil {
				return problem.New(problem.UsageError, "MCP server %q", name).WithCause(err)
			}
		}
	}
	return nil
}

// The keys of log lines.
const (
	logServer = "server"
	logPID    = "pid"
	logState  = "state"
	logLine   = "line"
	logTool   = "tool"
	logMember = "member"
	logError  = "error"
	logData   = "data"
	logLogger = "logger"
)
