package llmcall_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/llmcall"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// modelsOf returns the models that were asked, in order.
func modelsOf(p *provider) []string {
	var models []string
	for _, r := range p.Seen() {
		models = append(models, r.Body["model"].(string))
	}
	return models
}

// TestTheNextModelIsAskedInAnOutage: a node with a list asks the next model only for the classes of an outage, as agents do.
func TestTheNextModelIsAskedInAnOutage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		class  chat.Class
		config object
	}{
		{"busy", raw(503, ""), chat.ClassBusy, nil},
		{"a rate", raw(429, "slower", "Retry-After", "7"), chat.ClassBusy, nil},
		{"down", raw(500, "boom"), chat.ClassDown, nil},
		{"cut", dies, chat.ClassDown, nil},
		{"slow", hangs, chat.ClassSlow, nil},
		{"no credit", raw(402, "pay"), chat.ClassQuota, nil},
		{"a refused key", raw(401, "no"), chat.ClassCredentials, nil},
		{"no such model", raw(404, "no"), chat.ClassUnknown, nil},
		{"too long", raw(413, ""), chat.ClassContext, nil},
		{"a filter", raw(400, `{"error":{"code":"content_filter","message":"no"}}`), chat.ClassRefused, nil},
		{"a wrong request", raw(400, `{"error":{"message":"unknown role"}}`), chat.ClassRequest, nil},
		{"an answer without text", completes(object{}, "stop"), chat.ClassAnswer, nil},
		{"an answer that breaks its schema", says(`{"x": 1}`), "", object{"output_schema": schema()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request) { tt.answer(w, r) }, says("ok"))
			if tt.class == chat.ClassCredentials { // the key is read again first
				p.Answers = slices.Insert(p.Answers, 0, tt.answer)
			}
			config := object{"model": []any{"main", " spare "}}
			for name, v := range tt.config {
				config[name] = v
			}
			keys := 0
			c := llmcall.Config{BaseURL: p.URL, RequestTimeout: time.Minute}
			if tt.class == chat.ClassSlow {
				c.RequestTimeout = 2 * time.Second // the spare has as long to answer
			}
			c.APIKey = func(context.Context) (llmcall.Secret, error) {
				keys++
				return llmcall.NewSecret(strings.Repeat("k", 20+keys)), nil
			}
			res, err := newExecutor(t, c).Execute(t.Context(), request(config))
			if !slices.Contains(chat.Outages(), tt.class) {
				if class, _ := chat.ClassIn(failureOf(t, err).Data); class != tt.class || len(modelsOf(p)) != 1 {
					t.Errorf("class %q after %v", class, modelsOf(p))
				}
				return
			}
			if got := modelsOf(p); err != nil || got[0] != "main" || got[len(got)-1] != "spare" {
				t.Fatalf("asked %v: %v", got, err)
			}
			if res.Usage["model"] == nil || res.Usage["requests"] != len(p.Seen()) {
				t.Errorf("usage %v", res.Usage)
			}
			keysSent := map[string]bool{}
			for _, r := range p.Seen() {
				keysSent[r.Header.Get("Idempotency-Key")] = true
			}
			if len(keysSent) != len(p.Seen()) {
				t.Errorf("requests share an idempotency key: %v", keysSent)
			}
		})
	}
}

// TestWhereAllModelsFail: the attempt has the code and class of the first failure, the texts of all, and the longest requested pause.
func TestWhereAllModelsFail(t *testing.T) {
	t.Parallel()
	p := newProvider(t, raw(402, "no money"), raw(503, "later", "Retry-After", "7"), raw(500, "boom"))
	_, err := newExecutor(t, llmcall.Config{BaseURL: p.URL}).Execute(t.Context(), request(object{"model": []any{"a", "b", "c"}}))
	f := wantFailure(t, err, problem.LLMQuotaExceeded, "no money")
	for _, part := range []string{"; then b: LLM_PROVIDER_ERROR", "later", "; then c: ", "boom"} {
		if !strings.Contains(f.Message, part) {
			t.Errorf("the message lacks %q: %s", part, f.Message)
		}
	}
	if class, status := chat.ClassIn(f.Data); class != chat.ClassQuota || status != 402 || f.RetryAfter != 7*time.Second || f.Retryable == activities.RetryPointless {
		t.Errorf("class %q, status %d, after %v, retryable %v", class, status, f.RetryAfter, f.Retryable)
	}
	if got := modelsOf(p); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("asked %v", got)
	}
}

// TestAListOfModelsIsChecked before a request is sent.
func TestAListOfModelsIsChecked(t *testing.T) {
	t.Parallel()
	p := newProvider(t, says("ok"))
	x := newExecutor(t, llmcall.Config{BaseURL: p.URL})
	for _, models := range [][]any{{}, {""}, {"a", 1.0}, {"a", " "}} {
		_, err := x.Execute(t.Context(), request(object{"model": models}))
		wantFailure(t, err, problem.LLMConfigInvalid, "model")
	}
	if d := x.Capabilities(activities.Node{Type: "llm_call"}).Describe(request(object{"model": []any{"a", "b"}})); d["model"] != "a" || !slices.Equal(d["models"].([]string), []string{"a", "b"}) {
		t.Errorf("described %v", d)
	}
	if len(p.Seen()) > 0 {
		t.Errorf("asked %v", modelsOf(p))
	}
}

func failureOf(t *testing.T, err error) *activities.Failure {
	t.Helper()
	failure, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("error is %v, want a failure", err)
	}
	return failure
}
