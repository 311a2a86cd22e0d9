package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
	"github.com/workflows-engine/workflows-engine/internal/memory"
)

// option is one setting. The flags, their help, the known variables and the order in which settings are read come from the table
// options.
type option struct {
	// flag is the name of the flag, variable the name of the environment variable; "" without one.
	flag, variable string
	// fallback is the value without both. shown is the default in the help, if it differs.
	fallback, shown string
	// help describes the flag, without its default and its variable. note is what docs/reference/settings.md adds: the whole
	// description of an option without a flag.
	help, note string
	// group selects the commands that read the option.
	group group
	// use selects where the flag is offered, and whether printed commands repeat it.
	use use
	// load reads the value.
	load func(*Config, setting, Environment) error
}

// group is a set of options that a command reads together.
type group uint

const (
	ofStore group = 1 << iota
	ofLimits
	ofLog
	ofCalls // how calls and attempts are made
	ofSteps
	ofLLM
	ofA2A
	ofManifest
	ofAgents
	ofWebhooks
	ofSigning
	ofDirectory
	ofSources
	ofUse // read when they are used, not at the start

	all = ofUse - 1
)

// use selects where a flag is offered.
type use uint

const (
	// everywhere is for flags of both programs; another command needs the flag to drive the same runs.
	everywhere use = iota
	// anyCommand is for flags of both programs that concern one process.
	anyCommand
	// servers is for flags of long-lived servers.
	servers
	// registered is for flags that RegisterWorkflowDir offers.
	registered
)

// The names of flags that the program refers to.
const (
	flagStore        = "store"
	flagStorePath    = "store-path"
	flagStoreURL     = "store-url"
	flagStoreURLFile = "store-url-file"
	flagMCPConfig    = "mcp-config"
	flagAgents       = "agents"
	flagWebhooks     = "webhooks"

	// FlagWorkflowDir is a flag of the server, and of the commands that find definitions by name.
	FlagWorkflowDir = "workflow-dir"
	// flagDB is the short form of --store-path, used in printed commands.
	flagDB = "db"
)

