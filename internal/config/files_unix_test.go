//go:build unix

package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/config"
)

// inFolder is the environment of this system in a folder of its own, with the umask out of the way.
func inFolder(t *testing.T, files map[string]os.FileMode, variables ...string) config.Environment {
	t.Helper()
	env := config.System()
	env.Directory, env.Variables = t.TempDir(), append(variables, "WORKFLOW_ENGINE_STORE_PATH=runs.db")
	for name, mode := range files {
		path, text := filepath.Join(env.Directory, name), "{}"
		if strings.HasSuffix(name, ".key") {
			text = "a-key-of-some-length"
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// TestSettingsThatNeverEndAreRefused: keys and settings are files of a bounded length, and nothing that is opened waits.
func TestSettingsThatNeverEndAreRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1<<17)
	for name, variable := range map[string]string{
		"key from a pipe":              `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://m.example","apiKeySecretRef":"file:pipe"}`,
		"key from a file that is long": `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://m.example","apiKeySecretRef":"file:long"}`,
		"settings from a pipe":         "WORKFLOW_ENGINE_LLM_CONFIG=pipe",
		"settings from a device":       "WORKFLOW_ENGINE_LLM_CONFIG=/dev/zero",
		"public keys from a device":    "WORKFLOW_ENGINE_SIGNING_PUBLIC_KEYS=/dev/zero",
		"manifest from a pipe":         "WORKFLOW_ENGINE_MCP_CONFIG=pipe",
	} {
		env := inFolder(t, nil, variable)
		if err := syscall.Mkfifo(filepath.Join(env.Directory, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(env.Directory, "long"), []byte(long), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := load(t, env)
		if err == nil || !strings.Contains(fullText(err), "not a regular file") && !strings.Contains(fullText(err), "larger than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fullText is an error with what was found.
func fullText(err error) string { return fmt.Sprintf("%v %+v", err, err) }

// TestLoosePermissionsAreWarnedOf: of what others may change, and of secrets and databases that they may read.
func TestLoosePermissionsAreWarnedOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		files    map[string]os.FileMode
		variable string
		want     []string
	}{
		{map[string]os.FileMode{"handlers.json": 0o666}, "WORKFLOW_ENGINE_STEP_HANDLERS=handlers.json", []string{"handlers.json is writable by every user of this machine (mode 0666)"}},
		{map[string]os.FileMode{"handlers.json": 0o644}, "WORKFLOW_ENGINE_STEP_HANDLERS=handlers.json", nil},
		{map[string]os.FileMode{"m.key": 0o666}, `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://m.example","apiKeySecretRef":"file:m.key"}`, []string{"m.key is writable by every"}},
		{map[string]os.FileMode{"m.key": 0o644}, `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://m.example","apiKeySecretRef":"file:m.key"}`, []string{"m.key is readable by every"}},
		{map[string]os.FileMode{"m.key": 0o640, "runs.db": 0o600}, `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://m.example","apiKeySecretRef":"file:m.key"}`, nil},
		{map[string]os.FileMode{"runs.db": 0o666}, "", []string{"runs.db is writable by every"}},
		{map[string]os.FileMode{"runs.db": 0o644}, "", []string{"runs.db is readable by every"}},
	} {
		c, err := load(t, inFolder(t, tt.files, tt.variable))
		if err != nil {
			t.Fatal(err)
		}
		if len(c.Warnings) != len(tt.want) || len(tt.want) > 0 && !strings.Contains(c.Warnings[0], tt.want[0]) {
			t.Errorf("%v: %q, want %q", tt.files, c.Warnings, tt.want)
		}
	}
}

// TestALooseWorkflowFolderIsWarnedOf: who can write to it decides what runs under its names.
func TestALooseWorkflowFolderIsWarnedOf(t *testing.T) {
	t.Parallel()
	for mode, warned := range map[os.FileMode]int{0o777: 1, 0o755: 0} {
		env := inFolder(t, nil, "WORKFLOW_ENGINE_WORKFLOW_DIR=flows")
		folder := filepath.Join(env.Directory, "flows")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, env)
		if err != nil || c.WorkflowDir != folder || len(c.Warnings) != warned {
			t.Errorf("%v: %q, %q, %v", mode, c.WorkflowDir, c.Warnings, err)
		}
	}
}

// TestHardLinksOfTheDatabaseAreWarnedOf: its WAL lies beside the name by which it is opened.
func TestHardLinksOfTheDatabaseAreWarnedOf(t *testing.T) {
	t.Parallel()
	env := inFolder(t, map[string]os.FileMode{"runs.db": 0o600}, "")
	c, err := load(t, env)
	if err != nil || len(c.Warnings) > 0 {
		t.Fatalf("%q, %v", c.Warnings, err)
	}
	if err := os.Link(c.StorePath, c.StorePath+".other"); err != nil {
		t.Skip("the file system has no hard links: ", err)
	}
	if c, err = load(t, env); err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "has 2 hard links") {
		t.Errorf("%q, %v", c.Warnings, err)
	}
}

// TestAKeyInPlainTextIsWarnedOf: over http to a host that is neither this machine nor in a private network.
func TestAKeyInPlainTextIsWarnedOf(t *testing.T) {
	t.Parallel()
	for address, public := range map[string]bool{
		"http://models.example.com/v1": true, "http://203.0.113.7": true, "http://[2001:db8::1]:80": true, "HTTP://Models.Example.COM.": true,
		"https://models.example.com": false, "http://localhost:8080": false, "http://127.0.0.1": false, "http://[::1]": false, "http://10.1.2.3": false,
		"http://ollama:11434": false, "http://models.internal": false, "http://192.168.0.9": false, "http://[::ffff:10.0.0.1]": false,
	} {
		for _, variable := range []string{
			`WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"` + address + `","apiKeyEnv":"KEY"}`,
			`WORKFLOW_ENGINE_A2A_CONFIG={"baseUrl":"` + address + `","apiKeyEnv":"KEY"}`,
		} {
			c, err := load(t, environment("KEY=k", variable))
			if err != nil {
				t.Fatalf("%s: %v", variable, err)
			}
			if warned := slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "plain text") }); warned != public {
				t.Errorf("%s: %q", variable, c.Warnings)
			}
		}
		c, err := load(t, environment("KEY=k", `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"`+address+`","noAuth":true}`))
		if err != nil || len(c.Warnings) > 0 {
			t.Errorf("without a key: %q, %v", c.Warnings, err)
		}
	}
}

