package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestLoadA2A(t *testing.T) {
	t.Parallel()
	env := environment("KEY=secret", `WORKFLOW_ENGINE_A2A_CONFIG={"baseUrl":"https://agents.example/v1/","apiKeyEnv":"KEY","pollIntervalMs":250}`)
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if c.A2A.BaseURL != "https://agents.example/v1/" || c.A2A.PollInterval != 250*time.Millisecond || c.A2A.PollTimeout != 0 {
		t.Errorf("got %+v", c.A2A)
	}
	if key, err := c.A2A.APIKey(t.Context()); err != nil || key != "secret" {
		t.Errorf("key %q, %v", key, err)
	}

	for text, want := range map[string]string{
		`{"apiKeyEnv":"KEY"}`:                     "no baseUrl",
		`{"baseUrl":"ftp://x","apiKeyEnv":"KEY"}`: "must be an absolute http",
		`{"baseUrl":"https://x"}`:                 "exactly one of apiKeyEnv and apiKeySecretRef",
		`{"baseUrl":"https://x","apiKeyEnv":"KEY","apiKeySecretRef":"env:KEY"}`: "exactly one of",
		`{"baseUrl":"https://x","apiKeyEnv":"NONE"}`:                            "env:NONE: the variable is unset",
		`{"baseUrl":"https://x","apiKeySecretRef":"vault:k"}`:                   "not supported",
		`{"baseUrl":"https://x","apiKeySecretRef":"env:"}`:                      "must have a name",
		`{"baseUrl":"https://x","apiKeyEnv":7}`:                                 "apiKeyEnv: expected string, found number",
		`{"baseUrl":"https://x","apiKeyEnv":"KEY","pollTimeoutMs":0}`:           "above 0",
		`{"baseURL":"https://x","apiKeyEnv":"KEY"}`:                             `unknown field "baseURL"`,
		`{"baseUrl":"https://x","apiKeyEnv":"KEY","noAuth":true}`:               "a key and noAuth cannot be given together",
		`{"baseUrl":"https://x","noAuth":true,"transport":"grpc"}`:              `transport: expected jsonrpc or http-tasks, found "grpc"`,
		`{"baseUrl":"https://x","noAuth":true,"agents":[]}`:                     "agents: expected object, found array",
		`{"agents":{"a":{"baseUrl":"https://x"}}}`:                              `agents.a: expected exactly one of apiKeyEnv and apiKeySecretRef, or noAuth`,
		`{"agents":{"a":{"baseUrl":"x","noAuth":true}}}`:                        "must be an absolute http",
		`{"agents":{"a":{"baseUrl":"https://x","noAuth":true,"agents":{}}}}`:    `agents.a: unknown field "agents"`,
		`{"agents":{" ":{"baseUrl":"https://x","noAuth":true}}}`:                "must not be blank",
		`{"noAuth":true,"agents":{"a":{"baseUrl":"https://x","noAuth":true}}}`:  "only agents",
	} {
		_, err := load(t, environment("KEY=secret", "WORKFLOW_ENGINE_A2A_CONFIG="+text))
		requireRefused(t, err, want)
	}
	_, err = load(t, environment(`WORKFLOW_ENGINE_A2A_CONFIG={"agents":{}}`))
	p, _ := problem.As(err)
	if p == nil || len(p.Findings) != 2 || !strings.Contains(p.Findings[0].Message, "no baseUrl") || !strings.Contains(p.Findings[1].Message, "exactly one of") {
		t.Errorf("without anything: %+v", p)
	}
}

// TestLoadA2AAgents gives two agents endpoints of their own.
func TestLoadA2AAgents(t *testing.T) {
	t.Parallel()
	const agents = `"agents":{" coder ":{"baseUrl":"https://coder.example","transport":"jsonrpc","apiKeySecretRef":"env:KEY","maxAnswerBytes":100},
		"local":{"baseUrl":"http://localhost:1","transport":"http-tasks","noAuth":true,"requestTimeoutMs":50,"maxPollIntervalMs":60}}`
	for text, url := range map[string]string{
		`{` + agents + `}`: "",
		`{"baseUrl":"https://rest.example","noAuth":true,` + agents + `}`: "https://rest.example",
	} {
		c, err := load(t, environment("KEY=secret", "WORKFLOW_ENGINE_A2A_CONFIG="+text))
		if err != nil {
			t.Fatal(err)
		}
		coder, local := c.A2A.Agents["coder"], c.A2A.Agents["local"]
		if c.A2A.BaseURL != url || url != "" && c.A2A.Transport != "jsonrpc" || coder.Transport != "jsonrpc" || coder.MaxAnswerBytes != 100 || !local.NoAuth ||
			local.RequestTimeout != 50*time.Millisecond || local.MaxPollInterval != 60*time.Millisecond || local.Transport != "http-tasks" {
			t.Errorf("got %+v", c.A2A)
		}
		e, err := c.Executors()
		if err != nil || !e.Performs("a2a") {
			t.Errorf("executors: %v", err)
		}
	}
}

func TestSecretFilesStayInside(t *testing.T) {
	t.Parallel()
	outside, inside := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outside, "key"), "stolen")
	write(filepath.Join(inside, "key"), "\ufeff inside \n")
	write(filepath.Join(inside, "..key"), "dotted")
	write(filepath.Join(inside, "empty"), " \n")
	if err := os.Symlink(filepath.Join(outside, "key"), filepath.Join(inside, "link")); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
	for reference, want := range map[string]struct{ value, refused string }{
		"file:key":                              {value: "inside"},
		"file: ./key ":                          {value: "inside"},
		"file:..key":                            {value: "dotted"},
		"file:" + filepath.Join(inside, "key"):  {value: "inside"},
		"file:link":                             {refused: "cannot read"},
		"file:../" + filepath.Base(outside):     {refused: "cannot read"},
		"file:" + filepath.Join(outside, "key"): {refused: "cannot read"},
		"file:empty":                            {refused: "is empty"},
		"file:missing":                          {refused: "cannot read"},
	} {
		env := environment(`WORKFLOW_ENGINE_A2A_CONFIG={"baseUrl":"https://x","apiKeySecretRef":"` + filepath.ToSlash(reference) + `"}`)
		env.Directory = inside
		c, err := load(t, env)
		if want.refused != "" {
			requireRefused(t, err, want.refused)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", reference, err)
			continue
		}
		if key, err := c.A2A.APIKey(t.Context()); err != nil || key != want.value {
			t.Errorf("%s: key %q, %v", reference, key, err)
		}
	}
}
