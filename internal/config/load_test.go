package config_test

import (
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver/elicit"
	"github.com/workflows-engine/workflows-engine/internal/signing"
)

// load reads a configuration from flags and variables in a made-up environment.
func load(t *testing.T, env config.Environment, args ...string) (*config.Config, error) {
	t.Helper()
	set := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags := config.RegisterServer(set)
	if err := set.Parse(args); err != nil {
		t.Fatalf("parse %q: %v", args, err)
	}
	return flags.Load(env)
}

// environment is a Linux user's, with a few files.
func environment(variables ...string) config.Environment {
	files := map[string]string{
		filepath.FromSlash("/w/handlers.json"): `{"urn:x":{"a":1}}`,
		filepath.FromSlash("/w/tools.json"):    `{"mcpServers":{"s":{"command":"node","x":1}},"delegateAgents":{"a":{"server":"s","tool":"t"}}}`,
		filepath.FromSlash("/w/broken.json"):   `{"urn:x":`,
	}
	return config.Environment{
		Variables: variables,
		GOOS:      "linux",
		Home:      filepath.FromSlash("/home/kim"),
		Directory: filepath.FromSlash("/w"),
		ReadFile: func(path string) ([]byte, error) {
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		},
	}
}

func TestLoadStore(t *testing.T) {
	t.Parallel()
	const byDefault = "/home/kim/.local/share/workflows-engine/runs.db"
	tests := []struct {
		name      string
		variables []string
		args      []string
		kind      config.StoreKind
		path      string
		given     bool
		refused   string // part of the message
	}{
		{name: "nothing said", kind: config.SQLite, path: byDefault},
		{name: "an XDG folder without a database", variables: []string{"XDG_DATA_HOME=/data"}, kind: config.SQLite,
			path: byDefault},
		{name: "a relative XDG folder is ignored", variables: []string{"XDG_DATA_HOME=data"}, kind: config.SQLite,
			path: byDefault},
		{name: "memory by flag", args: []string{"--store", "memory"}, kind: config.Memory},
		{name: "flag with equals sign", args: []string{"--store=memory"}, kind: config.Memory},
		{name: "letters in any case", args: []string{"--store", "Memory"}, kind: config.Memory},
		{name: "memory by variable", variables: []string{"WORKFLOW_ENGINE_STORE= memory "}, kind: config.Memory},
		{name: "flag wins", variables: []string{"WORKFLOW_ENGINE_STORE=memory"}, args: []string{"--store", "sqlite"},
			kind: config.SQLite, path: byDefault},
		{name: "blank variable is unset", variables: []string{"WORKFLOW_ENGINE_STORE=  "}, kind: config.SQLite,
			path: byDefault},
		{name: "last of two variables", variables: []string{"WORKFLOW_ENGINE_STORE=sqlite", "WORKFLOW_ENGINE_STORE=memory"},
			kind: config.Memory},
		{name: "a path means sqlite", args: []string{"--store-path", "runs.db"}, kind: config.SQLite,
			path: "/w/runs.db", given: true},
		{name: "a path flag wins over the variable's memory", variables: []string{"WORKFLOW_ENGINE_STORE=memory"},
			args: []string{"--store-path", "runs.db"}, kind: config.SQLite, path: "/w/runs.db", given: true},
		{name: "path by variable", variables: []string{"WORKFLOW_ENGINE_STORE_PATH=/x/y.db"}, kind: config.SQLite,
			path: "/x/y.db", given: true},
		{name: "home", args: []string{"--store-path", "~/a.db"}, kind: config.SQLite, path: "/home/kim/a.db", given: true},
		{name: "unknown kind", args: []string{"--store", "sqllite"}, refused: `invalid value "sqllite" for --store`},
		{name: "unknown kind by variable", variables: []string{"WORKFLOW_ENGINE_STORE=redis"},
			refused: `invalid value "redis" for WORKFLOW_ENGINE_STORE`},
		{name: "memory with a path", args: []string{"--store", "memory", "--store-path", "x.db"},
			refused: "--store and --store-path cannot be given together"},
		{name: "sqlite's own name for memory", args: []string{"--store-path", ":memory:"}, refused: ":memory:"},
		{name: "blank path", args: []string{"--store-path", " "}, refused: "--store-path must not be blank"},
		{name: "unknown synchronous", args: []string{"--synchronous", "off"}, refused: `"off" for --synchronous`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := load(t, environment(tt.variables...), tt.args...)
			if tt.refused != "" {
				requireRefused(t, err, tt.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Store != tt.kind || filepath.ToSlash(c.StorePath) != tt.path || c.StorePathGiven != tt.given {
				t.Errorf("got %s %q given=%v, want %s %q given=%v", c.Store, c.StorePath, c.StorePathGiven,
					tt.kind, tt.path, tt.given)
			}
		})
	}
}

func TestLoadDefaultFolder(t *testing.T) {
	t.Parallel()
	tests := []struct {
		goos, home string
		variables  []string
		want       string
	}{
		{"darwin", "/Users/kim", nil, "/Users/kim/Library/Application Support/workflows-engine/runs.db"},
		{"windows", "/Users/kim", []string{"LOCALAPPDATA=/Users/kim/L"}, "/Users/kim/L/workflows-engine/runs.db"},
		{"windows", "/Users/kim", nil, "/Users/kim/AppData/Local/workflows-engine/runs.db"},
		{"freebsd", "/home/kim", nil, "/home/kim/.local/share/workflows-engine/runs.db"},
	}
	for _, tt := range tests {
		env := config.Environment{Variables: tt.variables, GOOS: tt.goos, Home: tt.home}
		c, err := load(t, env)
		if err != nil {
			t.Fatal(err)
		}
		if got := filepath.ToSlash(c.StorePath); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.goos, got, tt.want)
		}
	}
	_, err := load(t, config.Environment{GOOS: "linux"})
	requireRefused(t, err, "the home directory is unknown")
}

