package openaichat

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// thinking is the state of the separation of an arriving answer from the reasoning before it, which is between tags.
type thinking int

const (
	undecided thinking = iota
	thinks
	speaks
)

// think updates the state after a piece. Reasoning and parts of a tag are not reported.
func (b *builder) think() {
	content := b.content.String()
	if b.thinking == undecided {
		begun := strings.TrimLeft(content, "\ufeff\u200b \t\r\n")
		switch {
		case strings.HasPrefix(begun, chat.ThinkBegin):
			b.thinking, b.said = thinks, len(content)-len(begun)+len(chat.ThinkBegin)
		case !strings.HasPrefix(chat.ThinkBegin, begun):
			b.thinking = speaks
		}
	}
	if b.thinking == thinks {
		if i := strings.Index(content[b.said:], chat.ThinkEnd); i >= 0 {
			b.said += i + len(chat.ThinkEnd)
			b.said += len(content[b.said:]) - len(strings.TrimLeft(content[b.said:], " \t\r\n"))
			b.thinking = speaks
		} else { // the tag may be split between pieces
			b.said = max(b.said, len(content)-len(chat.ThinkEnd)+1)
		}
	}
}

// spoken returns the text of the answer that has not been reported yet.
func (b *builder) spoken() string {
	if b.thinking != speaks {
		return ""
	}
	content := b.content.String()
	if b.said > 0 && b.told <= b.said { // white space after reasoning is not part of the answer
		b.said = len(content) - len(strings.TrimLeft(content[b.said:], " \t\r\n"))
	}
	from, end := max(b.told, b.said), len(content)
	if endsInHalf(content) {
		end -= 3
	}
	b.told = max(end, from)
	return joinHalves(content[from:b.told])
}
