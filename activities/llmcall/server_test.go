package llmcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// sentinel is the key of these tests. No returned text may contain it.
const sentinel = "sk-sentinel/4f9c+Zq81=="

// object is a JSON object.
type object = map[string]any

type (
	provider = enginetest.Provider
	arrived  = enginetest.Arrived
)

var (
	newProvider         = enginetest.NewProvider
	newProviderInMemory = enginetest.NewProviderInMemory
	says                = enginetest.Says
	completes           = enginetest.Completes
	raw                 = enginetest.Raw
	hangs               = enginetest.Hangs
	dies                = enginetest.Dies
	floods              = enginetest.Floods
	streams             = enginetest.Streams
)

func keyed(key string) func(context.Context) (llmcall.Secret, error) {
	return func(context.Context) (llmcall.Secret, error) { return llmcall.NewSecret(key), nil }
}

func newExecutor(t testing.TB, c llmcall.Config) *llmcall.Executor {
	t.Helper()
	if c.APIKey == nil && !c.NoAuth {
		c.APIKey = keyed(sentinel)
	}
	e, err := llmcall.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// request returns an llm_call with a model, a prompt, and additional fields of its config.
func request(more object) activities.Request {
	config := object{"model": " m ", "user_prompt": "U"}
	for name, v := range more {
		if config[name] = v; v == nil {
			delete(config, name)
		}
	}
	return activities.Request{
		ExecutionID: "ex", NodeID: "ask me", NodeType: "llm_call", Config: config, Visit: 1, Attempt: 1,
		IdempotencyKey: "ex:ask me#1.1",
		State:          func() map[string]any { return object{"b": 1.0, "a": []any{"x"}, "name": "Ada"} },
		Heartbeat:      func(map[string]any) {},
	}
}

// schema returns the schema of an object with a number n.
func schema() object {
	return object{"type": "object", "required": []any{"n"}, "properties": object{"n": object{"type": "number"}}}
}

func wantFailure(t *testing.T, err error, code problem.Code, contains string) *activities.Failure {
	t.Helper()
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure with code %s", err, code)
	}
	if failure.Code != string(code) || !strings.Contains(failure.Error(), contains) {
		t.Errorf("got %s: %v, want %s: …%s…", failure.Code, failure, code, contains)
	}
	if strings.Contains(failure.Error(), "sentinel") {
		t.Errorf("the failure shows the key: %v", failure)
	}
	return failure
}

// text returns a value as JSON.
func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
