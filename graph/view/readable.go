package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// readable writes a value as text for a person, in about most bytes: strings unquoted, fields and items on separate lines. order returns
// the names of an object's fields in display order. If the value is too large, short fields stay whole and long ones share the remaining
// size, at every depth.
func readable(v any, order func(map[string]any) []string, most int) (text string, cut bool) {
	r := reader{order: order}
	r.write(v, "", most)
	text = r.b.String()
	if limit := most + most/8; len(text) > limit { // indentation of deep values
		text, r.cut = problem.Clip(text, limit)+" …", true
	}
	return text, r.cut
}

type reader struct {
	order func(map[string]any) []string
	b     strings.Builder
	cut   bool
}

// inOrder returns an order with the given names first, then the others by name.
func inOrder(order []string) func(map[string]any) []string {
	return func(object map[string]any) []string { return namesInOrder(object, order) }
}

func namesInOrder(object map[string]any, order []string) []string {
	names := slices.DeleteFunc(slices.Clone(order), func(name string) bool { _, has := object[name]; return !has })
	for _, name := range jsonvalue.Keys(object) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// minShare is the smallest size of a field, in bytes.
const minShare = 16

// write writes a value in about most bytes; its lines begin with indent.
func (r *reader) write(v any, indent string, most int) {
	switch v := v.(type) {
	case string:
		if room := max(most, minShare); size(v, len(indent), room) > room {
			n := min(room, len(v))
			n = max(n-strings.Count(v[:n], "\n")*len(indent), 0)
			v, r.cut = fmt.Sprintf("%s … (%d characters in all)", strings.ToValidUTF8(v[:n], ""), utf8.RuneCountInString(v)), true
		}
		r.b.WriteString(strings.ReplaceAll(v, "\n", "\n"+indent))
	case nil:
		r.b.WriteString("(nothing)")
	case map[string]any:
		r.members(v, indent, most)
	case []any:
		r.items(v, indent, most)
	default:
		r.b.Write(jsonvalue.Canonical(v))
	}
}

// size returns an upper bound of the bytes that write needs for a whole value. Above limit it stops early and returns any larger number.
func size(v any, indent, limit int) (n int) {
	switch v := v.(type) {
	case string:
		if n = len(v); n <= limit {
			n += strings.Count(v, "\n") * indent
		}
	case map[string]any:
		n = len("(nothing)")
		for name, value := range v {
			if n += len(name) + len("\n: \n  ") + 2*indent; n <= limit {
				n += size(value, indent+2, limit-n)
			}
			if n > limit {
				return n
			}
		}
	case []any:
		n = len("(nothing)")
		for _, value := range v {
			if n += len("\n- \n  ") + 2*indent; n <= limit {
				n += size(value, indent+2, limit-n)
			}
			if n > limit {
				return n
			}
		}
	case nil:
		n = len("(nothing)")
	default:
		n = jsonvalue.Size(v, max(limit, 1))
	}
	return n
}

// members writes the fields of an object, each in its share of most bytes.
func (r *reader) members(object map[string]any, indent string, most int) {
	if len(object) == 0 {
		r.b.WriteString("(nothing)")
		return
	}
	names, left := r.order(object), most
	sizes, bySize := make([]int, len(names)), make([]int, len(names))
	n, least := 0, 0 // number of fields that fit, and their smallest size
	whole := size(object, len(indent), most) <= most
	for ; n < len(names); n++ {
		around := len(names[n]) + len("\n: \n  ") + 2*len(indent)
		sizes[n], bySize[n] = min(size(object[names[n]], len(indent)+2, max(most, 0)), most+1), n
		if least += around + min(sizes[n], minShare); n > 0 && least > most && !whole {
			break
		}
		left -= around
	}
	more := len(names) - n
	names, bySize = names[:n], bySize[:n]
	r.cut = r.cut || more > 0
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	for done, i := range bySize {
		if !whole {
			sizes[i] = min(sizes[i], max(left/(n-done), minShare))
		}
		left -= sizes[i]
	}
	for i, name := range names {
		r.entry(i, name+":", object[name], indent, sizes[i])
	}
	if more > 0 {
		fmt.Fprintf(&r.b, "\n%s… and %d more", indent, more)
	}
}

// items writes the items of an array, the first ones whole.
func (r *reader) items(list []any, indent string, most int) {
	if len(list) == 0 {
		r.b.WriteString("(nothing)")
	}
	begin := r.b.Len()
	for i, item := range list {
		left := most - (r.b.Len() - begin)
		if i > 0 && left < minShare {
			fmt.Fprintf(&r.b, "\n%s… and %d more", indent, len(list)-i)
			r.cut = true
			return
		}
		r.entry(i, "-", item, indent, left)
	}
}

// entry writes a field or an item after its head, such as "name:".
func (r *reader) entry(i int, head string, v any, indent string, most int) {
	if i > 0 {
		r.b.WriteString("\n" + indent)
	}
	r.b.WriteString(head)
	below := false
	switch v := v.(type) {
	case string:
		below = strings.Contains(strings.TrimSpace(v), "\n")
	case map[string]any:
		below = len(v) > 0 && head != "-"
	case []any:
		below = len(v) > 0
	}
	if below {
		r.b.WriteString("\n" + indent + "  ")
	} else {
		r.b.WriteString(" ")
	}
	r.write(v, indent+"  ", most)
}

// writtenOrder returns the names of an object's fields in the order of their first use in the jq program that made the object.
func writtenOrder(object map[string]any, source string) []string {
	names := jsonvalue.Keys(object)
	at := func(name string) int {
		for from := 0; ; {
			i := strings.Index(source[from:], name)
			if i < 0 {
				return len(source)
			}
			i += from
			from = i + len(name)
			if (i == 0 || !partOfName(source[i-1]) && source[i-1] != '.') && (from == len(source) || !partOfName(source[from])) {
				return i
			}
		}
	}
	places := make(map[string]int, len(names))
	for _, name := range names {
		places[name] = at(name)
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(places[a], places[b]) })
	return names
}

func partOfName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
