// Package outline shows a JSON value in a given number of bytes. A part that does not fit is replaced by a reference with its place, kind,
// size and beginning:
//
//	{"$ref":"awp://runs/r/state","pointer":"/documents","kind":"array","bytes":48213,"items":112,"head":[…]}
//
// A value is shown whole or by a reference. Only the head of a text is part of a value.
package outline

import (
	"cmp"
	"slices"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MinBytes is the least limit that makes sense: a reference without a head takes as much, with an address of usual length.
const MinBytes = 256

// maxHead is how many bytes of a list, an object or a text a reference shows at most.
const maxHead = 240

// Document is the value at an address.
type Document struct {
	URI string
	// Hide masks secrets in a string before it is cut, since a part of a secret is not recognised. May be nil.
	Hide func(string) string
}

// Show returns the text of v, which is at a pointer (RFC 6901) into the document, in at most limit bytes, and whether it is all
// of it. A limit that is too small for a reference is exceeded by the reference without its head.
func (d Document) Show(v any, limit int, pointer string) (text jsonvalue.Raw, whole bool) {
	size := jsonvalue.Size(v, 0)
	if size <= limit {
		return jsonvalue.Append(make([]byte, 0, size), v), true
	}
	if object, ok := v.(map[string]any); ok {
		if text := d.members(object, limit, pointer); text != nil {
			return text, false
		}
	}
	return d.reference(v, size, limit, pointer), false
}

// members returns an object with a reference for each field that is too large, and small fields whole. It returns nil if there is no
// room for that.
func (d Document) members(object map[string]any, limit int, pointer string) jsonvalue.Raw {
	type member struct {
		name       string
		size, room int // room is for the value alone
	}
	list := make([]member, 0, len(object))
	for _, name := range jsonvalue.Keys(object) {
		if limit -= jsonvalue.StringSize(name) + len(`:,`); limit < 0 {
			return nil
		}
		list = append(list, member{name: name, size: jsonvalue.Size(object[name], 0)})
	}
	// The smallest fields get their full size, the others share the rest.
	bySize := make([]*member, len(list))
	for i := range list {
		bySize[i] = &list[i]
	}
	slices.SortStableFunc(bySize, func(a, b *member) int { return cmp.Compare(a.size, b.size) })
	rest := limit - len(`{}`)
	for i, m := range bySize {
		m.room = min(m.size, rest/(len(bySize)-i))
		rest -= m.room
	}
	text := jsonvalue.Raw{'{'}
	for i, m := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(jsonvalue.AppendString(text, m.name), ':')
		value, whole := d.Show(object[m.name], m.room, pointer+"/"+jsonvalue.EscapePointer(m.name))
		if !whole && len(value) > m.room {
			return nil
		}
		text = append(text, value...)
	}
	return append(text, '}')
}

// reference replaces a value that is not shown.
func (d Document) reference(v any, size, limit int, pointer string) jsonvalue.Raw {
	ref := jsonvalue.Ordered{{"$ref", d.URI}, {"pointer", pointer}, {"kind", jsonvalue.KindOf(v).String()}, {"bytes", float64(size)}}
	room := func() int { return min(maxHead, limit-len(ref.Append(nil))-len(`,"head":`)) }
	switch v := v.(type) {
	case []any:
		ref.Put("items", float64(len(v)))
		if text := firstItems(v, room()); text != nil {
			ref.Put("head", text)
		}
	case map[string]any:
		ref.Put("members", float64(len(v)))
		if names := firstNames(v, room()); len(names) > 0 {
			ref.Put("head", names)
		}
	case string:
		if d.Hide != nil {
			v = d.Hide(v)
		}
		if text := firstText(v, room()); text != "" {
			ref.Put("head", text)
		}
	}
	return ref.Append(nil)
}

// firstItems are the first elements of an array that fit, each whole; nil if the first does not fit.
func firstItems(list []any, room int) jsonvalue.Raw {
	text := jsonvalue.Raw{'['}
	for i, e := range list {
		size := jsonvalue.Size(e, max(room, 1))
		if len(text)+size+len(`,]`) > room {
			break
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = jsonvalue.Append(text, e)
	}
	if len(text) == 1 {
		return nil
	}
	return append(text, ']')
}

// firstNames are the first names of fields that fit, in the order of the text.
func firstNames(object map[string]any, room int) []any {
	var names []any
	room -= len(`[]`)
	for _, name := range jsonvalue.Keys(object) {
		if room -= jsonvalue.StringSize(name) + len(`,`); room < 0 {
			break
		}
		names = append(names, name)
	}
	return names
}

// firstText is the beginning of a text that fits. It cuts no character in two.
func firstText(text string, room int) string {
	end := 0
	room -= len(`""`)
	for i, r := range text {
		if room -= jsonvalue.StringSize(string(r)) - len(`""`); room < 0 {
			break
		}
		end = i + len(string(r))
	}
	return text[:min(end, len(text))]
}
