package runview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// readable writes a value for a person, in at most about so many bytes: texts as they are, members and items in lines of their own. order are
// the names of members in the order in which their author has written them; others follow by name. Where not everything fits, short
// members stay whole, and long ones share what is left.
func readable(v any, order []string, most int) (text string, cut bool) {
	object, ok := v.(map[string]any)
	if !ok {
		var b strings.Builder
		cut = write(&b, v, "", most)
		return b.String(), cut
	}
	type member struct {
		text string
		cut  bool
	}
	names := inOrder(object, order)
	members := make([]member, len(names))
	bySize := make([]int, len(names))
	for i, name := range names {
		var b strings.Builder
		members[i].cut = write(&b, map[string]any{name: object[name]}, "", most)
		members[i].text, bySize[i] = b.String(), i
	}
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(len(members[a].text), len(members[b].text)) })
	left, anyCut := most, false
	for n, i := range bySize {
		m := &members[i]
		if share := left / (len(bySize) - n); len(m.text) > share {
			m.text, m.cut = problem.Clip(m.text, max(share, 16))+" …", true
		}
		left = max(0, left-len(m.text)-1)
		anyCut = anyCut || m.cut
	}
	lines := make([]string, len(members))
	for i, m := range members {
		lines[i] = m.text
	}
	return strings.Join(lines, "\n"), anyCut
}

// inOrder are the names of an object's members, those of order first.
func inOrder(object map[string]any, order []string) []string {
	names := slices.DeleteFunc(slices.Clone(order), func(name string) bool { _, has := object[name]; return !has })
	for _, name := range jsonvalue.Keys(object) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// write writes a value whose lines begin with indent, and reports whether it was cut.
func write(b *strings.Builder, v any, indent string, most int) (cut bool) {
	if b.Len() > most {
		return true
	}
	switch v := v.(type) {
	case string:
		if room := max(most-b.Len(), 0); len(v) > room {
			v, cut = fmt.Sprintf("%s … (%d characters in all)", problem.Clip(v, room), utf8.RuneCountInString(v)), true
		}
		b.WriteString(strings.ReplaceAll(v, "\n", "\n"+indent))
	case nil:
		b.WriteString("(nothing)")
	case map[string]any:
		if len(v) == 0 {
			b.WriteString("(nothing)")
		}
		for i, name := range jsonvalue.Keys(v) {
			cut = writeEntry(b, i, name+":", v[name], indent, most) || cut
		}
	case []any:
		if len(v) == 0 {
			b.WriteString("(nothing)")
		}
		for i, item := range v {
			cut = writeEntry(b, i, "-", item, indent, most) || cut
		}
	default:
		b.Write(jsonvalue.Canonical(v))
	}
	return cut
}

// writeEntry writes a member or an item behind what it begins with.
func writeEntry(b *strings.Builder, i int, head string, v any, indent string, most int) (cut bool) {
	if b.Len() > most {
		return true
	}
	if i > 0 {
		b.WriteString("\n" + indent)
	}
	b.WriteString(head)
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
		b.WriteString("\n" + indent + "  ")
	} else {
		b.WriteString(" ")
	}
	return write(b, v, indent+"  ", most)
}

// writtenOrder returns the members of an object in the order in which the program that made it names them.
func writtenOrder(v any, source string) []string {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
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
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(at(a), at(b)) })
	return names
}

func partOfName(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