func TestLoadRest(t *testing.T) {
	t.Parallel()
	c, err := load(t, environment())
	if err != nil {
		t.Fatal(err)
	}
	if c.Profile != config.NoProfile || c.WaitLimit != 20*time.Second || c.LogLevel != slog.LevelWarn ||
		c.LogFormat != config.LogText || c.Synchronous != config.Full || c.Elicit != elicit.Auto || len(c.Warnings) != 0 {
		t.Errorf("defaults: %+v", c)
	}

	c, err = load(t, environment("WORKFLOW_ENGINE_PROFILE=demo", "WORKFLOW_ENGINE_LOG_FORMAT=json",
		"WORKFLOW_ENGINE_WAIT_LIMIT=2m", "WORKFLOW_ENGINE_ELICIT=never"), "--log-level", "DEBUG", "--synchronous", "normal", "--wait-limit", "1500ms", "--elicit", "Required")
	if err != nil {
		t.Fatal(err)
	}
	if c.Profile != config.Demo || c.WaitLimit != 1500*time.Millisecond || c.LogLevel != slog.LevelDebug ||
		c.LogFormat != config.LogJSON || c.Synchronous != config.Normal || c.Elicit != elicit.Required {
		t.Errorf("set: %+v", c)
	}
	if c, err := load(t, environment("WORKFLOW_ENGINE_ELICIT=never")); err != nil || c.Elicit != elicit.Never {
		t.Errorf("by the variable: %v, %v", c, err)
	}

	// 0 is a limit: calls then do not wait, which the runner is told with a negative one.
	for wait, want := range map[string]time.Duration{"0": -1, "0s": -1, "20s": 20 * time.Second} {
		c, err := load(t, environment(), "--wait-limit", wait)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.RunnerOptions(config.Executors{}, nil).WaitLimit; got != want {
			t.Errorf("--wait-limit %s: the runner waits %v, not %v", wait, got, want)
		}
	}

	for _, tt := range []struct {
		variables, args []string
		want            string
	}{
		{args: []string{"--profile", "Demo"}, want: `invalid value "Demo" for --profile`},
		{variables: []string{"WORKFLOW_ENGINE_PROFILE=prod"}, want: `invalid value "prod" for WORKFLOW_ENGINE_PROFILE`},
		{args: []string{"--wait-limit", "20"}, want: `invalid value "20" for --wait-limit`},
		{args: []string{"--wait-limit", "-1s"}, want: `invalid value "-1s" for --wait-limit`},
		{variables: []string{"WORKFLOW_ENGINE_ELICIT=sometimes"}, want: `invalid value "sometimes" for WORKFLOW_ENGINE_ELICIT`},
		{args: []string{"--log-level", "loud"}, want: `invalid value "loud" for --log-level`},
		{args: []string{"--log-format", "xml"}, want: `invalid value "xml" for --log-format`},
	} {
		_, err := load(t, environment(tt.variables...), tt.args...)
		requireRefused(t, err, tt.want)
	}
}

