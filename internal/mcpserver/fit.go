package mcpserver

import (
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
)

const (
	// DefaultAnswerBytes is the size of structured content that answers keep to unless they are asked for more: some 2,000
	// tokens.
	DefaultAnswerBytes = 8 << 10
	// MinAnswerBytes is the least that can be asked for. Below it the call that continues a run would have no room.
	MinAnswerBytes = 4 << 10
	// FullAnswers as a size has an answer carry all of its run.
	FullAnswers = -1
)

// reserved is what a value that is put in later can count on: a reference with some of its members.
const reserved = 2 * outline.MinBytes

// slot is a value of an answer that is shown as far as there is room.
type slot struct {
	of    *members
	index int
	value any
	size  int
	in    outline.Document
	at    string // pointer into the document
	// share bounds it if it does not fit as a whole; 0 does not.
	share int
}

// slotOf takes the value of a member out of an object, to be put back by fill.
func slotOf(of *members, index int, in outline.Document, at string) *slot {
	v := (*of)[index].Value
	(*of)[index].Value = jsonvalue.Raw{}
	return &slot{of: of, index: index, value: v, size: jsonvalue.Size(v, 0), in: in, at: at}
}

// slotsOf takes the values of those members out of an object that it has, in the order of the names.
func slotsOf(of *members, in outline.Document, names ...string) []*slot {
	var slots []*slot
	for _, name := range names {
		if i := indexOf(*of, name); i >= 0 {
			slots = append(slots, slotOf(of, i, in, "/"+name))
		}
	}
	return slots
}

func indexOf(m members, name string) int {
	for i := range m {
		if m[i].Name == name {
			return i
		}
	}
	return -1
}

// least is what the values take if none of them is shown as a whole.
func least(slots []*slot) int {
	n := 0
	for _, s := range slots {
		n += min(s.size, reserved)
	}
	return n
}

// fill puts the values back in at most room bytes, the first first, and returns what is left, and whether all are whole.
func fill(slots []*slot, room int) (rest int, whole bool) {
	whole = true
	for i, s := range slots {
		limit := room - least(slots[i+1:])
		if s.size > limit && s.share > 0 {
			limit = min(limit, s.share)
		}
		text, all := s.in.Show(s.value, max(limit, outline.MinBytes), s.at)
		(*s.of)[s.index].Value = text
		room -= len(text)
		whole = whole && all
	}
	return room, whole
}

// without is an object without a member.
func without(m members, name string) members {
	if i := indexOf(m, name); i >= 0 {
		return append(m[:i:i], m[i+1:]...)
	}
	return m
}
