package mcphost

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"
)

// jsonText edits JSON with comments and trailing commas. The rest stays byte for byte.
type jsonText struct {
	root    hujson.Value
	newline string
	// unit is one step of indentation, "" for a document in one line.
	unit string
}

// parseJSON reads a document; an empty text is an empty object.
func parseJSON(text []byte) (*jsonText, error) {
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}" + newline)
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	d := &jsonText{root: root, newline: newline, unit: "  "}
	if o, ok := root.Value.(*hujson.Object); ok && len(o.Members) > 0 {
		if first, broken := indentation(o.Members[0].Name.BeforeExtra); broken && first != "" {
			d.unit = first
		} else if !broken && !bytes.Contains(bytes.TrimSpace(text), []byte("\n")) {
			d.unit = ""
		}
	}
	return d, nil
}

// indentation is the white space before a field, and whether it starts the line.
func indentation(before hujson.Extra) (indent string, broken bool) {
	i := bytes.LastIndexByte(before, '\n')
	if i < 0 {
		return "", false
	}
	rest := before[i+1:]
	return string(rest[:len(rest)-len(bytes.TrimLeft(rest, " \t"))]), true
}

func (d *jsonText) bytes() []byte { return d.root.Pack() }

// plain is the document as values.
func (d *jsonText) plain() (value any, err error) {
	standard := d.root.Clone()
	standard.Standardize()
	dec := json.NewDecoder(bytes.NewReader(standard.Pack()))
	dec.UseNumber()
	err = dec.Decode(&value)
	return value, err
}

// findMember returns the index of the field with a name: the last one, as in JSON readers; -1 without one.
func findMember(o *hujson.Object, name string) (at int) {
	at = -1
	for i, m := range o.Members {
		if m.Name.Value.(hujson.Literal).String() == name {
			at = i
		}
	}
	return at
}

// set writes a value at a path of names. It creates missing objects on the path, and reports false if another value is
// on the path.
func (d *jsonText) set(path []string, value any) bool {
	v, indent := &d.root, ""
	for depth, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return false
		}
		at := findMember(o, name)
		if at < 0 {
			for i := len(path) - 1; i > depth; i-- {
				value = []member{{path[i], value}}
			}
			d.append(o, name, value, indent)
			return true
		}
		m := &o.Members[at]
		if own, broken := indentation(m.Name.BeforeExtra); broken {
			indent = own
		} else {
			indent += d.unit
		}
		v = &m.Value
	}
	if !equalJSON(v.Pack(), compact(value)) {
		v.Value = d.literal(value, indent, d.unit != "")
	}
	return true
}

// equalJSON reports whether a value of the document is a value in JSON.
func equalJSON(there, value []byte) bool {
	there, err := hujson.Standardize(there)
	if err != nil {
		return false
	}
	var a, b any
	return json.Unmarshal(there, &a) == nil && json.Unmarshal(value, &b) == nil && reflect.DeepEqual(a, b)
}

// literal returns a value in the document's style; indent is the indentation of its first line.
func (d *jsonText) literal(value any, indent string, lines bool) hujson.ValueTrimmed {
	text := compact(value)
	if lines {
		var out bytes.Buffer
		// Indent fails on invalid JSON only.
		_ = json.Indent(&out, text, indent, d.unit)
		text = []byte(strings.ReplaceAll(out.String(), "\n", d.newline))
	}
	parsed, err := hujson.Parse(text)
	if err != nil {
		return hujson.Literal("null") // never: compact makes JSON
	}
	return parsed.Value
}

