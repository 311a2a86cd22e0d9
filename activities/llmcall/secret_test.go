package llmcall_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
)

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	s := llmcall.NewSecret(" " + sentinel + " ")
	if s.Reveal() != sentinel {
		t.Errorf("revealed %q", s.Reveal())
	}
	inside := struct {
		Key  llmcall.Secret
		Keys map[string]*llmcall.Secret
	}{s, map[string]*llmcall.Secret{"k": &s}}
	var printed strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		fmt.Fprintf(&printed, verb+" "+verb+"\n", s, inside)
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("x", "key", s, "inside", inside)
	}
	encoded, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	all := printed.String() + log.String() + string(encoded) + s.String() + s.GoString()
	if strings.Contains(all, "sentinel") || strings.Contains(all, fmt.Sprintf("%x", sentinel)) {
		t.Errorf("printed:\n%s", all)
	}
	if !strings.Contains(string(encoded), `"Key":"[secret]"`) {
		t.Errorf("encoded %s", encoded)
	}
}

// TestKeyIsScrubbed: a provider that repeats the key does not get it into failures, outputs or usage, however spelt.
func TestKeyIsScrubbed(t *testing.T) {
	t.Parallel()
	const spelt = `sk-sentinel<1>/"two"&three`
	inJSON, _ := json.Marshal(spelt)
	for _, body := range []string{
		spelt, strings.Trim(string(inJSON), `"`), url.QueryEscape(spelt), strings.Repeat("x", 490) + spelt,
	} {
		for _, status := range []int{200, 401} {
			p := newProvider(t, raw(status, body))
			_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL, APIKey: keyed(spelt)}).Execute(t.Context(), request(nil))
			if err == nil || strings.Contains(err.Error(), "sk-") {
				t.Errorf("%d %q: %v", status, body, err)
			}
		}
	}

	// Some encoders spell punctuation as \u escapes.
	escaped := strings.ReplaceAll(sentinel, "+", `\u002B`)
	p := newProvider(t, raw(401, `{"error":"`+escaped+`"}`))
	if _, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(nil)); !strings.Contains(fmt.Sprint(err), `{"error":"[secret]"}`) {
		t.Errorf("escaped in a refusal: %v", err)
	}
	p = newProvider(t, says(`{"n":1,"list":["`+escaped+`"],"`+escaped+`":true}`))
	if got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"output_schema": schema()})); err != nil ||
		text(t, got.Output) != `{"[secret]":true,"list":["[secret]"],"n":1}` {
		t.Errorf("escaped in an output: %v, %v", got.Output, err)
	}

	p = newProvider(t, says("your key is "+sentinel))
	got, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(nil))
	if err != nil || text(t, got.Output) != `{"text":"your key is [secret]"}` {
		t.Errorf("output %v, %v", got.Output, err)
	}
	p = newProvider(t, raw(200, `{"model":"`+sentinel+`","choices":[{"message":{"content":"x"},"finish_reason":"`+sentinel+`"}]}`))
	if got, err = newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(nil)); err != nil || strings.Contains(text(t, got), "sentinel") {
		t.Errorf("result %v, %v", got, err)
	}
	// The dummy keys of local servers are words that an answer may have.
	p = newProvider(t, says("ollama is a server"))
	got, err = newExecutor(t, llmcall.Config{BaseURL: p.URL, APIKey: keyed("ollama")}).Execute(t.Context(), request(nil))
	if err != nil || text(t, got.Output) != `{"text":"ollama is a server"}` {
		t.Errorf("output %v, %v", got.Output, err)
	}
}
