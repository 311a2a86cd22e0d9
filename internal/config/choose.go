package config

import (
	"os"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
)

// storeSettings are the settings of the store. Which of them count depends on the others, so they are kept until all have been read.
type storeSettings struct {
	kind, path, url, urlFile       setting
	schema, conns, migrate, notify setting
}

// keep notes a setting of the store.
func keep(into func(*storeSettings) *setting) func(*Config, setting, Environment) error {
	return func(c *Config, s setting, _ Environment) error {
		*into(&c.settings) = s
		return nil
	}
}

// loadStore decides which store the settings select, and reads the settings of that store.
func (c *Config) loadStore(env Environment) (err error) {
	if c.Store, err = c.settings.chosen(); err != nil {
		return err
	}
	if c.Store != Postgres {
		for _, s := range []setting{c.settings.schema, c.settings.conns, c.settings.migrate, c.settings.notify} {
			if s.rank() == byFlag {
				return problem.New(problem.UsageError, "%s requires --store postgres", s.from).
					WithHint("Leave it out, or name a server with --store-url or --store-url-file.")
			}
		}
	}
	switch c.Store {
	case Memory:
		return nil
	case Postgres:
		return c.loadServer(env)
	}
	err = c.resolveStorePath(c.settings.path, env)
	if info, missing := os.Stat(c.StorePath); err == nil && missing == nil {
		env.notePermissions(c.StorePath, info, true)
		if n := links(info); n > 1 {
			env.notes.add("%s has %d hard links: processes that open it by different names lose each other's records; use one name, or symbolic links", c.StorePath, n)
		}
	}
	return err
}

// chosen returns the kind of the store. A path selects SQLite and an address selects Postgres, unless the kind has precedence, as a
// flag has over a variable. Two settings of the same precedence must not select two stores.
func (s *storeSettings) chosen() (StoreKind, error) {
	for _, other := range []setting{s.kind, s.path, s.urlFile} {
		if strings.Contains(other.value, "://") { // it may have a password, so the error does not repeat it
			return "", problem.New(problem.UsageError, "%s must not be an address", other.from).
				WithHint("Name a server with --%s or %s; write an address with a password to a file for --%s.", flagStoreURL, envname.StoreURL, flagStoreURLFile)
		}
	}
	address, err := s.address()
	if err != nil {
		return "", err
	}
	if best := max(s.path.rank(), address.rank()); best > s.kind.rank() {
		switch {
		case s.path.rank() == address.rank():
			return "", together(s.path, address, "Leave one of them out: they name two databases.")
		case s.path.rank() == best:
			return SQLite, nil
		}
		return Postgres, nil
	}
	kind, err := choose(s.kind, SQLite, Postgres, Memory)
	switch {
	case err != nil:
		return "", err
	case kind == Memory && s.path.rank() == s.kind.rank():
		return "", together(s.kind, s.path, forgets)
	case kind == Memory && address.rank() == s.kind.rank():
		return "", together(s.kind, address, forgets)
	case kind == SQLite && s.kind.rank() > byDefault && address.rank() == s.kind.rank():
		return "", together(s.kind, address, "Write --store postgres, or leave out the address.")
	case kind == Postgres && s.path.rank() == s.kind.rank():
		return "", together(s.kind, s.path, "Leave out the path: a PostgreSQL server is named by its address.")
	}
	return kind, nil
}

const forgets = "Leave one of them out: a store in memory loses its runs when the process ends."

// together is the error for two settings that exclude each other.
func together(a, b setting, hint string) error {
	return problem.New(problem.UsageError, "%s and %s cannot be given together", a.from, b.from).WithHint("%s", hint)
}

// address returns the setting that names the server: an address or the file that holds it.
func (s *storeSettings) address() (setting, error) {
	switch {
	case s.url.rank() == byDefault && s.urlFile.rank() == byDefault:
	case s.url.rank() == s.urlFile.rank():
		return setting{}, together(s.url, s.urlFile, "Leave one of them out.")
	case s.urlFile.rank() > s.url.rank():
		return s.urlFile, nil
	}
	return s.url, nil
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

// At returns the configuration with another store: the path of a database file, the address of a PostgreSQL server, or @ and the path of a
// file with such an address. flag is the flag that named it.
func (c *Config) At(flag, place string) (*Config, error) {
	other := *c
	s := storeSettings{schema: c.settings.schema, conns: c.settings.conns, migrate: c.settings.migrate, notify: c.settings.notify}
	named := setting{value: place, from: flag}
	if file, ok := strings.CutPrefix(place, "@"); ok {
		s.urlFile = setting{value: file, from: flag}
	} else if isServerAddress(place) {
		s.url = named
	} else {
		s.path = named
		for _, o := range []*setting{&s.schema, &s.conns, &s.migrate, &s.notify} { // they are those of the other store
			o.from = ""
		}
	}
	other.settings, other.server, other.placeFlag = s, server{}, flag
	other.StorePath, other.StorePathGiven, other.OtherStorePath, other.note = "", false, "", ""
	if err := other.loadStore(c.env); err != nil {
		return nil, err
	}
	other.Warnings = c.env.notes.take()
	return &other, nil
}

// ByFlag returns the configuration with a flag that hints name in the place of those of the settings.
func (c *Config) ByFlag(flag string) *Config {
	other := *c
	other.placeFlag = flag
	return &other
}

// isServerAddress reports whether a text is an address of a PostgreSQL server rather than a path.
func isServerAddress(text string) bool {
	before, _, found := strings.Cut(text, "=")
	return strings.Contains(text, "://") || found && !strings.ContainsAny(before, `/\`) || HasPassword(text)
}
