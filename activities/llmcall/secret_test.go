package llmcall_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
)

// TestKeyIsScrubbed: failures, outputs and usage do not have the key, however the provider encodes it.
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

	// Some encoders write punctuation as \u escapes.
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
	// The dummy keys of local servers are words that an answer may contain.
	p = newProvider(t, says("ollama is a server"))
	got, err = newExecutor(t, llmcall.Config{BaseURL: p.URL, APIKey: keyed("ollama")}).Execute(t.Context(), request(nil))
	if err != nil || text(t, got.Output) != `{"text":"ollama is a server"}` {
		t.Errorf("output %v, %v", got.Output, err)
	}
}
