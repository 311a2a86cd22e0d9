package config

import (
	"os"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// loadStore reads the path of the database, after the kind of the store.
func loadStore(c *Config, path setting, env Environment) error {
	kind := c.kind
	// A path given as a flag selects a database, whatever the variable is.
	if strings.HasPrefix(path.from, "--") && !strings.HasPrefix(kind.from, "--") {
		kind = setting{value: string(SQLite)}
	}
	var err error
	if c.Store, err = choose(kind, SQLite, Memory); err != nil {
		return err
	}
	if c.Store == Memory {
		if path.value != "" {
			return problem.New(problem.UsageError, "%s and %s cannot be given together", kind.from, path.from).
				WithHint("Leave one of them out: a store in memory loses its runs when the process ends.")
		}
		return nil
	}
	err = c.resolveStorePath(path, env)
	if info, missing := os.Stat(c.StorePath); err == nil && missing == nil {
		env.notePermissions(c.StorePath, info, true)
		if n := links(info); n > 1 {
			env.notes.add("%s has %d hard links: processes that open it by different names lose each other's records; use one name, or symbolic links", c.StorePath, n)
		}
	}
	return err
}

func (c *Config) resolveStorePath(path setting, env Environment) error {
	if path.from != "" {
		switch {
		case strings.TrimSpace(path.value) == "":
			return problem.New(problem.UsageError, "%s must not be blank", path.from).WithHint("Name a file, as in runs.db.")
		case path.value == ":memory:":
			return invalid(path, "Write --store memory.")
		}
		c.StorePath, c.StorePathGiven = env.absolute(path.value), true
		return nil
	}
	return c.defaultStorePath(env)
}

func loadProfile(c *Config, s setting, _ Environment) error {
	if s.value == "" {
		return nil
	}
	// Unlike in other choices, letter case counts: the protocol defines exactly "demo" (spec: cli-and-config, 4).
	if s.value != string(Demo) {
		return invalid(s, "Write demo, or leave it out: nodes without an executor are then rejected.")
	}
	c.Profile = Demo
	return nil
}

func loadRequests(c *Config, s setting, _ Environment) error {
	record, err := choose(s, "on", "off")
	c.OmitRequests = record == "off"
	return err
}

func loadLogLevel(c *Config, s setting, _ Environment) error {
	name, err := choose(s, "debug", "info", "warn", "error")
	if err != nil {
		return err
	}
	c.LogLevelGiven = s.from != ""
	return c.LogLevel.UnmarshalText([]byte(name)) // slog knows these names
}
