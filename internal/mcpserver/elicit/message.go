package elicit

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// How many bytes of texts of a definition a form shows.
const (
	maxLabel       = 200
	maxDescription = 1000
	maxPrompt      = 6 << 10
	maxComplaint   = 1000
)

// Message is the text of a question: what a run asks, and which run that is. complaint says why the person's last answer could not be
// taken, "" if it is the first time.
func Message(prompt, run, complaint string) string {
	var b strings.Builder
	if complaint != "" {
		fmt.Fprintf(&b, "Your answer could not be taken: %s\n\n", clean(complaint, maxComplaint))
	}
	shown := clean(prompt, maxPrompt)
	if shown == "" {
		shown = "A workflow waits for your answer."
	}
	b.WriteString(shown)
	if len(prompt) > maxPrompt {
		b.WriteString("\n\nThe question is longer than this form shows: read all of it before you answer.")
	}
	fmt.Fprintf(&b, "\n\n%s", clean(run, maxDescription))
	return b.String()
}

// clean is a text that a stranger has written, of at most so many bytes, without characters that act on a terminal or change the
// direction of what is shown.
func clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // the last two join and part letters
			return r
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(text, "\ufffd"))
	return problem.Clip(strings.TrimSpace(text), most)
}
