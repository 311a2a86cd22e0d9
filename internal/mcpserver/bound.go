package mcpserver

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/outline"
)

// An answer shows values as far as they fit; see slot. The rest, such as names, labels, findings and warnings, is
// usually short; it is clipped here, so that no answer exceeds its size.

// clipTo lists the limits for texts, in bytes, tried one after the other. An array keeps an element for each bytesPerElement of them.
var clipTo = []int{1000, 500, 250, 120, 80}

const bytesPerElement = 25

// kept reports whether a field must not be clipped, because a part of it is useless.
func kept(name string) bool {
	return name == "next" || name == "execution_id" || name == "$ref" || name == "pointer" || name == "idempotency_key" || name == "interrupt_id"
}

// bound clips the content of an answer to a size in bytes. extra is the size of the text around it.
func bound(content members, bytes, extra int) members {
	size := func(m members) int { return len(m.Append(nil)) + extra }
	if bytes == FullAnswers || size(content) <= bytes {
		return content
	}
	if i := indexOf(content, "next"); i >= 0 && len(members{content[i]}.Append(nil)) > bytes/2 {
		content = slices.Clone(content)
		content[i].Value = askForMore(content, content[i].Value, bytes).members()
	}
	shorter := content
	for _, most := range clipTo {
		if size(shorter) <= bytes {
			return shorter
		}
		shorter = clipMembers(content, most)
	}
	for size(shorter) > bytes { // texts and lists go, the largest first
		largest, most := -1, 2
		for i, m := range shorter {
			if n := len(jsonvalue.Canonical(m.Value)); n > most && !kept(m.Name) && emptied(m.Value) != nil {
				largest, most = i, n
			}
		}
		if largest < 0 {
			break
		}
		shorter[largest].Value = emptied(shorter[largest].Value)
	}
	return shorter
}

// firstShare limits the first line of an answer's text to this fraction of the answer.
const firstShare = 4

// askForMore returns the call that replaces one that does not fit: it asks for a larger answer.
func askForMore(content members, next any, bytes int) toolCall {
	id := any("")
	if i := indexOf(content, "execution_id"); i >= 0 {
		id = content[i].Value
	}
	room := bytes + 2*len(jsonvalue.Canonical(next))
	return call("workflow_status", members{{"execution_id", id}, {"answer_bytes", float64(room)}},
		"The call that continues the run does not fit in this answer: this call shows it.")
}

// clipMembers clips the fields of an object and adds how many elements its arrays have lost.
func clipMembers(m members, most int) members {
	short := make(members, 0, len(m))
	var leftOut members
	for _, one := range m {
		if !kept(one.Name) {
			var n int
			if one.Value, n = clipValue(one.Value, most); n > 0 {
				leftOut.Number(one.Name, int64(n))
			}
		}
		short = append(short, one)
	}
	if len(leftOut) > 0 {
		short.Put("left_out", leftOut)
	}
	return short
}

// clipValue returns a value with texts of at most most bytes, and how many of its elements are left out.
func clipValue(v any, most int) (short any, leftOut int) {
	elements := max(1, most/bytesPerElement)
	switch v := v.(type) {
	case string:
		return clipText(v, most), 0
	case members:
		leftOut = max(0, len(v)-elements)
		return clipMembers(v[:min(len(v), elements)], most), leftOut
	case map[string]any:
		m := map[string]any{}
		for _, name := range jsonvalue.Keys(v) {
			if len(m) < elements && len(name) <= most {
				m[name], _ = clipValue(v[name], most)
			}
		}
		return m, len(v) - len(m)
	case []members:
		list := make([]members, min(len(v), elements))
		for i := range list {
			list[i] = clipMembers(v[i], most)
		}
		return list, len(v) - len(list)
	case []any:
		list := make([]any, min(len(v), elements))
		for i := range list {
			list[i], _ = clipValue(v[i], most)
		}
		return list, len(v) - len(list)
	}
	return v, 0
}

// clipText clips a text by the bytes that JSON writes for it.
func clipText(text string, most int) string {
	for limit := most; len(text) > most || jsonvalue.Size(text, 0) > most+2; limit -= max(1, limit/4) {
		if text = problem.Clip(text, limit); limit <= 4 {
			break
		}
	}
	return text
}

// emptied returns an empty value of the same kind; nil unless v is a string, an array or an object.
func emptied(v any) any {
	switch v.(type) {
	case string:
		return ""
	case members, map[string]any:
		return members{}
	case []members, []any:
		return []any{}
	}
	return nil
}

// besideContent is how many bytes the text of an answer may have in addition to the size of its structured content.
const besideContent = 1 << 10

// boundText joins the lines of a text and clips them to bytes plus besideContent. A call that is too long is left out: the structured content names
// another one.
func boundText(lines []string, bytes int) string {
	text := strings.Join(lines, "\n")
	if bytes == FullAnswers {
		return text
	}
	bytes += besideContent
	for _, most := range clipTo {
		if len(text) <= bytes {
			return text
		}
		short := make([]string, 0, len(lines))
		for i, line := range lines {
			switch isCall := strings.HasPrefix(line, "Next: workflow_"); {
			case i == 0: // whose size is bounded
				short = append(short, line)
			case !isCall:
				short = append(short, problem.Clip(line, most))
			case len(line) <= bytes/2:
				short = append(short, line)
			}
		}
		text = strings.Join(short, "\n")
	}
	return problem.Clip(text, bytes-len("…"))
}

const (
	// DefaultAnswerBytes is the size of structured content that answers keep to unless they are asked for more: some 2,000
	// tokens.
	DefaultAnswerBytes = 8 << 10
	// MinAnswerBytes is the smallest answer_bytes. Below it the call that continues a run would not fit.
	MinAnswerBytes = 4 << 10
	// FullAnswers as a size leaves answers unbounded.
	FullAnswers = -1
)

// reserved is the room kept for each later value: a reference with some of its fields.
const reserved = 2 * outline.MinBytes

// slot is a value of an answer that is shown as far as there is room.
type slot struct {
	of    *members
	index int
	value any
	size  int
	in    outline.Document
	at    string // pointer into the document
	// share limits the value, in bytes, if it does not fit as a whole; 0 is no limit.
	share int
}

// slotOf takes the value of a field out of an object, to be put back by fill.
func slotOf(of *members, index int, in outline.Document, at string) *slot {
	v := (*of)[index].Value
	(*of)[index].Value = jsonvalue.Raw{}
	return &slot{of: of, index: index, value: v, size: jsonvalue.Size(v, 0), in: in, at: at}
}

// slotsOf takes the values of the named fields out of an object, in the order of the names. Missing fields are skipped.
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

// least returns the size of the values if each is only a reference.
func least(slots []*slot) int {
	n := 0
	for _, s := range slots {
		n += min(s.size, reserved)
	}
	return n
}

// fill puts the values back in at most room bytes, in order. It returns the room left, and whether all values are
// whole.
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

// without returns an object without a field.
func without(m members, name string) members {
	if i := indexOf(m, name); i >= 0 {
		return append(m[:i:i], m[i+1:]...)
	}
	return m
}
