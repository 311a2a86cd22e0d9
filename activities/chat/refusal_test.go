package chat_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// TestRefusalsHaveClasses: every provider tells refusals apart by the same statuses and words.
func TestRefusalsHaveClasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		refusal    chat.Refusal
		want       chat.Class
		overloaded bool
	}{
		{chat.Refusal{}, "", false},
		{chat.Refusal{Text: "the stream has ended"}, "", false},
		{chat.Refusal{Text: "Overloaded"}, chat.ClassBusy, true},
		{chat.Refusal{Status: 529}, chat.ClassBusy, true},
		{chat.Refusal{Status: 503}, chat.ClassBusy, false},
		{chat.Refusal{Status: 429, Text: "check your billing"}, chat.ClassQuota, false},
		{chat.Refusal{Status: 429, Text: "check your billing", Pause: true}, chat.ClassBusy, false},
		{chat.Refusal{Status: 429, Text: "insufficient_quota", Pause: true}, chat.ClassQuota, false},
		{chat.Refusal{Status: 402}, chat.ClassQuota, false},
		{chat.Refusal{Status: 500, Text: "billing"}, chat.ClassDown, false},
		{chat.Refusal{Status: 500, Text: "Context Window"}, chat.ClassContext, false},
		{chat.Refusal{Status: 413}, chat.ClassContext, false},
		{chat.Refusal{Status: 401}, chat.ClassCredentials, false},
		{chat.Refusal{Status: 404}, chat.ClassUnknown, false},
		{chat.Refusal{Text: "no such model"}, chat.ClassUnknown, false},
		{chat.Refusal{Status: 422, Text: "content_filter"}, chat.ClassRefused, false},
		{chat.Refusal{Status: 302}, chat.ClassRequest, false},
		{chat.Refusal{Status: 425}, chat.ClassDown, false},
	} {
		if got := tt.refusal.Class(); got != tt.want || tt.refusal.Overloaded() != tt.overloaded {
			t.Errorf("%+v: class %q, overloaded %t", tt.refusal, got, tt.refusal.Overloaded())
		}
	}
}
