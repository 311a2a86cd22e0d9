package config_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

func TestLoadLLM(t *testing.T) {
	t.Parallel()
	c, err := load(t, environment("KEY= secret ", `WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"https://models.example/v1/","apiKeyEnv":"KEY",`+
		`"stream":true,"repair":false,"requestTimeoutMs":250,"maxAnswerBytes":1000}`))
	if err != nil {
		t.Fatal(err)
	}
	if l := c.LLM; l.BaseURL != "https://models.example/v1/" || !l.Stream || !l.NoRepair || l.NoAuth ||
		l.RequestTimeout != 250*time.Millisecond || l.MaxAnswerBytes != 1000 {
		t.Errorf("got %+v", l)
	}
	if got := c.LLM.KeyFrom; got != "env:KEY, in WORKFLOW_ENGINE_LLM_CONFIG" {
		t.Errorf("the key comes from %q", got)
	}
	key, err := c.LLM.APIKey(t.Context())
	if err != nil || key.Reveal() != "secret" {
		t.Errorf("key %q, %v", key.Reveal(), err)
	}
	if text := fmt.Sprintf("%v %+v %#v", key, c.LLM, key); strings.Contains(text, "secret ") || strings.Contains(text, `"secret"`) {
		t.Errorf("the key is printed: %s", text)
	}

	for text, want := range map[string]string{
		`{}`:                              "must have a key or noAuth",
		`{"noAuth":false}`:                "must have a key or noAuth",
		`{"apiKeyEnv":"NONE"}`:            "env:NONE: the variable is unset",
		`{"apiKeyEnv":7}`:                 "apiKeyEnv: expected string, found number",
		`{"apiKeySecretRef":"vault:k"}`:   "not supported",
		`{"apiKeySecretRef":"file:none"}`: "cannot read secret file:none",
		`{"apiKeyEnv":"KEY","apiKeySecretRef":"env:KEY"}`:       "exactly one of",
		`{"apiKeyEnv":"KEY","noAuth":true}`:                     "cannot have both a key and noAuth",
		`{"noAuth":"yes"}`:                                      "noAuth: expected boolean, found string",
		`{"noAuth":true,"repair":1}`:                            "repair: expected boolean, found number",
		`{"noAuth":true,"baseUrl":"ftp://x"}`:                   "not an absolute http",
		`{"noAuth":true,"baseUrl":"https://me:hidden@x/v1"}`:    "without user",
		`{"noAuth":true,"requestTimeoutMs":0}`:                  "above 0",
		`{"noAuth":true,"maxAnswerBytes":1.5}`:                  "whole number",
		`{"noAuth":true,"baseURL":"https://models.example/v1"}`: `unknown field "baseURL"`,
		`{"noAuth":true,"model":"m"}`:                           `unknown field "model"`,
		`[]`:                                                    "a JSON object",
		`models.json`:                                           "cannot read",
	} {
		_, err := load(t, environment("KEY=secret", "WORKFLOW_ENGINE_LLM_CONFIG="+text))
		requireRefused(t, err, want)
		if err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: the refusal shows a password", text)
		}
	}
}

// TestAllMistakesOfLLM are reported at once, and each as one.
func TestAllMistakesOfLLM(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"apiKeyEnv":"NONE","baseUrl":"ftp://x","requestTimeoutMs":0,"model":"m"}`: {
			"secret env:NONE: the variable is unset", "expected a number of milliseconds above 0", `unknown field "model"`, "not an absolute http",
		},
		`{"baseUrl":"ftp://x"}`:                             {"not an absolute http", "must have a key or noAuth"},
		`{"baseUrl":7,"noAuth":"yes"}`:                      {"expected string, found number", "expected boolean, found string"},
		`{"apikeyEnv":"KEY","stream":1}`:                    {"expected boolean, found number", `unknown field "apikeyEnv"`},
		`{"apiKeyEnv":"KEY","noAuth":true,"baseurl":"ftp"}`: {`unknown field "baseurl"`, "cannot have both a key and noAuth"},
	} {
		_, err := load(t, environment("KEY=secret", "WORKFLOW_ENGINE_LLM_CONFIG="+text))
		p, ok := problem.As(err)
		if !ok || p.Code != problem.UsageError || p.Message != "invalid WORKFLOW_ENGINE_LLM_CONFIG" || len(p.Findings) != len(want) {
			t.Errorf("%s: %+v", text, err)
			continue
		}
		for i, f := range p.Findings {
			if !strings.Contains(f.Message, want[i]) {
				t.Errorf("%s: %d: %q, want %q", text, i, f.Message, want[i])
			}
		}
	}
}

// TestLLMRefusalSaysWhatToDo: the hint of the executor reaches the operator.
func TestLLMRefusalSaysWhatToDo(t *testing.T) {
	t.Parallel()
	_, err := load(t, environment("WORKFLOW_ENGINE_LLM_CONFIG={}"))
	if p, ok := problem.As(err); !ok || !strings.Contains(p.Hint, "Set apiKeyEnv or apiKeySecretRef, or noAuth") {
		t.Errorf("%+v", err)
	}
}

// TestMissingKeySaysWhere: the refusal of a secret names the setting that asks for it, and what to do.
func TestMissingKeySaysWhere(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		`WORKFLOW_ENGINE_LLM_CONFIG={"apiKeyEnv":"GONE"}`:                                                                  "Set GONE where this program is started.",
		`WORKFLOW_ENGINE_LLM_CONFIG={"apiKeySecretRef":"file:gone.key"}`:                                                   "relative to the working directory",
		`WORKFLOW_ENGINE_A2A_CONFIG={"agents":{"coder":{"baseUrl":"http://localhost:9000","apiKeySecretRef":"env:GONE"}}}`: "Set GONE where this program is started.",
	} {
		_, err := load(t, environment(setting))
		name, _, _ := strings.Cut(setting, "=")
		if p, ok := problem.As(err); !ok || !strings.HasPrefix(p.Error(), name) || !strings.Contains(strings.ToLower(p.Error()), "gone") || !strings.Contains(p.Hint, want) {
			t.Errorf("%s: %v", setting, err)
		}
	}
}

// TestLLMKeyIsReadAtUse: a key file that changes needs no restart.
func TestLLMKeyIsReadAtUse(t *testing.T) {
	t.Parallel()
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "hi"}}}})
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	write := func(key string) {
		if err := os.WriteFile(filepath.Join(folder, "key"), []byte(key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first\n")
	env := environment(`WORKFLOW_ENGINE_LLM_CONFIG={"baseUrl":"` + server.URL + `","apiKeySecretRef":"file:key"}`)
	env.Directory = folder
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Executors()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"first", "second"} {
		write(key)
		_, err := e.Activities.Execute(t.Context(), activities.Request{
			NodeID: "n", NodeType: "llm_call", Config: map[string]any{"model": "m", "prompt": "p"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(sent) != 2 || sent[0] != "Bearer first" || sent[1] != "Bearer second" {
		t.Errorf("sent %q", sent)
	}
}
