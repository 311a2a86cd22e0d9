package openaichat_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/activities/chat"
	"github.com/workflows-engine/workflows-engine/activities/chat/openaichat"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// TestChatClasses: agents choose by class between another attempt and the next model.
func TestChatClasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		answer http.HandlerFunc
		class  chat.Class
		status int
	}{
		{"a rate", raw(429, `{"error":{"message":"Rate limit reached. Add a payment method at https://platform.example/account/billing","code":"rate_limit_exceeded"}}`), chat.ClassBusy, 429},
		{"a rate of a plan", raw(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details","details":[{"retryDelay":"17s"}]}}`), chat.ClassBusy, 429},
		{"503 without a word", raw(503, ""), chat.ClassBusy, 503},
		{"529", raw(529, ""), chat.ClassBusy, 529},
		{"overloaded in a stream", streams(`data: {"error":{"type":"overloaded_error","message":"Later"}}`), chat.ClassBusy, 0},
		{"408", raw(408, ""), chat.ClassDown, 408},
		{"500", raw(500, "boom"), chat.ClassDown, 500},
		{"502", raw(502, "<html>"), chat.ClassDown, 502},
		{"504", raw(504, ""), chat.ClassDown, 504},
		{"a connection that closes", dies, chat.ClassDown, 0},
		{"a cut stream", streams(`data: {"choices":[{"delta":{"content":"x"}}]}`), chat.ClassDown, 0},
		{"a web page", raw(200, "<html>"), chat.ClassDown, 0},
		{"no choices", raw(200, `{"choices":[]}`), chat.ClassDown, 0},
		{"402", raw(402, "pay"), chat.ClassQuota, 402},
		{"no credit under 429", raw(429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota"}}`, "Retry-After", "3"), chat.ClassQuota, 429},
		{"no credit under 400", raw(400, `{"error":{"message":"Your credit balance is too low"}}`), chat.ClassQuota, 400},
		{"billing under 403", raw(403, `{"error":{"message":"Billing is not active for this account"}}`), chat.ClassQuota, 403},
		{"401", raw(401, "no"), chat.ClassCredentials, 401},
		{"403", raw(403, "no"), chat.ClassCredentials, 403},
		{"404", raw(404, "no"), chat.ClassUnknown, 404},
		{"no such model under 400", raw(400, `{"error":{"code":"model_not_found","message":"no"}}`), chat.ClassUnknown, 400},
		{"too long", raw(413, ""), chat.ClassContext, 413},
		{"a filter", raw(400, `{"error":{"code":"content_filter","message":"no"}}`), chat.ClassRefused, 400},
		{"a refusal", raw(200, `{"choices":[{"message":{"refusal":"never"},"finish_reason":"stop"}]}`), chat.ClassRefused, 0},
		{"a wrong request", raw(400, `{"error":{"message":"messages.1: unknown role; the prompt spoke of billing"}}`), chat.ClassRequest, 400},
		{"422", raw(422, "no"), chat.ClassRequest, 422},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := question()
			req.Stream = true
			_, err := newModel(t, openaichat.Config{BaseURL: newProvider(t, tt.answer).URL}).Chat(t.Context(), req)
			f := failureOf(t, err)
			if class, status := chat.ClassIn(f.Data); class != tt.class || status != tt.status {
				t.Errorf("class %q, status %d: %v", class, status, err)
			}
			if tt.class == chat.ClassQuota && strings.Contains(f.Message, "rate limit") {
				t.Error(f.Message)
			}
		})
	}
}

// TestChatReadsARefusedKeyAgain: a request with a replaced key is sent once more; neither key is quoted.
func TestChatReadsARefusedKeyAgain(t *testing.T) {
	t.Parallel()
	const old, fresh = "key-of-yesterday-0001", "key-of-today-00000002"
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+fresh {
			raw(401, "no access for "+old)(w, r)
			return
		}
		says(old+" or "+fresh)(w, r)
	})
	keys := []string{old, fresh}
	read := 0
	e := newModel(t, openaichat.Config{BaseURL: p.URL, APIKey: func(context.Context) (chat.Secret, error) {
		read++
		return chat.NewSecret(keys[min(read, len(keys))-1]), nil
	}})
	got, err := e.Chat(t.Context(), question())
	if err != nil || got.Text != "[secret] or [secret]" || read != 2 {
		t.Fatalf("%q after %d readings, %v", got.Text, read, err)
	}
	keys, read = []string{old}, 0
	_, err = e.Chat(t.Context(), question())
	wantFailure(t, err, problem.LLMProviderError, "no access for [secret]")
	if read != 2 || len(p.Seen()) != 3 {
		t.Errorf("%d readings, %d requests", read, len(p.Seen()))
	}
}

// TestChatEndsAStreamThatStandsStill long before the request times out.
func TestChatEndsAStreamThatStandsStill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProviderInMemory(t, func(w http.ResponseWriter, r *http.Request) {
			for range 3 {
				streams(": thinking")(w, r)
				time.Sleep(50 * time.Second)
			}
			hangs(w, r)
		})
		e := newModel(t, openaichat.Config{BaseURL: p.URL, Client: p.Client()})
		req := question()
		req.Stream = true
		began := time.Now()
		_, err := e.Chat(t.Context(), req)
		f := wantFailure(t, err, problem.Timeout, "sent nothing of its answer for 1m0s")
		if class, _ := chat.ClassIn(f.Data); class != chat.ClassSlow || time.Since(began) != 160*time.Second {
			t.Errorf("class %q after %v", class, time.Since(began))
		}
		p.Close()
	})
}

func failureOf(t *testing.T, err error) *activities.Failure {
	t.Helper()
	f, ok := errors.AsType[*activities.Failure](err)
	if !ok {
		t.Fatalf("%v is no failure", err)
	}
	return f
}
