//go:build !nopostgres

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// sentinel is a password that must not be shown.
const sentinel = "s3ntinel-Pass/word"

// An address selects Postgres as a path selects SQLite; what has the higher precedence counts, and two stores of one precedence are an error.
func TestLoadChoosesBetweenFileAndServer(t *testing.T) {
	t.Parallel()
	const (
		url  = "postgres://kim@localhost/runs"
		name = "localhost:5432/runs, schema workflows_engine"
	)
	tests := []struct {
		name, variables string
		args            []string
		location        string
		refused         string
	}{
		{name: "address by variable", variables: "STORE_URL=" + url, location: name},
		{name: "address by flag", args: []string{"--store-url", url}, location: name},
		{name: "address in libpq's form", args: []string{"--store-url", "host=localhost dbname=runs user=kim"}, location: name},
		{name: "kind and address", variables: "STORE=postgres STORE_URL=" + url, location: name},
		{name: "path by flag, address by variable", variables: "STORE_URL=" + url, args: []string{"--db", "a.db"}, location: "/w/a.db"},
		{name: "path by flag, kind and address by variable", variables: "STORE=postgres STORE_URL=" + url, args: []string{"--db", "a.db"}, location: "/w/a.db"},
		{name: "address by flag, path by variable", variables: "STORE_PATH=/a.db", args: []string{"--store-url", url}, location: name},
		{name: "address by flag, memory by variable", variables: "STORE=memory", args: []string{"--store-url", url}, location: name},
		{name: "kind by flag, path by variable", variables: "STORE_PATH=/a.db STORE_URL=" + url, args: []string{"--store", "postgres"}, location: name},
		{name: "kind by flag, address by variable", variables: "STORE_PATH=/a.db STORE_URL=" + url, args: []string{"--store", "sqlite"}, location: "/a.db"},
		{name: "memory by flag, path and address by variable", variables: "STORE_PATH=/a.db STORE_URL=" + url, args: []string{"--store", "memory"}},
		{name: "memory and path by variable", variables: "STORE=memory STORE_PATH=/a.db",
			refused: "WORKFLOW_ENGINE_STORE and WORKFLOW_ENGINE_STORE_PATH cannot be given together"},
		{name: "kind by variable, path and address", variables: "STORE=postgres STORE_PATH=/a.db STORE_URL=" + url, refused: "WORKFLOW_ENGINE_STORE and WORKFLOW_ENGINE_STORE_PATH cannot be given together"},
		{name: "path and address", variables: "STORE_PATH=/a.db STORE_URL=" + url, refused: "WORKFLOW_ENGINE_STORE_PATH and WORKFLOW_ENGINE_STORE_URL cannot be given together"},
		{name: "path and address by flag", args: []string{"--db", "a.db", "--store-url", url}, refused: "--store-path and --store-url cannot be given together"},
		{name: "sqlite and address", args: []string{"--store", "sqlite", "--store-url", url}, refused: "--store and --store-url cannot be given together"},
		{name: "postgres and path", args: []string{"--store", "postgres", "--db", "a.db"}, refused: "--store and --store-path cannot be given together"},
		{name: "memory and address", args: []string{"--store", "memory", "--store-url", url}, refused: "--store and --store-url cannot be given together"},
		{name: "address and file", args: []string{"--store-url", url, "--store-url-file", "f"}, refused: "--store-url and --store-url-file cannot be given together"},
		{name: "no address", args: []string{"--store", "postgres"}, refused: "--store postgres requires the address of a server"},
		{name: "blank address", args: []string{"--store-url", " "}, refused: "--store-url must not be blank"},
		{name: "address as path", args: []string{"--db", "postgres://me:s3cret@h/x"}, refused: "--store-path must not be an address"},
		{name: "address as kind", args: []string{"--store", "postgres://me:s3cret@h/x"}, refused: "--store must not be an address"},
		{name: "address as kind by variable", variables: "STORE=postgres://me:s3cret@h/x", refused: "WORKFLOW_ENGINE_STORE must not be an address"},
		{name: "address as path by variable", variables: "STORE_PATH=postgres://me:s3cret@h/x", refused: "WORKFLOW_ENGINE_STORE_PATH must not be an address"},
		{name: "address as file", args: []string{"--store-url-file", "postgres://me:s3cret@h/x"}, refused: "--store-url-file must not be an address"},
		{name: "address as file by variable", variables: "STORE_URL_FILE=postgres://me:s3cret@h/x", refused: "WORKFLOW_ENGINE_STORE_URL_FILE must not be an address"},
		{name: "no file", args: []string{"--store-url-file", "missing"}, refused: "cannot read --store-url-file (/w/missing)"},
		{name: "schema without a server", args: []string{"--store-schema", "x"}, refused: "--store-schema requires --store postgres"},
		{name: "schema by variable without a server", variables: "STORE_SCHEMA=x STORE_PATH=/a.db", location: "/a.db"},
		{name: "schema", args: []string{"--store-url", url, "--store-schema", "team_1"}, location: "localhost:5432/runs, schema team_1"},
		{name: "invalid schema", args: []string{"--store-url", url, "--store-schema", "Team 1"}, refused: `invalid value "Team 1" for --store-schema`},
		{name: "reserved schema", args: []string{"--store-url", url, "--store-schema", "pg_x"}, refused: `invalid value "pg_x" for --store-schema`},
		{name: "few connections", args: []string{"--store-url", url, "--store-conns", "1"}, refused: `invalid value "1" for --store-conns`},
		{name: "migrate", args: []string{"--store-url", url, "--store-migrate", "on"}, refused: `invalid value "on" for --store-migrate`},
		{name: "notify", args: []string{"--store-url", url, "--store-notify", "auto"}, refused: `invalid value "auto" for --store-notify`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var variables []string
			for _, v := range strings.Fields(tt.variables) {
				variables = append(variables, "WORKFLOW_ENGINE_"+v)
			}
			c, err := load(t, environment(variables...), tt.args...)
			if tt.refused != "" {
				requireRefused(t, err, tt.refused)
				if strings.Contains(fmt.Sprintf("%+v", err), "s3cret") {
					t.Errorf("the error repeats the password: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if filepath.ToSlash(c.Location()) != tt.location || !strings.Contains(c.StoreLine(), c.Location()) {
				t.Errorf("got %q, want %q", c.Location(), tt.location)
			}
		})
	}
}

// A password on the command line is rejected, in whatever form it is written, and no error shows it.
func TestLoadRejectsPasswordsOnTheCommandLine(t *testing.T) {
	t.Parallel()
	const escaped = "s3ntinel-Pass%2Fword"
	for _, address := range []string{
		"postgres://kim:" + escaped + "@localhost/runs",
		"postgres://kim:" + sentinel + "@localhost/runs",
		"postgresql://kim:" + escaped + "@a:1,b:2/runs?target_session_attrs=read-write",
		"postgres://localhost/runs?user=kim&password=" + escaped,
		"postgres://localhost/runs?PASSWORD=" + escaped,
		"postgres://localhost/runs?pass%77ord=" + escaped,
		"postgres://localhost/runs?sslkey=k&sslpassword=" + escaped,
		"host=localhost password=" + sentinel,
		"host=localhost password = '" + sentinel + "' dbname=x",
		`password=\s3ntinel-Pass/word`,
		"kim:" + sentinel + "@localhost/runs",
		"postgres://kim:" + sentinel + "@[",
		"postgres://kim:?" + escaped + "@localhost/runs",
		"user=kim\vpassword=" + sentinel,
		"mysql://kim:" + sentinel + "@localhost",
	} {
		_, err := load(t, environment(), "--store-url", address)
		requireRefused(t, err, "--store-url must not contain a password")
		if text := errorText(err); strings.Contains(text, "s3ntinel") {
			t.Errorf("%s", text)
		}
		if !config.HasPassword(address) {
			t.Errorf("%s has a password", address)
		}
	}
	for _, address := range []string{"postgres://kim@localhost/runs", "postgres://localhost/runs?application_name=a:b@c", "host=localhost user=kim", "service=runs", "postgres:///runs?host=/run/postgresql"} {
		if config.HasPassword(address) {
			t.Errorf("%s has no password", address)
		}
	}
}

// A password in a variable or a file is used, and hidden from logs. An address that is invalid is not repeated.
func TestLoadHidesPasswords(t *testing.T) {
	t.Parallel()
	const address = "postgres://kim:s3ntinel-Pass%2Fword@db.example.com/runs"
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, variable := range []string{"WORKFLOW_ENGINE_STORE_URL=" + address, "WORKFLOW_ENGINE_STORE_URL_FILE=" + file} {
		c, err := load(t, environment(variable))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		c.Logger(&out).Error("connect", "error", "user kim, password "+sentinel+", as in "+address)
		if strings.Contains(out.String(), "s3ntinel") {
			t.Errorf("the log has the password: %s", out.String())
		}
		if shown := c.StoreLine() + strings.Join(c.StoreFlags(), " ") + c.PageFile(); strings.Contains(shown, "s3ntinel") {
			t.Errorf("shown: %s", shown)
		}
		if !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "db.example.com:5432 does not verify") }) {
			t.Errorf("warnings: %q", c.Warnings)
		}
	}
	c, err := load(t, environment("WORKFLOW_ENGINE_STORE_URL="+address+"?sslmode=verify-full"))
	if err != nil || len(c.Warnings) > 0 {
		t.Errorf("%v, %q", err, c.Warnings)
	}
	for _, invalid := range []string{"postgres://kim:" + sentinel + "@[", "postgres://kim:a@" + strings.ReplaceAll(sentinel, "/", "") + "@db.example.com/runs", "password=" + sentinel + " host=h sslmode=x"} {
		_, err := load(t, environment("WORKFLOW_ENGINE_STORE_URL="+invalid))
		requireRefused(t, err, "invalid address of a PostgreSQL server in WORKFLOW_ENGINE_STORE_URL")
		if text := errorText(err); strings.Contains(text, "s3ntinel") {
			t.Errorf("%s", text)
		}
	}
}

