package mcpserver

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/agentsteps"
	"github.com/workflows-engine/workflows-engine/internal/outline"
)

// maxCalls is how many of the calls that an agent wants approved an answer shows.
const maxCalls = 16

// shownCalls are the calls that an agent wants approved, in about so many bytes: of each its tool and digest, and of its arguments as much as
// there is room for. whole says that nothing is left out.
func (s *server) shownCalls(p *view.Pending, room int) (list []members, whole bool) {
	calls := agentsteps.Approval(p.Show)
	whole = len(calls) <= maxCalls
	calls = calls[:min(len(calls), maxCalls)]
	in, left := s.waitDocument(p), room
	for i, c := range calls {
		m := members{{"key", c.Key}, {"tool", c.Tool}, {"digest", c.Digest}}
		if c.MayHaveHappened {
			m.Put("may_have_happened", true)
		}
		share := max((left-len(m.Append(nil))*(len(calls)-i))/(len(calls)-i), outline.MinBytes)
		text, all := in.Show(map[string]any(c.Arguments), share, fmt.Sprintf("/tool_calls/%d/arguments", i))
		m.Put("arguments", text)
		left -= len(m.Append(nil)) + len(",")
		list, whole = append(list, m), whole && all
	}
	return list, whole
}

// putCalls puts what shownCalls shows into an entry, in the place of all.
func (s *server) putCalls(entry *members, p *view.Pending, room int) (whole bool) {
	i := indexOf(*entry, "tool_calls")
	if i < 0 {
		return true
	}
	list, whole := s.shownCalls(p, room)
	(*entry)[i].Value = list
	if n := len(agentsteps.Approval(p.Show)); n > len(list) {
		entry.Put("tool_calls_total", float64(n))
	}
	return whole
}
