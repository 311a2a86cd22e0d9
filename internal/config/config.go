package config

import (
	"io"
	"log/slog"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/internal/agentfile"
	"github.com/workflows-engine/workflows-engine/internal/httpworkflow"
	"github.com/workflows-engine/workflows-engine/internal/manifest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
	"github.com/workflows-engine/workflows-engine/internal/signing"
	"github.com/workflows-engine/workflows-engine/internal/webhook"
)

// StoreKind is a kind of store.
type StoreKind string

// The kinds of stores.
const (
	SQLite   StoreKind = "sqlite"
	Postgres StoreKind = "postgres"
	Memory   StoreKind = "memory"
	// Elsewhere is the kind of runs at a Place.
	Elsewhere StoreKind = "elsewhere"
)

// Synchronous is the durability of a committed step.
type Synchronous string

// Full survives a power cut; Normal survives the end of the process, and is faster.
const (
	Full   Synchronous = "full"
	Normal Synchronous = "normal"
)

// Profile selects stub executors.
type Profile string

// NoProfile rejects activities without an executor. Demo answers them from the nodes' metadata.demo_output and invents
// answers of delegates.
const (
	NoProfile Profile = ""
	Demo      Profile = "demo"
)

// LogFormat is the form of log lines on standard error.
type LogFormat string

// The two formats: key=value pairs for people, one JSON object a line for collectors.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// DefaultWaitLimit is how long a call waits until a run needs input or ends.
const DefaultWaitLimit = 20 * time.Second

// DefaultMinHostTimeout is the shortest timeout of an attempt that a host performs. A dialog that asks a person for permission takes
// minutes, and the model does not notice the time.
const DefaultMinHostTimeout = 10 * time.Minute

// Config is the configuration of both commands. Load makes it; its fields are valid.
type Config struct {
	Store StoreKind
	// StorePath is the absolute path of the database file, "" for stores without a file.
	StorePath string
	// StorePathGiven is set if the user named the path. The default path may be created on first use.
	StorePathGiven bool
	// OtherStorePath is a second database at a default place, which is not used; "" without one.
	OtherStorePath string
	Synchronous    Synchronous
	Profile        Profile
	WaitLimit      time.Duration
	// MinHostTimeout and Drain: see graph.Options.
	MinHostTimeout, Drain time.Duration
	// Elicit decides who answers interrupts over MCP.
	Elicit elicit.Mode
	// OmitRequests: see graph.Options.
	OmitRequests bool
	// Limits bound the size of a run.
	Limits Limits
	// MaxMemory bounds the memory of the process, in bytes; 0 for no bound (package memory).
	MaxMemory int64
	// Attempts is the number of attempts of activities without a retry policy, by node type.
	Attempts map[string]int
	// AttemptLimits bound the attempts in flight, and their starts, by class.
	AttemptLimits []graph.Limit
	// Capacity and MaxQueued are the options of these names of graph: negative for no limit. So are Queues and FairLabel.
	Capacity  int
	MaxQueued int
	Queues    []string
	FairLabel string
	LogLevel  slog.Level
	// LogLevelGiven is set if the user set the level.
	LogLevelGiven bool
	LogFormat     LogFormat
	// StepHandlers are the fixed results of WORKFLOW_ENGINE_STEP_HANDLERS by handler name; nil if not configured.
	StepHandlers map[string]any
	// StepCommands are the programs of WORKFLOW_ENGINE_STEP_COMMANDS by handler name; nil if not configured.
	StepCommands map[string]manifest.StepCommand
	// LLM holds the settings of WORKFLOW_ENGINE_LLM_CONFIG; nil if not configured.
	LLM *LLM
	// Manifest is the operator's manifest of --mcp-config; nil if not configured.
	Manifest *manifest.Manifest
	// Agents are the agents of --agents for delegates of protocol sdk; nil if not configured.
	Agents *agentfile.File
	// Webhooks are the targets of --webhooks; nil if not configured.
	Webhooks *webhook.List
	// Log receives the log lines of executors; nil discards them. The caller sets it before Executors.
	Log *slog.Logger
	// A2A are the endpoints of WORKFLOW_ENGINE_A2A_CONFIG for delegates of protocol a2a; nil if not configured.
	A2A *A2ASettings
	// WorkflowDir is the absolute path of the folder with definitions, "" if not configured.
	WorkflowDir string
	// WorkflowSources fetches subworkflows from where WORKFLOW_ENGINE_WORKFLOW_SOURCES allows it; nil if not configured.
	WorkflowSources *httpworkflow.Resolver
	// Signing decides which definitions may run.
	Signing signing.Policy
	// Warnings are sentences about settings that have no effect. They belong on standard error at start.
	Warnings []string

	// Now is the store's clock; nil means time.Now. The caller sets it before it opens the store.
	Now func() time.Time

	// settings are the settings of the store as the user wrote them.
	settings storeSettings
	// server holds the settings of Postgres.
	server server
	// placeFlag is the flag that hints name for another database, "" for those of the settings.
	placeFlag string
	// elsewhere names where the runs are, and elsewhereFlags lead there, with Elsewhere.
	elsewhere      string
	elsewhereFlags []string
	// note is the default database beside which LeaveNote notes StorePath, "" if that is not needed.
	note string
	// env is the source of the configuration; secrets are resolved there at use.
	env Environment
	// files are those that settings of executors were read from.
	files []settingFile
}

// Logger logs to w, which is standard error in both commands, without the secrets of the settings.
func (c *Config) Logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	w = c.Masked(w)
	if c.LogFormat == LogJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