// TestHTTPToken: the token of clients comes from a file, wherever it is, else from its variable; what can be guessed or not be sent is
// refused, and what is taken is masked.
func TestHTTPToken(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside.key")
	if err := os.WriteFile(outside, []byte("\ufeffa-token-from-outside\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file, variable, want, says string
	}{
		{"neither", "", "", "", ""},
		{"a file", "m.key", "", "a-key-of-some-length", ""},
		{"a file elsewhere", outside, "", "a-token-from-outside", ""},
		{"the variable", "", "WORKFLOW_ENGINE_HTTP_TOKEN= a-token-in-a-variable ", "a-token-in-a-variable", ""},
		{"both", "m.key", "WORKFLOW_ENGINE_HTTP_TOKEN=a-token-in-a-variable", "a-key-of-some-length", ""},
		{"a blank variable", "", "WORKFLOW_ENGINE_HTTP_TOKEN= ", "", ""},
		{"short", "short", "", "", "found 2"},
		{"a short variable", "", "WORKFLOW_ENGINE_HTTP_TOKEN=guess me", "", "found 8"},
		{"white space", "", "WORKFLOW_ENGINE_HTTP_TOKEN=a token of some length", "", "white space"},
		{"beyond ASCII", "", "WORKFLOW_ENGINE_HTTP_TOKEN=ein-schlüssel-aus-zeichen", "", "invalid in a header"},
		{"gone", "gone", "", "", "cannot read --token-file gone"},
		{"a device", "/dev/zero", "", "", "not a regular file"},
	} {
		c, err := load(t, inFolder(t, map[string]os.FileMode{"m.key": 0o600, "short": 0o600}, tt.variable))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.HTTPToken(tt.file)
		if got != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(fullText(err), tt.says) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		tokens, err := c.HTTPTokens(tt.file)
		if caller, found := tokens.Find(got); tokens.None() != (got == "") || found && caller.Name != "token" || found != (got != "") || (err == nil) != (tt.says == "") {
			t.Errorf("%s: as a list: %+v, %v, %v", tt.name, caller, found, err)
		}
		var out strings.Builder
		if fmt.Fprint(c.Masked(&out), "it is "+got); got != "" && strings.Contains(out.String(), got) {
			t.Errorf("%s: printed %s", tt.name, out.String())
		}
	}
	c, err := load(t, inFolder(t, map[string]os.FileMode{"m.key": 0o644}, ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.HTTPToken("m.key"); err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "m.key is readable by every user") {
		t.Errorf("%q, %v", c.Warnings, err)
	}
}

// TestHTTPTokens: a list gives each client a name, its tokens are masked, and its mistakes name the file.
func TestHTTPTokens(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "tokens.json")
	for _, tt := range []struct{ text, says string }{
		{`{"tokens":[{"name":"ci","token":"a-token-of-the-list"}]}`, ""},
		{`{"tokens":[{"name":"ci","token":"short"}]}`, "--token-file " + file + ": must have 16 to 512"},
		{`{"tokens":[{"name":"ci"`, "--token-file " + file},
		{`[{"name":"ci","token":"a-token-of-the-list"}]`, "must be object"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := load(t, environment())
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := c.HTTPTokens(file)
		caller, found := tokens.Find("a-token-of-the-list")
		if tokens.None() != (tt.says != "") || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(fullText(err), tt.says) || found && caller.Name != "ci" {
			t.Errorf("%s: %+v, %v, %v", tt.text, caller, found, err)
		}
		var out strings.Builder
		if fmt.Fprint(c.Masked(&out), "it is a-token-of-the-list"); found && strings.Contains(out.String(), "a-token") {
			t.Errorf("printed %s", out.String())
		}
	}
}