// options lists all settings with one value, in the order of reading and of help.
var options = []option{
	{flag: flagStore, variable: envname.Store, fallback: string(SQLite), group: ofStore,
		help: "store of runs: sqlite, postgres or memory",
		note: "`memory` keeps nothing when the process ends. A path selects `sqlite`, an address `postgres`.", load: keep(func(c *storeSettings) *setting { return &c.kind })},
	{flag: flagStorePath, variable: envname.StorePath, shown: "runs.db in your data directory", group: ofStore,
		help: "database `file`, --db for short",
		note: "[Default by platform](../database.md#the-file).", load: keep(func(c *storeSettings) *setting { return &c.path })},
	{flag: flagStoreURL, variable: envname.StoreURL, shown: "none", group: ofStore,
		help: "`address` of a PostgreSQL server, without a password",
		note: "With a password only as a variable. See [PostgreSQL](../database.md#postgresql).", load: keep(func(c *storeSettings) *setting { return &c.url })},
	{flag: flagStoreURLFile, variable: envname.StoreURLFile, shown: "none", group: ofStore,
		help: "`file` with the address of a PostgreSQL server",
		note: "Other users must not be able to read it.", load: keep(func(c *storeSettings) *setting { return &c.urlFile })},
	{flag: "store-schema", variable: envname.StoreSchema, fallback: DefaultSchema, group: ofStore,
		help: "`schema` of the runs on a PostgreSQL server",
		note: "Each schema is a separate store.", load: keep(func(c *storeSettings) *setting { return &c.schema })},
	{flag: "store-conns", variable: envname.StoreConns, fallback: "8", group: ofStore, use: anyCommand,
		help: "connections of this process to a PostgreSQL server",
		note: "One more connection listens.", load: keep(func(c *storeSettings) *setting { return &c.conns })},
	{flag: "store-migrate", variable: envname.StoreMigrate, fallback: "auto", group: ofStore, use: anyCommand,
		help: "migrate an older schema of a PostgreSQL server when it is opened: auto or off",
		note: "`off`: only `db migrate` creates and migrates the tables.",
		load: keep(func(c *storeSettings) *setting { return &c.migrate })},
	{flag: "store-notify", variable: envname.StoreNotify, fallback: "on", group: ofStore, use: anyCommand,
		help: "notifications between processes by a PostgreSQL server: on or off; off polls",
		note: "`off` is for a transaction pooler.",
		load: keep(func(c *storeSettings) *setting { return &c.notify })},
	{flag: "synchronous", variable: envname.Synchronous, fallback: string(Full), group: ofStore,
		help: "durability of a step: full (survives a power cut) or normal (survives a crash; faster)",
		load: choice(func(c *Config) *Synchronous { return &c.Synchronous }, Full, Normal)},
	{flag: "profile", variable: envname.Profile, group: ofCalls,
		help: "demo replaces missing executors by stubs that return metadata.demo_output",
		note: "The only value is `demo`.", load: loadProfile},
	{flag: flagMCPConfig, variable: envname.MCPConfig, group: ofManifest,
		help: "`file` with the MCP servers of tool_call nodes",
		note: "See [tool_call](../executors.md#tools-of-mcp-servers-tool_call).", load: loadManifest},
	{variable: envname.StepHandlers, group: ofSteps,
		note: "Fixed outputs by handler, as JSON. See [step](../executors.md#steps-step).", load: loadStepHandlers},
	{variable: envname.StepCommands, group: ofSteps,
		note: "Programs by handler. See [step](../executors.md#steps-step).", load: loadStepCommands},
	{variable: envname.LLM, group: ofLLM,
		note: "Model server. See [llm_call](../executors.md#models-llm_call).", load: loadLLM},
	{variable: envname.A2A, group: ofA2A,
		note: "Remote agents. See [agent_delegate](../executors.md#agents-agent_delegate).", load: loadA2A},
	{flag: flagAgents, variable: envname.Agents, group: ofAgents,
		help: "`file` with the agents of the engine",
		note: "See [agents](../agents.md).", load: loadAgents},
	{flag: flagWebhooks, variable: envname.Webhooks, group: ofWebhooks,
		help: "`file` with webhook targets",
		note: "See [webhooks](../webhooks.md).", load: loadWebhooks},
	{flag: "max-visits", variable: envname.MaxVisits, shown: "10000", group: ofLimits,
		help: "limit of node visits of a run", load: number(func(c *Config) *int { return &c.Limits.Visits })},
	{flag: "max-records", variable: envname.MaxRecords, shown: "1000000", group: ofLimits,
		help: "limit of records of a run", load: number(func(c *Config) *int64 { return &c.Limits.Records })},
	{flag: "max-bytes", variable: envname.MaxBytes, shown: "1GiB", group: ofLimits,
		help: "limit of the stored records of a run in bytes, as in 512MiB", load: size(func(c *Config) *int64 { return &c.Limits.Bytes })},
	{flag: "max-pending", variable: envname.MaxPending, shown: "10000", group: ofLimits,
		help: "limit of pending activities of a run", load: number(func(c *Config) *int { return &c.Limits.Pending })},
	{flag: "min-host-timeout", variable: envname.MinHostTimeout, fallback: DefaultMinHostTimeout.String(), shown: "10m", group: ofCalls,
		help: "minimum timeout of host-mediated activities; shorter timeouts are raised to it; 0 for none",
		note: "A host that asks a person for permission takes minutes.",
		load: duration(func(c *Config) *time.Duration { return &c.MinHostTimeout }, "Write a time with its unit, as in 90s or 10m, or 0 for the timeouts of definitions.")},
	{flag: "max-depth", variable: envname.MaxDepth, shown: "4", group: ofLimits,
		help: "limit of nested subworkflows", load: number(func(c *Config) *int { return &c.Limits.Depth })},
	{flag: "max-tree-runs", variable: envname.MaxTreeRuns, shown: "1000", group: ofLimits,
		help: "limit of runs in a tree: a run with all its subworkflows", load: number(func(c *Config) *int64 { return &c.Limits.Tree.Runs })},
	{flag: "max-tree-visits", variable: envname.MaxTreeVisits, shown: "100000", group: ofLimits,
		help: "limit of node visits of a tree", load: number(func(c *Config) *int64 { return &c.Limits.Tree.Visits })},
	{flag: "max-tree-records", variable: envname.MaxTreeRecords, shown: "2000000", group: ofLimits,
		help: "limit of records of a tree", load: number(func(c *Config) *int64 { return &c.Limits.Tree.Records })},
	{flag: "max-tree-bytes", variable: envname.MaxTreeBytes, shown: "2GiB", group: ofLimits,
		help: "limit of the stored records of a tree in bytes", load: size(func(c *Config) *int64 { return &c.Limits.Tree.Bytes })},
	{flag: "max-tree-pending", variable: envname.MaxTreePending, shown: "10000", group: ofLimits,
		help: "limit of pending activities of a tree", load: number(func(c *Config) *int64 { return &c.Limits.Tree.Pending })},
	{flag: "default-retry", variable: envname.DefaultRetry, shown: "once", group: ofCalls,
		help: "attempts of activities without a retry policy in new runs, as in llm_call=3,tool_call=2",
		note: "Only `llm_call` and `tool_call`; the pauses are 2 s, 4 s and so on, up to a minute. Fixed for a run when it starts. Leave out `tool_call` if a tool must not repeat its effect.", load: loadDefaultRetry},
	{flag: "limits", variable: envname.Limits, group: ofCalls,
		help: "limits of concurrent attempts or starts a second, by class, as in step=20,mcp:github=2,agent:x=1/s",
		note: "See [limits](../scaling.md#limits).", load: loadAttemptLimits},
	{flag: "capacity", variable: envname.Capacity, fallback: "100", group: ofCalls, use: anyCommand,
		help: "limit of attempts in flight in this process; further ones wait, or go to a worker with room; 0 for none",
		note: "See [how runs are shared](../scaling.md#how-runs-are-shared).", load: loadCapacity},
	{flag: "max-queued", variable: envname.MaxQueued, fallback: "100000", group: ofCalls, use: anyCommand,
		help: "limit of runs that wait for a worker in a lane; a start above it is refused; 0 for none", load: loadMaxQueued},
	{flag: "queues", variable: envname.Queues, shown: "all", group: ofCalls, use: anyCommand,
		help: "`names` of the queues that a worker serves, with commas", load: loadQueues},
	{flag: "fair-label", variable: envname.FairLabel, shown: "none", group: ofCalls,
		help: "label `key` whose values take turns among runs that wait for a worker, such as customer",
		note: "Set it alike in all processes.", load: loadFairLabel},
	{flag: "max-memory", variable: envname.MaxMemory, fallback: strconv.Itoa(memory.Default), shown: "512MiB", group: ofCalls,
		help: "memory limit of the process, as in 1GiB; 0 for none",
		note: "See [memory](../deploy.md#memory).", load: loadMemory},
	{flag: "log-level", variable: envname.LogLevel, fallback: "warn", group: ofLog, use: anyCommand,
		help: "lowest logged level: debug, info, warn or error",
		note: "The default of a worker is `info`.", load: loadLogLevel},
	{flag: "log-format", variable: envname.LogFormat, fallback: string(LogText), group: ofLog, use: anyCommand,
		help: "form of log lines: text or json", load: choice(func(c *Config) *LogFormat { return &c.LogFormat }, LogText, LogJSON)},
	{flag: "wait-limit", variable: envname.WaitLimit, fallback: DefaultWaitLimit.String(), group: ofCalls, use: servers,
		help: "how long a call waits until a run needs input or ends, as in 20s, at most 5m; 0 for no wait",
		note: "For calls without `wait_ms`.",
		load: duration(func(c *Config) *time.Duration { return &c.WaitLimit }, "Write a time with its unit, as in 500ms, 20s or 2m, or 0 for no wait.")},
	{flag: "elicit", variable: envname.Elicit, fallback: string(elicit.Auto), group: ofCalls, use: servers,
		help: "who answers interrupts: auto (the host asks the person if it can), never (the model) or required (only the person)",
		load: choice(func(c *Config) *elicit.Mode { return &c.Elicit }, elicit.Auto, elicit.Never, elicit.Required)},
	{variable: envname.Drain, fallback: "0", group: ofCalls,
		note: "How long attempts may continue when a worker or the MCP server stops, as in `20s`. No attempt starts in that time.",
		load: duration(func(c *Config) *time.Duration { return &c.Drain }, "Write a time with its unit, as in 20s or 2m, or 0 to stop attempts at once.")},
	{variable: envname.RecordRequests, fallback: "on", group: ofCalls,
		note: "`off` leaves [requests](../observe.md#what-a-request-records) to models, tools and agents out of the history.", load: loadRequests},
	{variable: envname.SigningMode, shown: "optional", group: ofSigning,
		note: "`require` rejects unsigned definitions. See [signatures](../security.md#signed-definitions).", load: loadSigningMode},
	{variable: envname.SigningKeys, group: ofSigning,
		note: "Public keys by key id, as JSON.", load: loadSigningKeys},
	{flag: FlagWorkflowDir, variable: envname.WorkflowDir, group: ofDirectory, use: registered,
		help: "`directory` with definitions that are found by name",
		note: "For the MCP server, `catalog`, `validate` and commands that start or continue runs.", load: loadWorkflowDir},
	{variable: envname.WorkflowSources, group: ofSources,
		note: "Allowed addresses of [subworkflows](../executors.md#definitions-of-subworkflows).", load: loadWorkflowSources},
	{variable: envname.MCPAllowCommands, shown: "node,npx", group: ofUse,
		note: "Commands of the manifest that may be started, separated by commas."},
	{variable: envname.Redact, group: ofUse,
		note: "Further names of fields [to hide](../security.md#what-is-hidden), separated by commas."},
	{variable: envname.HTTPToken, group: ofUse,
		note: "Token of clients over HTTP; `--token-file FILE` of the MCP server, `serve` and `worker --page` is safer."},
}