// append adds a field at the end of an object, on its own line if the others are. indent is the indentation of the line on
// which the object starts.
func (d *jsonText) append(o *hujson.Object, name string, value any, indent string) {
	own, lines, comma := indent+d.unit, d.unit != "", false
	if n := len(o.Members); n > 0 {
		last := &o.Members[n-1]
		comma = last.Value.AfterExtra != nil
		if theirs, broken := indentation(last.Name.BeforeExtra); broken {
			own, lines = theirs, true
		} else {
			lines = bytes.Contains(o.AfterExtra, []byte("\n"))
		}
	}
	// Text before the closing brace: comments stay before the new field, white space after it.
	comments := bytes.TrimRight(o.AfterExtra, " \t\r\n")
	space := o.AfterExtra[len(comments):]
	if len(comments) > 0 {
		lines = true
	}
	before, after := string(comments), string(space)
	switch {
	case lines:
		before += d.newline + own
		if !strings.Contains(after, "\n") {
			after = d.newline + indent
		}
	case len(o.Members) > 0:
		before += " "
	}
	m := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra(before), Value: hujson.String(name)},
		Value: hujson.Value{Value: d.literal(value, own, lines)},
	}
	if lines || len(o.Members) > 0 {
		m.Value.BeforeExtra = hujson.Extra(" ")
	}
	if comma {
		m.Value.AfterExtra = hujson.Extra{}
	}
	o.Members = append(o.Members, m)
	o.AfterExtra = hujson.Extra(after)
}

// remove removes the field at a path; comments before it stay.
func (d *jsonText) remove(path []string) bool {
	v := &d.root
	for depth, name := range path {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			return false
		}
		at := findMember(o, name)
		if at < 0 {
			return false
		}
		if depth < len(path)-1 {
			v = &o.Members[at].Value
			continue
		}
		d.cut(o, at)
		return true
	}
	return false
}

// removeEmpty removes a field whose value is an object without fields and comments, and reports whether it did.
func (d *jsonText) removeEmpty(name string) bool {
	o, ok := d.root.Value.(*hujson.Object)
	if !ok {
		return false
	}
	at := findMember(o, name)
	if at < 0 {
		return false
	}
	inner, ok := o.Members[at].Value.Value.(*hujson.Object)
	if !ok || len(inner.Members) > 0 || len(bytes.TrimSpace(inner.AfterExtra)) > 0 {
		return false
	}
	d.cut(o, at)
	return true
}

// cut removes a field from an object.
func (d *jsonText) cut(o *hujson.Object, at int) {
	gone := o.Members[at]
	comments := bytes.TrimRight(gone.Name.BeforeExtra, " \t\r\n")
	o.Members = append(o.Members[:at:at], o.Members[at+1:]...)
	switch n := len(o.Members); {
	case at < n:
		if next := &o.Members[at].Name; len(comments) > 0 {
			next.BeforeExtra = append(bytes.Clone(gone.Name.BeforeExtra), bytes.TrimLeft(next.BeforeExtra, " \t\r\n")...)
		} else if at == 0 && len(bytes.TrimSpace(next.BeforeExtra)) == 0 {
			next.BeforeExtra = gone.Name.BeforeExtra // the first field of a line has no space before it
		}
	case n == 0 && len(comments) == 0 && len(bytes.TrimSpace(o.AfterExtra)) == 0:
		o.AfterExtra = nil
	case n > 0 && gone.Value.AfterExtra == nil:
		// The text between the field before and its comma, which is removed, too.
		before := o.Members[n-1].Value.AfterExtra
		o.Members[n-1].Value.AfterExtra = nil
		o.AfterExtra = d.before(d.before(o.AfterExtra, comments), bytes.TrimRight(before, " \t\r\n"))
	default:
		o.AfterExtra = d.before(o.AfterExtra, comments)
		if n > 0 && o.Members[n-1].Value.AfterExtra == nil {
			o.Members[n-1].Value.AfterExtra = hujson.Extra{} // the comma after it stays
		}
	}
}

// before puts comments before the text that follows, on their own line: the last comment may end with its line.
func (d *jsonText) before(rest hujson.Extra, comments []byte) hujson.Extra {
	if len(comments) == 0 {
		return rest
	}
	space := rest[:len(rest)-len(bytes.TrimLeft(rest, " \t\r\n"))]
	if !bytes.Contains(space, []byte("\n")) {
		comments = append(bytes.Clone(comments), d.newline...)
	}
	return append(bytes.Clone(comments), rest...)
}
