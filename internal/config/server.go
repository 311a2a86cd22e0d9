package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// DefaultSchema is the schema of the runs on a PostgreSQL server.
const DefaultSchema = "workflows_engine"

// server holds the settings of a store on a PostgreSQL server.
type server struct {
	// url is the address: a URL, or pairs of keys and values as libpq reads them. It may hold a password and is never shown.
	url    string
	schema string
	conns  int
	// frozen rejects an older schema instead of migrating it. polls turns notifications off.
	frozen, polls bool
	// target is where the address leads.
	target target
	// flags let another command reach the same runs.
	flags []string
	// pages is the file with the addresses of pages, "" without a home directory.
	pages string
}

// target is where an address leads, as far as it may be shown.
type target struct {
	// name is "host/database, schema name".
	name string
	// unverified are the hosts, local ones excluded, whose connections do not verify the server.
	unverified []string
	// password is the password of the connection, from the address or from libpq's variables and files; "" without one.
	password string
}

// ServerState describes a PostgreSQL server and what it allows the user of its address. The fields are those of historypg.Diagnosis.
type ServerState struct {
	Version              string
	Major                int
	Standby, Synchronous bool
	Lag                  history.Lag
	ReadOnly             bool
	UTF8                 bool
	RoundTrip, Ahead     time.Duration
	Left, Most           int
	SchemaExists         bool
	MayCreate            bool
	Lacking              []string
}

// Connections is the most that this process opens to the server of Postgres: those of its pool, and one that listens.
func (c *Config) Connections() int {
	if c.server.polls {
		return c.server.conns
	}
	return c.server.conns + 1
}

// loadServer reads the settings of Postgres.
func (c *Config) loadServer(env Environment) error {
	s := &c.settings
	address, err := s.address()
	if err != nil {
		return err
	}
	v := &c.server
	switch {
	case address.from == "":
		return problem.New(problem.UsageError, "--store postgres requires the address of a server").
			WithHint("Set %s, as in postgres://me@db.example.com/runs, or name a file with --store-url-file.", envname.StoreURL)
	case strings.TrimSpace(address.value) == "":
		return problem.New(problem.UsageError, "%s must not be blank", address.from).
			WithHint("Write an address, as in postgres://me@db.example.com/runs.")
	case address == s.urlFile:
		file := env.absolute(address.value)
		if v.url, err = env.readAddress(address.from, file); err != nil {
			return err
		}
		v.flags = []string{"--" + flagStoreURLFile, file}
	default:
		v.url = strings.TrimSpace(address.value)
	}
	found := passwords(v.url)
	for _, p := range found {
		env.secrets.add(p)
		env.secrets.add(url.QueryEscape(p))
		env.secrets.add(url.PathEscape(p))
	}
	switch {
	case len(found) > 0 && address == s.url && address.rank() == byFlag:
		hint := "Set " + envname.StoreURL + ", or write the address to a file for --" + flagStoreURLFile
		if address.from != "--"+flagStoreURL {
			hint = "Write the address to a file and name that: " + address.from + " @FILE"
		}
		return problem.New(problem.UsageError, "%s must not contain a password: every user of this machine can read command lines", address.from).
			WithHint("%s; or put the password into libpq's password file (~/.pgpass).", hint)
	case address == s.url && len(found) == 0:
		v.flags = []string{"--" + flagStoreURL, v.url}
	case address == s.url: // a printed command has no password
		v.flags = []string{"--" + flagStoreURLFile, "FILE"}
	}
	if v.schema = strings.TrimSpace(s.schema.value); !schemaName.MatchString(v.schema) ||
		strings.HasPrefix(v.schema, "pg_") || v.schema == "information_schema" {
		return invalid(s.schema, "Write at most 50 lower-case letters, digits and underscores, not beginning with a digit or pg_, as in %s.", DefaultSchema)
	}
	if v.schema != DefaultSchema {
		v.flags = append(v.flags, "--store-schema", v.schema)
	}
	n, err := s.conns.count(false)
	if v.conns = int(n); err != nil || n < 2 || n > 1000 {
		return invalid(s.conns, "Write a number from 2 to 1000, as in 8.")
	}
	migrate, err := choose(s.migrate, "auto", "off")
	if err != nil {
		return err
	}
	notify, err := choose(s.notify, "on", "off")
	if err != nil {
		return err
	}
	v.frozen, v.polls = migrate == "off", notify == "off"
	err = errNotAddress
	if wellFormed(v.url) {
		v.target, err = targetOf(v.url, v.schema)
	}
	switch {
	case errors.Is(err, problem.Unsupported):
		return err
	case err != nil:
		return problem.New(problem.UsageError, "invalid address of a PostgreSQL server in %s", address.from).WithCause(errors.Unwrap(err)).
			WithHint("Write a URL, as in postgres://me@db.example.com/runs?sslmode=verify-full, or keys and values, as in host=db.example.com dbname=runs.")
	}
	env.secrets.add(v.target.password)
	for _, host := range v.target.unverified {
		env.notes.add("the connection to the PostgreSQL server %s does not verify the server: add sslmode=verify-full to the address", host)
	}
	if folder := env.dataFolder(); folder != "" {
		v.pages = filepath.Join(folder, "postgres-"+shortHash(v.target.name)+".page")
	}
	return nil
}