// usage returns the help of the flag with its default and its variable.
func (o option) usage(fallback string) string {
	if fallback != "" {
		fallback = "default " + fallback + "; "
	}
	return o.help + " (" + fallback + "$" + o.variable + ")"
}

// Flags holds the flags of a command. Register adds them to its set, Load reads them.
type Flags struct {
	set *pflag.FlagSet
	// place, if not nil, is where the runs are instead of in a store.
	place *Place
}

// Place is where a program keeps runs that are in no store of its own.
type Place struct {
	// Name names the place in messages, without secrets.
	Name func() string
	// Flags are the flags that lead there. The caller adds them to the set.
	Flags []string
}

// Register adds the flags that both programs have. Their values stay empty until the set has been parsed.
func Register(set *pflag.FlagSet) *Flags { return register(set, everywhere, anyCommand) }

// RegisterAt adds the flags of Register for a program whose runs are at a place: those of a store and of limits that only a store
// can keep are left out, and so are their variables.
func RegisterAt(set *pflag.FlagSet, p Place) *Flags {
	f := &Flags{set: set, place: &p}
	f.add(everywhere, anyCommand)
	return f
}

// Server adds the flags that only a long-lived server has, to the set of a command below.
func (f *Flags) Server(set *pflag.FlagSet) *Flags {
	own := &Flags{set: set, place: f.place}
	own.add(servers)
	RegisterWorkflowDir(set, new(string), "none")
	return own
}

