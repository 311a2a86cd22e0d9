package config

import (
	"os"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// loadStore reads the path of the database, after the kind of the store.
func loadStore(c *Config, path setting, env Environment) error {
	kind := c.kind
	// A path given as a flag is a wish for a database, whatever the variable says.
	if strings.HasPrefix(path.from, "--") && !strings.HasPrefix(kind.from, "--") {
		kind = setting{value: string(SQLite)}
	}
	var err error
	if c.Store, err = choose(kind, SQLite, Memory); err != nil {
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

func loadProfile(c *Config, s setting, _ Environment) error {
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
