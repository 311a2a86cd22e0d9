package fragment

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxValue is the largest size of a value, in bytes, that a page shows whole.
const MaxValue = 16 << 10

// Value is a value as text: a string as it is, everything else as indented JSON.
type Value struct {
	Text string
	// Size is the size of the whole value in bytes if Text has only its beginning, else 0. Path is then the address of all of it.
	Size int
	Path string
}

// NewValue returns a value. If it is larger than MaxValue, it has only its beginning and path, the address of all of it.
func NewValue(v any, path string) *Value {
	text, isText := v.(string)
	switch size := WholeSize(v); {
	case isText && size <= MaxValue:
		return &Value{Text: text}
	case isText:
		return &Value{Text: clip(text, MaxValue), Size: size, Path: path}
	case size <= MaxValue:
		return &Value{Text: indented(v)}
	default:
		text = indented(shortened(v, MaxValue))
		return &Value{Text: clip(text, MaxValue), Size: size, Path: path}
	}
}

// WholeSize returns the size of a value in bytes: of a string itself, of everything else as JSON without blanks.
func WholeSize(v any) int {
	if text, ok := v.(string); ok {
		return len(text)
	}
	return jsonvalue.Size(v, 0)
}

// Whole returns all of a value as text.
func Whole(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return indented(v)
}

func indented(v any) string {
	var b bytes.Buffer
	if err := json.Indent(&b, jsonvalue.Canonical(v), "", "  "); err != nil {
		return string(jsonvalue.Canonical(v))
	}
	return b.String()
}

// clip cuts a text to a number of bytes, at the end of a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Laid is a value that is laid out for a person to read, complete.
type Laid struct {
	// Text is a string, or the JSON of a value that is nested deep or is neither string nor list nor object.
	Text string
	// JSON is set if Text is JSON.
	JSON bool
	// Fields are those of an object, Items those of a list. Head and Rows are a list of objects that have most fields in common; a cell
	// without a value is empty.
	Fields []LaidField
	Items  []Laid
	Head   []string
	Rows   [][]Laid
}

// LaidField is a field of an object.
type LaidField struct {
	Name  string
	Value Laid
}

// maxLaid is the largest depth of objects and lists that are laid out.
const maxLaid = 2

// Lay lays a value out. names returns the names of an object's fields in the order to show them; nil sorts them.
func Lay(v any, names func(map[string]any) []string) Laid {
	if names == nil {
		names = jsonvalue.Keys
	}
	return lay(v, names, 0)
}

func lay(v any, names func(map[string]any) []string, depth int) Laid {
	switch v := v.(type) {
	case string:
		return Laid{Text: v}
	case nil:
		return Laid{Text: "(nothing)"}
	case bool:
		if v {
			return Laid{Text: "yes"}
		}
		return Laid{Text: "no"}
	case map[string]any:
		if len(v) == 0 {
			return Laid{Text: "(nothing)"}
		}
		if depth >= maxLaid {
			break
		}
		l := Laid{}
		for _, name := range names(v) {
			l.Fields = append(l.Fields, LaidField{name, lay(v[name], names, depth+1)})
		}
		return l
	case []any:
		if len(v) == 0 {
			return Laid{Text: "(nothing)"}
		}
		if depth >= maxLaid {
			break
		}
		return layList(v, names, depth)
	case float64:
		return Laid{Text: string(jsonvalue.Canonical(v))}
	}
	return Laid{Text: indented(v), JSON: true}
}

func layList(list []any, names func(map[string]any) []string, depth int) Laid {
	l := Laid{}
	if head := columns(list, names); head != nil {
		l.Head = head
		for _, item := range list {
			object := item.(map[string]any)
			row := make([]Laid, len(head))
			for i, name := range head {
				if v, has := object[name]; has {
					row[i] = lay(v, names, maxLaid)
				}
			}
			l.Rows = append(l.Rows, row)
		}
		return l
	}
	for _, item := range list {
		l.Items = append(l.Items, lay(item, names, depth+1))
	}
	return l
}

// columns returns the names of the fields of the items of a list, in order; nil unless the items are objects that have most of these fields.
func columns(list []any, names func(map[string]any) []string) []string {
	if len(list) < 2 {
		return nil
	}
	all := map[string]any{}
	for _, item := range list {
		object, _ := item.(map[string]any)
		if len(object) == 0 {
			return nil
		}
		maps.Copy(all, object)
	}
	for _, item := range list {
		if missing := len(all) - len(item.(map[string]any)); missing*3 > len(all) {
			return nil
		}
	}
	return names(all)
}

// OneLine returns the beginning of a text in one line of at most so many characters.
func OneLine(text string, most int) string {
	text = strings.Join(strings.Fields(clip(text, 8*most)), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// shortened returns a value with the fields and items of about the first most bytes.
func shortened(v any, most int) any {
	out, _ := shorten(v, most)
	return out
}

func shorten(v any, left int) (any, int) {
	switch v := v.(type) {
	case string:
		v = clip(v, max(left, 0))
		return v, left - len(v) - 2
	case map[string]any:
		out := map[string]any{}
		for _, name := range jsonvalue.Keys(v) {
			if left <= 0 {
				break
			}
			out[name], left = shorten(v[name], left-len(name)-4)
		}
		return out, left - 2
	case []any:
		out := []any{}
		for _, item := range v {
			if left <= 0 {
				break
			}
			var shown any
			shown, left = shorten(item, left-1)
			out = append(out, shown)
		}
		return out, left - 2
	}
	return v, left - 8
}