// RegisterServer adds the flags of a long-lived server: the flags of Register, the wait limit of its calls, who answers interrupts, and the
// directory of definitions.
func RegisterServer(set *pflag.FlagSet) *Flags {
	f := register(set, everywhere, anyCommand, servers)
	RegisterWorkflowDir(set, new(string), "none")
	return f
}

func register(set *pflag.FlagSet, uses ...use) *Flags {
	f := &Flags{set: set}
	f.add(uses...)
	return f
}

func (f *Flags) add(uses ...use) {
	f.set.SetNormalizeFunc(Normalize)
	for _, o := range options {
		if o.flag != "" && slices.Contains(uses, o.use) && f.reads(o) {
			fallback := o.shown
			if fallback == "" {
				fallback = o.fallback
			}
			f.set.String(o.flag, "", o.usage(fallback))
		}
	}
}

// storeOnly are the options, besides those of a store, that have no effect on runs at a place.
var storeOnly = []string{"max-tree-runs", "max-tree-visits", "max-tree-records", "max-tree-bytes", "max-tree-pending", "max-queued"}

// reads reports whether an option has an effect.
func (f *Flags) reads(o option) bool {
	return f.place == nil || o.group&ofStore == 0 && !slices.Contains(storeOnly, o.flag)
}

// RegisterWorkflowDir adds the flag that names the folder of definitions. fallback describes the folder by default.
func RegisterWorkflowDir(set *pflag.FlagSet, folder *string, fallback string) {
	for _, o := range options {
		if o.use == registered {
			set.StringVar(folder, o.flag, "", o.usage(fallback))
		}
	}
}

