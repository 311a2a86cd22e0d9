package config

import (
	"errors"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// Flags are the flags of a command. Register adds them to its set, Load reads them.
type Flags struct {
	set *pflag.FlagSet
}

// The flags' names.
const (
	flagStore       = "store"
	flagStorePath   = "store-path"
	flagSynchronous = "synchronous"
	flagProfile     = "profile"
	flagWaitLimit   = "wait-limit"
	flagElicit      = "elicit"
	flagLogLevel    = "log-level"
	flagLogFormat   = "log-format"
	flagMCPConfig   = "mcp-config"
	flagAgents      = "agents"
	flagWebhooks    = "webhooks"
	flagMaxVisits   = "max-visits"
	flagMaxRecords  = "max-records"
	flagMaxBytes    = "max-bytes"
	flagMaxPending  = "max-pending"
	flagLimits      = "limits"
	flagRetry       = "default-retry"
	flagHostTimeout = "min-host-timeout"

	flagMaxDepth       = "max-depth"
	flagMaxTreeRuns    = "max-tree-runs"
	flagMaxTreeVisits  = "max-tree-visits"
	flagMaxTreeRecords = "max-tree-records"
	flagMaxTreeBytes   = "max-tree-bytes"
	flagMaxTreePending = "max-tree-pending"
	flagMaxMemory      = "max-memory"

	// FlagWorkflowDir is a flag of the server, and of the commands that find definitions by name.
	FlagWorkflowDir = "workflow-dir"
)

// RegisterServer adds the flags of a long-lived server: those of Register, the wait limit of its calls, who answers interrupts, and the
// folder of definitions.
func RegisterServer(set *pflag.FlagSet) *Flags {
	f := Register(set)
	set.String(flagWaitLimit, "", "how long a call waits for a run to come to rest, as in 20s, at most 5m; 0 for not at all (default 20s; $"+envname.WaitLimit+")")
	set.String(flagElicit, "", "who answers interrupts: auto (hosts ask the person where they can), never (they do not) or required (only so) (default auto; $"+envname.Elicit+")")
	RegisterWorkflowDir(set, new(string), "none")
	return f
}

// RegisterWorkflowDir adds the flag that names the folder of definitions. fallback says which it is by default.
func RegisterWorkflowDir(set *pflag.FlagSet, folder *string, fallback string) {
	set.StringVar(folder, FlagWorkflowDir, "", "`folder` with definitions that are found by name (default "+fallback+"; $"+envname.WorkflowDir+")")
}

// flagDB is the short form of --store-path, by which commands that are shown name it.
const flagDB = "db"

// Normalize maps the short form of a flag: --db is --store-path. Register sets it; cobra needs it once more, for all
// commands (SetGlobalNormalizationFunc).
func Normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == flagDB {
		name = flagStorePath
	}
	return pflag.NormalizedName(name)
}