func TestLoadWarnsOfVariablesWithoutEffect(t *testing.T) {
	t.Parallel()
	c, err := load(t, environment("WORKFLOW_ENGINE_STORE_PAHT=x.db", "WORKFLOW_ENGINE_STORES=", "WORKFLOW_OTHER=1",
		"WORKFLOW_ENGINE_AUTH_TOKENS=[]"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"environment variable WORKFLOW_ENGINE_AUTH_TOKENS is not supported by this engine and has no effect",
		"environment variable WORKFLOW_ENGINE_STORE_PAHT is unknown and has no effect",
	}
	if !slices.Equal(c.Warnings, want) {
		t.Errorf("warnings: %q", c.Warnings)
	}
}

// Commands that look after runs read nothing of what performs them, but refuse flags that they cannot understand.
func TestLoadStoreAlone(t *testing.T) {
	t.Parallel()
	env := environment("WORKFLOW_ENGINE_STORE_PATH=/d/runs.db", "WORKFLOW_ENGINE_LOG_FORMAT=json", "WORKFLOW_ENGINE_MAX_VISITS=7",
		"WORKFLOW_ENGINE_PROFILE=prod", "WORKFLOW_ENGINE_WAIT_LIMIT=soon", "WORKFLOW_ENGINE_STEP_HANDLERS=broken.json",
		"WORKFLOW_ENGINE_STEP_COMMANDS=gone.json", `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"http://x/v1","keyRef":"file:gone"}`,
		"WORKFLOW_ENGINE_A2A_CONFIG=[", "WORKFLOW_ENGINE_MCP_CONFIG=gone.json", "WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE=off",
		"WORKFLOW_ENGINE_WORKFLOW_SOURCES=[")
	if _, err := load(t, env); err == nil {
		t.Error("a full load took all of it")
	}
	loadStore := func(args ...string) (*config.Config, error) {
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags := config.Register(set)
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		return flags.LoadStore(env)
	}
	c, err := loadStore()
	if err != nil {
		t.Fatal(err)
	}
	if c.StorePath != filepath.FromSlash("/d/runs.db") || c.LogFormat != config.LogJSON || c.Limits.Visits != 7 || c.LLM != nil {
		t.Errorf("got %+v", c)
	}
	for _, args := range [][]string{{"--profile", "prod"}, {"--mcp-config", "gone.json"}, {"--max-visits", "0"}, {"--store", "disk"}} {
		_, err := loadStore(args...)
		requireRefused(t, err, args[0])
	}
}

func TestLoadSigning(t *testing.T) {
	t.Parallel()
	const keys = `{"k":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	for _, variables := range [][]string{
		{"WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE= Require ", "WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS=" + keys},
		{"WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE=require", "WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS=keys.json"},
		{"WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE=require", "WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS=file:keys.json"},
	} {
		env := environment(variables...)
		env.ReadFile = func(string) ([]byte, error) { return []byte(keys), nil }
		c, err := load(t, env)
		if err != nil {
			t.Fatalf("%q: %v", variables, err)
		}
		if c.Signing.Mode != signing.Require || len(c.Signing.Keys) != 1 {
			t.Errorf("%q: %+v", variables, c.Signing)
		}
	}
	for variable, want := range map[string]string{
		"WORKFLOW_ENGINE_DEFINITION_SIGNING_MODE=off":       `invalid value "off"`,
		"WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS=missing.json":  "cannot read",
		`WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS={"k":"short"}`: "cannot be used",
	} {
		_, err := load(t, environment(variable))
		requireRefused(t, err, want)
	}
}

func TestLoadStepHandlers(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`{"urn:x":{"a":1}}`, "handlers.json", " handlers.json "} {
		c, err := load(t, environment("WORKFLOW_ENGINE_STEP_HANDLERS="+value))
		if err != nil {
			t.Fatalf("%s: %v", value, err)
		}
		if output, ok := c.StepHandlers["urn:x"].(map[string]any); !ok || output["a"] != 1.0 {
			t.Errorf("%s: %v", value, c.StepHandlers)
		}
	}
	for value, want := range map[string]string{
		`[1]`:           "must be a JSON object",
		`{"a":1}{}`:     "invalid JSON",
		`{"a":1,"a":2}`: "invalid JSON",
		"missing.json":  "cannot read",
		"broken.json":   "invalid JSON in WORKFLOW_ENGINE_STEP_HANDLERS (broken.json)",
		`{" ":1}`:       "blank",
	} {
		_, err := load(t, environment("WORKFLOW_ENGINE_STEP_HANDLERS="+value))
		requireRefused(t, err, want)
	}
}

// requireRefused checks that a configuration was refused as wrong usage, with a message that holds the text.
func requireRefused(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.Is(err, problem.UsageError) || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want one with %q", err, want)
	}
}

// TestRequestsAreRecordedUnlessSwitchedOff reads WORKFLOW_ENGINE_RECORD_REQUESTS.
func TestRequestsAreRecordedUnlessSwitchedOff(t *testing.T) {
	t.Parallel()
	for value, omit := range map[string]bool{"": false, "on": false, "OFF": true} {
		c, err := load(t, config.Environment{Variables: []string{"WORKFLOW_ENGINE_RECORD_REQUESTS=" + value, "WORKFLOW_ENGINE_STORE=memory"}})
		if err != nil || c.RunnerOptions(config.Executors{}, nil).OmitRequests != omit {
			t.Errorf("%q: %+v, %v", value, c, err)
		}
	}
	if _, err := load(t, config.Environment{Variables: []string{"WORKFLOW_ENGINE_RECORD_REQUESTS=no", "WORKFLOW_ENGINE_STORE=memory"}}); err == nil {
		t.Error("another word is understood")
	}
}

// TestDrainIsATime reads WORKFLOW_ENGINE_DRAIN.
func TestDrainIsATime(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{"": 0, "0": 0, "20s": 20 * time.Second, "2m": 2 * time.Minute, "20": -1, "-1s": -1, "soon": -1} {
		c, err := load(t, config.Environment{Variables: []string{"WORKFLOW_ENGINE_DRAIN=" + value, "WORKFLOW_ENGINE_STORE=memory"}})
		switch {
		case want < 0 && !errors.Is(err, problem.UsageError):
			t.Errorf("%q was accepted", value)
		case want >= 0 && (err != nil || c.RunnerOptions(config.Executors{}, nil).Drain != want):
			t.Errorf("%q: %v", value, err)
		}
	}
}

// TestLocated: a setting is named with the file that it was read from, by a flag or a variable; JSON text has none.
func TestLocated(t *testing.T) {
	t.Parallel()
	env := environment("WORKFLOW_ENGINE_STEP_HANDLERS=handlers.json", `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"http://x/v1","noAuth":true}`)
	c, err := load(t, env, "--mcp-config", "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{
		"WORKFLOW_ENGINE_STEP_COMMANDS or WORKFLOW_ENGINE_STEP_HANDLERS": "WORKFLOW_ENGINE_STEP_COMMANDS or WORKFLOW_ENGINE_STEP_HANDLERS (handlers.json)",
		"WORKFLOW_ENGINE_MCP_CONFIG":                                     "WORKFLOW_ENGINE_MCP_CONFIG (tools.json)", "WORKFLOW_ENGINE_LLM_CONFIG": "WORKFLOW_ENGINE_LLM_CONFIG",
	} {
		if got := c.Located(setting); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