// Normalize maps the short form of a flag: --db is --store-path. Register sets it; cobra needs it once more, for all commands
// (SetGlobalNormalizationFunc).
func Normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == flagDB {
		name = flagStorePath
	}
	return pflag.NormalizedName(name)
}

// Given returns the flags of the user that another command needs to reach and drive the same runs.
func (f *Flags) Given() []string { return f.given(all) }

// GivenStore returns the flags of the user that another command needs to read the same runs.
func (f *Flags) GivenStore() []string {
	return f.given(ofStore)
}

func (f *Flags) given(of group) []string {
	var args []string
	for _, o := range options {
		if o.flag == "" || o.use != everywhere || o.group&of == 0 || !f.set.Changed(o.flag) {
			continue
		}
		name := o.flag
		if name == flagStorePath {
			name = flagDB
		}
		args = append(args, "--"+name, f.set.Lookup(o.flag).Value.String())
	}
	if f.place != nil {
		for _, name := range f.place.Flags {
			if f.set.Changed(name) {
				args = append(args, "--"+name, f.set.Lookup(name).Value.String())
			}
		}
	}
	return args
}

// setting is a value with its source, so that an error names the flag or variable that the user wrote.
type setting struct {
	value string
	// from is "--store" or "WORKFLOW_ENGINE_STORE"; "" for a default.
	from string
}

// The precedence of a setting.
const (
	byDefault = iota
	byVariable
	byFlag
)

// rank returns the precedence of the setting.
func (s setting) rank() int {
	switch {
	case s.from == "":
		return byDefault
	case strings.HasPrefix(s.from, "--"):
		return byFlag
	}
	return byVariable
}

// pick takes the flag if it was given, else the variable, else the default.
func (f *Flags) pick(env Environment, o option) setting {
	if o.flag != "" && f.set.Changed(o.flag) {
		return setting{value: f.set.Lookup(o.flag).Value.String(), from: "--" + o.flag}
	}
	if v := env.lookup(o.variable); v != "" {
		return setting{value: v, from: o.variable}
	}
	return setting{value: o.fallback}
}

// Load reads flags, variables and defaults, in this order of precedence, and checks all of them. The error is a *problem.Error with code
// USAGE_ERROR.
func (f *Flags) Load(env Environment) (*Config, error) { return f.load(env, all) }

// LoadStore is Load for commands that work on stored runs and perform nothing. It reads the settings of the database, the limits and the
// log, not the settings of executors: a missing key of a model must not stop a backup. All flags are checked, because the user wrote them
// for this command.
func (f *Flags) LoadStore(env Environment) (*Config, error) {
	flagsAlone := env
	flagsAlone.Variables = nil
	if _, err := f.load(flagsAlone, ofCalls|ofManifest); err != nil {
		return nil, err
	}
	return f.load(env, ofStore|ofLimits|ofLog)
}

// LoadWebhooks is LoadStore for commands that send to webhook targets and perform nothing else.
func (f *Flags) LoadWebhooks(env Environment) (*Config, error) {
	return f.load(env, ofStore|ofLimits|ofLog|ofWebhooks)
}

// LoadWorkflowDir is Load for commands that only read definitions.
func (f *Flags) LoadWorkflowDir(env Environment) (*Config, error) {
	return f.load(env, ofLog|ofSigning|ofDirectory)
}

// LoadForAgents is Load for a command that checks lists of agents: it reads their surroundings, not the configured list.
func (f *Flags) LoadForAgents(env Environment) (*Config, error) {
	return f.load(env, ofLog|ofLLM|ofManifest|ofSteps)
}

// LoadAgentList is Load for a command that only lists agents: secrets, servers and directories of the list need not exist.
func (f *Flags) LoadAgentList(env Environment) (*Config, error) {
	c, err := f.load(env, ofLog)
	if err != nil {
		return nil, err
	}
	for _, o := range options {
		if o.group == ofAgents {
			err = listAgents(c, f.pick(env, o), env)
		}
	}
	return c, err
}

// LoadLog is Load for commands that open no database, and for logging that Load has failed.
func (f *Flags) LoadLog(env Environment) (*Config, error) { return f.load(env, ofLog) }

