package chat_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// TestUsageIn: a usage is read as an executor returns it, and as read from a history.
func TestUsageIn(t *testing.T) {
	t.Parallel()
	want := chat.Usage{Prompt: 9, Cached: 4, Completion: 2, Estimated: true}
	for _, members := range []map[string]any{
		{"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2, "estimated": true, "model": "m"},
		{"prompt_tokens": 9.0, "cached_tokens": 4.0, "completion_tokens": 2.0, "estimated": true},
	} {
		if got := chat.UsageIn(members); got != want {
			t.Errorf("%v: %+v", members, got)
		}
	}
	if got := chat.UsageIn(nil); got != (chat.Usage{}) {
		t.Errorf("nothing: %+v", got)
	}
}
