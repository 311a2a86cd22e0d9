package openaichat_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// sentinel is the key of these tests. No returned text may contain it.
const sentinel = "sk-sentinel/4f9c+Zq81=="

// object is a JSON object.
type object = map[string]any

type arrived = enginetest.Arrived

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

func keyed(key string) func(context.Context) (chat.Secret, error) {
	return func(context.Context) (chat.Secret, error) { return chat.NewSecret(key), nil }
}

func newModel(t testing.TB, c openaichat.Config) *openaichat.Model {
	t.Helper()
	if c.APIKey == nil && !c.NoAuth {
		c.APIKey = keyed(sentinel)
	}
	m, err := openaichat.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
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

// format returns the type of a request's response_format, and whether the system message describes the schema.
func format(r arrived) (kind string, described bool) {
	f, _ := r.Body["response_format"].(object)
	kind, _ = f["type"].(string)
	first := r.Body["messages"].([]any)[0].(object)
	return kind, first["role"] == "system" && strings.Contains(first["content"].(string), `{"properties":{"n":{"type":"number"}},"required":["n"],"type":"object"}`)
}