func (f *Flags) load(env Environment, of group) (*Config, error) {
	env.secrets, env.notes = &secrets{}, &notes{}
	c := &Config{Warnings: f.ineffective(env.Variables), env: env}
	for _, o := range options {
		if o.group&of == 0 {
			continue
		}
		if !f.reads(o) {
			if o.flag != "" && o.group&ofStore == 0 {
				if err := o.load(c, setting{value: o.fallback}, env); err != nil {
					return nil, err
				}
			}
			continue
		}
		picked := f.pick(env, o)
		if err := o.load(c, picked, env); err != nil {
			return nil, err
		}
		if path := strings.TrimPrefix(strings.TrimSpace(picked.value), "file:"); o.group&(ofLLM|ofManifest|ofSteps|ofAgents) != 0 && isPath(path) {
			c.files = append(c.files, settingFile{o.variable, path})
		}
	}
	if f.place != nil {
		c.Store, c.elsewhere, c.elsewhereFlags = Elsewhere, f.place.Name(), f.given(ofStore)
	} else if of&ofStore != 0 {
		if err := c.loadStore(env); err != nil {
			return nil, err
		}
	}
	c.Warnings = append(c.Warnings, env.notes.take()...)
	return c, nil
}

// ineffective returns a warning for every variable with the project's prefix and no effect: a misspelt name, or a setting that only
// another engine of the protocol supports.
func (f *Flags) ineffective(variables []string) []string {
	var warnings []string
	for _, entry := range variables {
		name, value, _ := strings.Cut(entry, "=")
		known := slices.IndexFunc(options, func(o option) bool { return o.variable == name })
		if !strings.HasPrefix(name, envname.Prefix) || known >= 0 && f.reads(options[known]) || strings.TrimSpace(value) == "" {
			continue
		}
		reason := "is unknown"
		if slices.Contains(envname.Unsupported, name) {
			reason = "is not supported by this engine"
		} else if known >= 0 {
			reason = "concerns runs in a database of this engine"
		}
		warnings = append(warnings, fmt.Sprintf("environment variable %s %s and has no effect", name, reason))
	}
	slices.Sort(warnings)
	return slices.Compact(warnings)
}

// invalid returns the error for an invalid setting.
func invalid(s setting, hint string, args ...any) *problem.Error {
	return problem.New(problem.UsageError, "invalid value %q for %s", s.value, s.from).WithHint(hint, args...)
}

// choose returns the known value that equals the setting, in any letter case.
func choose[T ~string](s setting, known ...T) (T, error) {
	for _, k := range known {
		if strings.EqualFold(s.value, string(k)) {
			return k, nil
		}
	}
	return "", invalid(s, "Write %s.", problem.OrList(known))
}

// choice reads one of several words.
func choice[T ~string](into func(*Config) *T, known ...T) func(*Config, setting, Environment) error {
	return func(c *Config, s setting, _ Environment) (err error) {
		*into(c), err = choose(s, known...)
		return err
	}
}

// duration reads a time with its unit, or 0.
func duration(into func(*Config) *time.Duration, hint string) func(*Config, setting, Environment) error {
	return func(c *Config, s setting, _ Environment) error {
		d, err := time.ParseDuration(s.value)
		if err != nil || d < 0 {
			return invalid(s, "%s", hint)
		}
		*into(c) = d
		return nil
	}
}

// number reads a number above zero. Without a value it leaves 0, for the default of the engine.
func number[N int | int64](into func(*Config) *N) func(*Config, setting, Environment) error {
	return func(c *Config, s setting, _ Environment) error {
		if s.from == "" {
			return nil
		}
		n, err := s.count(false)
		*into(c) = N(n)
		return err
	}
}

// size is number for a number of bytes, which may have a unit.
func size(into func(*Config) *int64) func(*Config, setting, Environment) error {
	return func(c *Config, s setting, _ Environment) (err error) {
		if s.from != "" {
			*into(c), err = s.count(true)
		}
		return err
	}
}

// count reads a number above zero; a size may have a unit.
func (s setting) count(size bool) (int64, error) {
	digits, unit := strings.TrimSpace(s.value), int64(1)
	hint := "Write a number above zero, as in 50000."
	if size {
		hint = "Write a number of bytes above zero, as in 512MiB or 2GiB."
		for name, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
			if rest, ok := strings.CutSuffix(digits, name); ok {
				digits, unit = strings.TrimSpace(rest), n
			}
		}
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if size {
		n, err = strconv.ParseInt(digits, 10, 64)
	}
	if err != nil || n <= 0 || n > 1<<53/unit {
		return 0, invalid(s, "%s", hint)
	}
	return n * unit, nil
}