// Register adds the flags that both commands have. Their values stay empty until the set has been parsed.
func Register(set *pflag.FlagSet) *Flags {
	set.SetNormalizeFunc(Normalize)
	set.String(flagStore, "", "where runs are kept: sqlite or memory (default sqlite; $"+envname.Store+")")
	set.String(flagStorePath, "", "database `file`, --db for short (default: runs.db in your data folder; $"+envname.StorePath+")")
	set.String(flagSynchronous, "", "what a step survives: full (a power cut) or normal (a crash; faster) (default full; $"+envname.Synchronous+")")
	set.String(flagProfile, "", "demo answers activities from metadata.demo_output and invents delegates ($"+envname.Profile+")")
	set.String(flagMCPConfig, "", "operator manifest `file` with the MCP servers of tool_call nodes ($"+envname.MCPConfig+")")
	set.String(flagAgents, "", "`file` with agents that run inside the engine ($"+envname.Agents+")")
	set.String(flagWebhooks, "", "`file` with the webhook targets that runs may notify ($"+envname.Webhooks+")")
	set.String(flagMaxVisits, "", "node visits that a run may make (default 10000; $"+envname.MaxVisits+")")
	set.String(flagMaxRecords, "", "records that a run may have (default 1000000; $"+envname.MaxRecords+")")
	set.String(flagMaxBytes, "", "bytes that a run's records may take in the store, as in 512MiB (default 1GiB; $"+envname.MaxBytes+")")
	set.String(flagMaxPending, "", "activities that a run may await at the same time (default 10000; $"+envname.MaxPending+")")
	set.String(flagHostTimeout, "", "shortest timeout of an activity that a host performs; shorter ones in definitions are raised to it, 0 for none (default 10m; $"+envname.MinHostTimeout+")")
	set.String(flagMaxDepth, "", "levels to which subworkflows may nest (default 4; $"+envname.MaxDepth+")")
	set.String(flagMaxTreeRuns, "", "runs that a run and all subworkflows below it may be (default 1000; $"+envname.MaxTreeRuns+")")
	set.String(flagMaxTreeVisits, "", "node visits that they may make together (default 100000; $"+envname.MaxTreeVisits+")")
	set.String(flagMaxTreeRecords, "", "records that they may have together (default 2000000; $"+envname.MaxTreeRecords+")")
	set.String(flagMaxTreeBytes, "", "bytes that their records may take in the store (default 2GiB; $"+envname.MaxTreeBytes+")")
	set.String(flagMaxTreePending, "", "activities that they may await at the same time (default 10000; $"+envname.MaxTreePending+")")
	set.String(flagRetry, "", "how often activities without a retry policy are attempted in runs that start, as in llm_call=3,tool_call=2 (default once; $"+envname.DefaultRetry+")")
	set.String(flagLimits, "", "attempts at once, or starts a second, by class, as in step=20,mcp:github=2,agent:x=1/s ($"+envname.Limits+")")
	set.String(flagMaxMemory, "", "memory that the process may take, as in 1GiB; 0 for no bound (default 512MiB; $"+envname.MaxMemory+")")
	set.String(flagLogLevel, "", "debug, info, warn or error (default warn; $"+envname.LogLevel+")")
	set.String(flagLogFormat, "", "text or json (default text; $"+envname.LogFormat+")")
	return &Flags{set: set}
}

// Given are the flags that the user wrote and that another command needs to reach and drive the same runs.
func (f *Flags) Given() []string {
	return append(f.GivenStore(), f.given(flagSynchronous, flagProfile, flagMCPConfig, flagAgents, flagWebhooks,
		flagMaxVisits, flagMaxRecords, flagMaxBytes, flagMaxPending, flagHostTimeout,
		flagMaxDepth, flagMaxTreeRuns, flagMaxTreeVisits, flagMaxTreeRecords, flagMaxTreeBytes, flagMaxTreePending,
		flagRetry, flagLimits, flagMaxMemory)...)
}

// GivenStore are the flags that the user wrote and that another command needs to read the same runs.
func (f *Flags) GivenStore() []string { return f.given(flagStore, flagStorePath) }

func (f *Flags) given(names ...string) []string {
	var args []string
	for _, name := range names {
		if f.set.Changed(name) {
			value := f.set.Lookup(name).Value.String()
			if name == flagStorePath {
				name = flagDB
			}
			args = append(args, "--"+name, value)
		}
	}
	return args
}

// pick takes the flag if it was given, else the variable, else the default.
func (f *Flags) pick(env Environment, flag, variable, fallback string) setting {
	if f.set.Changed(flag) {
		return setting{value: f.set.Lookup(flag).Value.String(), from: "--" + flag}
	}
	if v := env.lookup(variable); v != "" {
		return setting{value: v, from: variable}
	}
	return setting{value: fallback}
}

// FlagError is the USAGE_ERROR for arguments that a set of flags cannot parse. For an invalid number or time it says what
// is expected.
func FlagError(err error) *problem.Error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return problem.New(problem.UsageError, "%v", err)
	}
	what := ""
	switch invalid.GetFlag().Value.Type() {
	case "int", "int64":
		what = "a whole number"
		if errors.Is(err, strconv.ErrRange) {
			what = "a number that is small enough"
		}
	case "bool":
		what = "true or false"
	case "duration":
		what = "a time with its unit, as in 500ms, 30s or 24h"
	default:
		return problem.New(problem.UsageError, "%v", err)
	}
	return problem.New(problem.UsageError, "--%s: %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), what)
}
