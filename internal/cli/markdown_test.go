package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/authoring"
)

func TestMarkdownInATerminal(t *testing.T) {
	t.Parallel()
	const page = "# A head\n\nA paragraph with `some code`, a [link](page.md#x), **bold words**\nand a [site](https://example.com).\n\n" +
		"- one item that is long enough for two lines\n  and goes on\n- another\n\n1. first\n\n| name | what it is |\n|---|---|\n| `a` | a long description that must be wrapped |\n| `b\\|c` | short |\n\n```yaml\nkey:   value that is much longer than the width of the terminal\n```\n"
	const want = "A head\n\nA paragraph with `some code`, a link,\n**bold words** and a site\n(https://example.com).\n\n" +
		"- one item that is long enough for two\n  lines and goes on\n- another\n\n1. first\n\nname   what it is\n`a`    a long description that must be\n       wrapped\n`b|c`  short\n\n    key:   value that is much longer than the width of the terminal\n"
	if got := rendered(page, 40, palette{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := rendered("**a b** `c`", 40, palette{on: true}), markBegin+"1"+markEnd+"a"+markBegin+"0"+markEnd; !strings.HasPrefix(got, want) || strings.ContainsAny(got, "*`") {
		t.Errorf("%q", got)
	}
}

// TestGuidesInATerminal: no line of a guide is wider than the terminal but in its blocks, and no word is lost.
func TestGuidesInATerminal(t *testing.T) {
	t.Parallel()
	for _, topic := range authoring.Topics() {
		for _, width := range []int{60, 100, 1000} {
			page := authoring.Page(topic)
			text := rendered(page, width, palette{})
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && !strings.HasPrefix(line, "    ") {
					t.Errorf("%s at %d: a line of %d characters: %s", topic, width, n, line)
				}
			}
			shown := strings.Join(strings.Fields(text), "")
			if width < 1000 && strings.Contains(page, "\n|") {
				continue // words of narrow columns are divided
			}
			for word := range strings.FieldsSeq(page) {
				if strings.ContainsAny(word, "[]()|#`*-") {
					continue
				}
				if !strings.Contains(shown, word) {
					t.Errorf("%s at %d: the word %q is lost", topic, width, word)
				}
			}
		}
	}
}
