package llmcall_test

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/llmcall"
)

// FuzzUnfenced: taking the fence away twice is taking it away once, unless there were two.
func FuzzUnfenced(f *testing.F) {
	for _, seed := range []string{"", "```", "```\n```", "```json\n{}\n```", "``` ```", "```\n{}", " {} "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := llmcall.Unfenced(text)
		if got != strings.TrimSpace(got) || !strings.Contains(text, got) {
			t.Errorf("%q became %q", text, got)
		}
		if fenced := "```json\n" + text + "\n```"; llmcall.Unfenced(fenced) != strings.TrimSpace(text) {
			t.Errorf("%q became %q", fenced, llmcall.Unfenced(fenced))
		}
	})
}