// The file with the address is rejected if other users may read or change it, or if it has more than the address.
func TestLoadChecksTheFileOfTheAddress(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it has other permissions")
	}
	file := filepath.Join(t.TempDir(), "url")
	for _, tt := range []struct {
		text    string
		mode    os.FileMode
		refused string
	}{
		{"host=localhost\n", 0o600, ""},
		{"host=localhost", 0o640, ""},
		{"host=localhost", 0o644, "may be read or changed by every user of this machine (mode 0644)"},
		{"host=localhost", 0o602, "may be read or changed by every user of this machine (mode 0602)"},
		{"", 0o600, "must have one line"},
		{"host=localhost\npassword=" + sentinel, 0o600, "must have one line"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, environment(), "--store-url-file", file)
		if tt.refused != "" {
			requireRefused(t, err, tt.refused)
			if strings.Contains(errorText(err), "s3ntinel") {
				t.Errorf("%s", errorText(err))
			}
		} else if err != nil || !slices.Equal(c.StoreFlags(), []string{"--store-url-file", file}) {
			t.Errorf("%v: %v", tt, err)
		}
	}
}

// errorText returns an error with its hint.
func errorText(err error) string {
	if p, ok := problem.As(err); ok {
		return err.Error() + "\n" + p.Hint
	}
	return err.Error()
}
