package openaichat

import (
	"fmt"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities/chat"
)

// callList assembles the tool calls of an answer. A piece of a stream names its call by index or id; but some servers give every call the
// index 0 or no index, and some give two calls the same id or no id.
type callList struct {
	calls   []*partialCall
	byIndex map[string]*partialCall
	byID    map[string]*partialCall
}

type partialCall struct {
	id, name  string
	arguments strings.Builder
	// closed is set while the arguments end with a brace.
	closed bool
}

// add adds a piece of a call, or a whole one.
func (l *callList) add(d toolCall, whole bool) {
	id, name, index := string(d.ID), string(d.Function.Name), d.Index.String()
	if id == "" && name == "" && d.Function.Arguments == "" && index == "" {
		return
	}
	c := l.of(id, name, index)
	if whole || c == nil || c.endedBefore(d) {
		c = &partialCall{}
		l.calls = append(l.calls, c)
	}
	if c.id == "" {
		c.id = id
	}
	// Some servers repeat the name in every piece; others split it.
	if c.name != name || id == "" && c.arguments.Len() == 0 && d.Function.Arguments == "" {
		c.name = excerpt(c.name + name) // no provider sends or accepts longer names
	}
	c.arguments.WriteString(string(d.Function.Arguments))
	if text := strings.TrimSpace(string(d.Function.Arguments)); text != "" {
		c.closed = strings.HasSuffix(text, "}")
	}
	if l.byIndex == nil {
		l.byIndex, l.byID = map[string]*partialCall{}, map[string]*partialCall{}
	}
	if index != "" {
		l.byIndex[index] = c
	}
	if id != "" {
		l.byID[id] = c
	}
}

// of finds the call that a piece continues, nil if it begins one.
func (l *callList) of(id, name, index string) *partialCall {
	switch {
	case index != "":
		return l.byIndex[index]
	case id != "" && (l.byID[id] != nil || name != ""):
		return l.byID[id]
	case name == "" && len(l.calls) > 0:
		return l.calls[len(l.calls)-1]
	}
	return nil
}

// endedBefore reports whether a piece begins another call although it has the index or the id of c: it has a name that cannot continue c.
func (c *partialCall) endedBefore(d toolCall) bool {
	name, id := string(d.Function.Name), string(d.ID)
	switch {
	case name == "" || c.name == "":
		return false
	case id != "" && c.id != "" && id != c.id:
		return true
	case c.arguments.Len() == 0:
		return false
	}
	return name != c.name || c.closed && strings.HasPrefix(strings.TrimSpace(string(d.Function.Arguments)), "{")
}

// list returns the calls in order of their start, with the provider's ids.
func (l *callList) list() []chat.Call {
	var calls []chat.Call
	for _, c := range l.calls {
		calls = append(calls, chat.Call{ID: c.id, Name: c.name, Arguments: joinHalves(c.arguments.String())})
	}
	return calls
}

// identify assigns ids to calls without one, and to calls with the id of an earlier call.
func identify(calls []chat.Call) {
	taken := map[string]bool{"": true}
	for _, c := range calls {
		taken[c.ID] = true
	}
	seen := map[string]bool{"": true}
	n := 0
	for i := range calls {
		if seen[calls[i].ID] {
			for taken[calls[i].ID] {
				n++
				calls[i].ID = fmt.Sprintf("call_%d", n)
			}
			taken[calls[i].ID] = true
		}
		seen[calls[i].ID] = true
	}
}
