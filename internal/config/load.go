package config

import (
	"os"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
)

// Load reads flags, variables and defaults, in this order of precedence, and checks all of them. The error is a
// *problem.Error with code USAGE_ERROR.
func (f *Flags) Load(env Environment) (*Config, error) {
	return load(env,
		f.loadStore, f.loadProfile, f.loadWaitLimit, f.loadMinHostTimeout, f.loadElicit, f.loadDrain, f.loadLimits, f.loadMemory, f.loadAttemptLimits, f.loadDefaultRetry, f.loadRequests, f.loadLog, loadStepHandlers, loadStepCommands, loadLLM, loadA2A, f.loadManifest, f.loadAgents, f.loadWebhooks,
		loadSigning, f.loadWorkflowDir, loadWorkflowSources)
}

// LoadStore is Load for commands that look after stored runs and perform nothing. It reads what concerns the database,
// the limits and the log, and nothing of executors: a model's key that is gone must not stop a backup. Flags are checked
// all the same, since the user wrote them for this very command.
func (f *Flags) LoadStore(env Environment) (*Config, error) {
	flagsAlone := env
	flagsAlone.Variables = nil
	if _, err := load(flagsAlone, f.loadProfile, f.loadWaitLimit, f.loadMinHostTimeout, f.loadElicit, f.loadMemory, f.loadAttemptLimits, f.loadManifest); err != nil {
		return nil, err
	}
	return load(env, f.loadStore, f.loadLimits, f.loadLog)
}

// LoadWorkflowDir is Load for commands that look at definitions alone.
func (f *Flags) LoadWorkflowDir(env Environment) (*Config, error) {
	return load(env, f.loadLog, loadSigning, f.loadWorkflowDir)
}

// LoadLog is Load for commands that open no database, and for logging that Load has failed.
func (f *Flags) LoadLog(env Environment) (*Config, error) { return load(env, f.loadLog) }

func load(env Environment, parts ...func(*Config, Environment) error) (*Config, error) {
	env.secrets, env.notes = &secrets{}, &notes{}
	c := &Config{Warnings: ineffective(env.Variables), env: env}
	for _, part := range parts {
		if err := part(c, env); err != nil {
			return nil, err
		}
	}
	c.Warnings = append(c.Warnings, env.notes.take()...)
	return c, nil
}

func (f *Flags) loadStore(c *Config, env Environment) error {
	kind := f.pick(env, flagStore, envname.Store, string(SQLite))
	path := f.pick(env, flagStorePath, envname.StorePath, "")
	// A path given as a flag is a wish for a database, whatever the variable says.
	if strings.HasPrefix(path.from, "--") && !strings.HasPrefix(kind.from, "--") {
		kind = setting{value: string(SQLite)}
	}
	var err error
	if c.Store, err = choose(kind, SQLite, Memory); err != nil {
		return err
	}
	synchronous := f.pick(env, flagSynchronous, envname.Synchronous, string(Full))
	if c.Synchronous, err = choose(synchronous, Full, Normal); err != nil {
		return err
	}
	if c.Store == Memory {
		if path.value != "" {
			return problem.New(problem.UsageError, "%s asks for memory and %s for a file", kind.from, path.from).
				WithHint("Leave one of them out: memory forgets every run when the process ends.")
		}
		return nil
	}
	err = c.resolveStorePath(path, env)
	if info, missing := os.Stat(c.StorePath); err == nil && missing == nil {
		env.notePermissions(c.StorePath, info, true)
		if n := links(info); n > 1 {
			env.notes.add("%s has %d names (hard links): processes that open it by different names lose each other's steps; open it by one, or make the others symbolic links", c.StorePath, n)
		}
	}
	return err
}

func (c *Config) resolveStorePath(path setting, env Environment) error {
	if path.from != "" {
		switch {
		case strings.TrimSpace(path.value) == "":
			return problem.New(problem.UsageError, "%s is blank", path.from).WithHint("Name a file, as in runs.db.")
		case path.value == ":memory:":
			return refuse(path, "Write --store memory.")
		}
		c.StorePath, c.StorePathGiven = env.absolute(path.value), true
		return nil
	}
	return c.defaultStorePath(env)
}

func (f *Flags) loadProfile(c *Config, env Environment) error {
	s := f.pick(env, flagProfile, envname.Profile, "")
	if s.value == "" {
		return nil
	}
	// Unlike the other choices letters count: the protocol knows exactly "demo" (spec: cli-and-config, 4).
	if s.value != string(Demo) {
		return refuse(s, "The only profile is demo; leave it out to have missing executors refused.")
	}
	c.Profile = Demo
	return nil
}

func (f *Flags) loadWaitLimit(c *Config, env Environment) error {
	s := f.pick(env, flagWaitLimit, envname.WaitLimit, DefaultWaitLimit.String())
	limit, err := time.ParseDuration(s.value)
	if err != nil || limit < 0 {
		return refuse(s, "Write a time with its unit, as in 500ms, 20s or 2m, or 0 for calls that do not wait.")
	}
	c.WaitLimit = limit
	return nil
}

func (f *Flags) loadMinHostTimeout(c *Config, env Environment) error {
	s := f.pick(env, flagHostTimeout, envname.MinHostTimeout, DefaultMinHostTimeout.String())
	d, err := time.ParseDuration(s.value)
	if err != nil || d < 0 {
		return refuse(s, "Write a time with its unit, as in 90s or 10m, or 0 for the timeouts of definitions.")
	}
	c.MinHostTimeout = d
	return nil
}

func (f *Flags) loadElicit(c *Config, env Environment) (err error) {
	c.Elicit, err = choose(f.pick(env, flagElicit, envname.Elicit, string(elicit.Auto)), elicit.Auto, elicit.Never, elicit.Required)
	return err
}

func (f *Flags) loadDrain(c *Config, env Environment) error {
	s := f.pick(env, "", envname.Drain, "0")
	drain, err := time.ParseDuration(s.value)
	if err != nil || drain < 0 {
		return refuse(s, "Write a time with its unit, as in 20s or 2m, or 0 for attempts that are stopped at once.")
	}
	c.Drain = drain
	return nil
}

func (f *Flags) loadRequests(c *Config, env Environment) error {
	record, err := choose(f.pick(env, "", envname.RecordRequests, "on"), "on", "off")
	c.OmitRequests = record == "off"
	return err
}

func (f *Flags) loadLog(c *Config, env Environment) error {
	level := f.pick(env, flagLogLevel, envname.LogLevel, "warn")
	name, err := choose(level, "debug", "info", "warn", "error")
	if err != nil {
		return err
	}
	c.LogLevelGiven = level.from != ""
	// The names above are the ones that slog knows.
	if err := c.LogLevel.UnmarshalText([]byte(name)); err != nil {
		return refuse(level, "%s", err)
	}
	c.LogFormat, err = choose(f.pick(env, flagLogFormat, envname.LogFormat, string(LogText)), LogText, LogJSON)
	return err
}