// schemaName is the form of the names of schemas that need no quotes in SQL. Names of channels are longer, and PostgreSQL's limit is 63.
var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,49}$`)

// readAddress reads the file of --store-url-file, which holds one line. A file that other users may read or change is rejected.
func (e Environment) readAddress(from, file string) (string, error) {
	fail := func(err error) error {
		return problem.New(problem.UsageError, "cannot read %s (%s)", from, file).WithCause(err).
			WithHint("Name a file with the address of a PostgreSQL server in one line.")
	}
	f, info, err := regularfile.Open(file)
	if err != nil {
		return "", fail(err)
	}
	if mode := info.Mode().Perm(); mode&0o006 != 0 && e.GOOS != "windows" {
		_ = f.Close()
		return "", problem.New(problem.UsageError, "%s (%s) may be read or changed by every user of this machine (mode %04o)", from, file, mode).
			WithHint("chmod 600 %s", file)
	}
	text, err := readSecret(f, maxSecretBytes)
	switch {
	case err != nil:
		return "", fail(err)
	case text == "" || strings.ContainsAny(text, "\r\n"):
		return "", problem.New(problem.UsageError, "%s (%s) must have one line, with an address", from, file).
			WithHint("Write an address, as in postgres://me@db.example.com/runs.")
	}
	return text, nil
}

var errNotAddress = errors.New("not an address")

// addressKey is the form of a key in an address of pairs.
var addressKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// wellFormed reports whether an address is a URL of PostgreSQL or consists of keys and values. The driver takes any text before a sign as a key:
// a URL without its scheme would lead to a server on this machine.
func wellFormed(address string) bool {
	if scheme, _, ok := strings.Cut(address, "://"); ok && !strings.ContainsAny(scheme, "= ") {
		return scheme == "postgres" || scheme == "postgresql"
	}
	found := false
	for key := range pairs(address) {
		if found = true; !addressKey.MatchString(key) {
			return false
		}
	}
	return found
}

// HasPassword reports whether an address of a PostgreSQL server holds a password.
func HasPassword(address string) bool { return len(passwords(address)) > 0 }

// secretKeys are the keys of an address whose values are secrets.
var secretKeys = []string{"password", "sslpassword"}

// passwords returns the passwords in an address. It also finds them in an address that is otherwise invalid.
func passwords(address string) (found []string) {
	note := func(key, value string) {
		for _, k := range secretKeys {
			if strings.EqualFold(strings.TrimSpace(key), k) && value != "" {
				found = append(found, value)
			}
		}
	}
	unescape := func(text string) string {
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
		return text
	}
	scheme, rest, isURL := strings.Cut(address, "://")
	if !isURL || strings.ContainsAny(scheme, "= ") {
		for key, value := range pairs(address) {
			note(key, value)
		}
		if user, _, ok := cutLast(address, "@"); ok && !wellFormed(address) { // a URL without its scheme
			if _, password, ok := strings.Cut(user, ":"); ok {
				found = append(found, password)
			}
		}
		return found
	}
	// As libpq reads a URL, the first @ or slash ends what is before the host.
	var user string
	if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
		user, rest = rest[:i], rest[i+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	if before, _, ok := cutLast(rest, "@"); ok && user == "" { // a slash in the password was not escaped
		user = before
	}
	if _, password, ok := strings.Cut(user, ":"); ok && password != "" {
		found = append(found, unescape(password))
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		note(unescape(key), unescape(value))
	}
	return found
}

// cutLast cuts a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// addressSpace are the characters that separate pairs.
const addressSpace = " \t\n\r\v\f"

// pairs yields the keys and values of an address in libpq's other form: key=value, with optional spaces around the sign, quotes around the
// value, and a backslash before a character that counts as it is.
func pairs(text string) func(yield func(key, value string) bool) {
	return func(yield func(key, value string) bool) {
		for {
			key, rest, ok := strings.Cut(text, "=")
			if !ok {
				return
			}
			rest = strings.TrimLeft(rest, addressSpace)
			quoted := strings.HasPrefix(rest, "'")
			if quoted {
				rest = rest[1:]
			}
			var value strings.Builder
			i := 0
			for ; i < len(rest); i++ {
				if rest[i] == '\\' && i+1 < len(rest) {
					i++
				} else if quoted && rest[i] == '\'' || !quoted && strings.IndexByte(addressSpace, rest[i]) >= 0 {
					break
				}
				value.WriteByte(rest[i])
			}
			if !yield(strings.TrimSpace(key), value.String()) {
				return
			}
			text = rest[min(i+1, len(rest)):]
		}
	}
}
