// Package form turns a flat JSON Schema into the fields of a form for people, and filled-in fields into a payload. MCP
// hosts, the web page and the card show the same fields; each encodes them in its own way.
package form

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The largest form for a person. A larger schema has no form.
const (
	maxFields  = 32
	maxOptions = 100
)

// How many bytes of the texts of a definition a form shows.
const (
	MaxLabel = 200
	MaxHelp  = 1000
)

// Kind is the type of a field's value.
type Kind string

// The kinds of fields.
const (
	Text    Kind = "text"
	Number  Kind = "number"
	Integer Kind = "integer"
	Boolean Kind = "boolean"
	// Choice is one of Field.Options.
	Choice Kind = "choice"
	// Choices is a list of values of Field.Options.
	Choices Kind = "choices"
	// Group is an object with Field.Fields; groups are not nested.
	Group Kind = "group"
)

// Form is a form for payloads of a schema.
type Form struct {
	// Fields are the required ones in the order of the schema's "required", then the others by name. A stored definition
	// keeps no other order.
	Fields []Field
}

// Field is a property of the payload.
type Field struct {
	// ID is f0, f1 and so on: the name of the HTML control. The id of a group is its own, its fields have theirs.
	ID string
	// Name is the name of the property.
	Name string
	Kind Kind
	// Title and Description are those of the schema, cleaned for display; "" if absent.
	Title, Description string
	// Hints describe rules that not every form can express, such as "matches ^[A-Z]$".
	Hints []string
	// Control is the HTML control: textarea, select, radio, checkbox, fieldset, or the type of an input element (text, email, url, date,
	// datetime-local, number).
	Control string
	// Format is the schema's format if forms know it: email, uri, date or date-time.
	Format string
	// Pattern is the schema's pattern, "" if absent or too long to be shown.
	Pattern string
	// Required reports that the form demands the field. A field of an optional group is never required, see Demanded.
	Required bool
	// Demanded reports that the schema demands the field of its object, be it by null.
	Demanded bool
	// OrNull reports that the schema accepts null, which an empty demanded field then means.
	OrNull bool
	// Blank reports that empty text is a valid value.
	Blank bool
	// Options are the values of a choice, and of a boolean yes and no.
	Options []Option
	// Min and Max bound numbers, inclusive; nil if there is no bound.
	Min, Max *float64
	// Least and Most bound the length of text in characters, and the number of chosen values; -1 if there is no bound.
	Least, Most int
	// Default is the schema's default if it fits the field, otherwise nil. See Value for its text.
	Default any
	// Fields are those of a group.
	Fields []Field
}

// Option is a value to choose.
type Option struct {
	// Label identifies the value in a submitted form: the text itself, or the value as JSON.
	Label string
	// Title is shown in place of the label; "" without a title.
	Title string
	Value any
}

// Shown returns the title, or the label.
func (o Option) Shown() string {
	if o.Title != "" {
		return o.Title
	}
	return o.Label
}

// Label returns the title, or the name.
func (f *Field) Label() string {
	if f.Title != "" {
		return f.Title
	}
	return f.Name
}

// Help returns the description with the hints.
func (f *Field) Help() string {
	hints := f.Hints
	if f.Control == "datetime-local" {
		hints = append(slices.Clip(hints), "in UTC")
	}
	if len(hints) == 0 {
		return f.Description
	}
	return strings.TrimSpace(f.Description + " (" + strings.Join(hints, ", ") + ")")
}

// Value returns the default as the text of a control, "" without a default.
func (f *Field) Value() string {
	switch v := f.Default.(type) {
	case nil:
		return ""
	case string:
		if f.Kind == Text && f.Control == "datetime-local" {
			return local(v)
		}
		return v
	default:
		return string(jsonvalue.Canonical(v))
	}
}

// notShown are keywords of a schema that a form cannot show.
var notShown = []string{
	"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum", "dependencies", "dependentRequired",
	"dependentSchemas", "patternProperties", "propertyNames",
}

// Of returns the form for payloads of a schema. It returns an error for a schema without a form: it is nested deeper than
// one level, or too large for a person. The caller then offers a text area for JSON, which Example fills. Rules that a
// form cannot express, such as a multiple, are described in its fields; the payload is validated later.
func Of(schema map[string]any) (*Form, error) {
	f := &Form{}
	var err error
	if f.Fields, err = fieldsOf(schema, true); err != nil {
		return nil, err
	}
	next, count := 0, 0
	for _, field := range f.all() {
		field.ID = "f" + strconv.Itoa(next)
		next++
		if field.Kind != Group {
			count++
		}
	}
	if count > maxFields {
		return nil, fmt.Errorf("more than %d fields", maxFields)
	}
	return f, nil
}

// all returns the fields, each group before its own.
func (f *Form) all() []*Field {
	var list []*Field
	for i := range f.Fields {
		list = append(list, &f.Fields[i])
		for j := range f.Fields[i].Fields {
			list = append(list, &f.Fields[i].Fields[j])
		}
	}
	return list
}

// At returns the field for the JSON pointer of a mistake in a payload, or nil.
func (f *Form) At(pointer string) *Field {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	fields := f.Fields
	var found *Field
	for _, token := range tokens {
		i := slices.IndexFunc(fields, func(field Field) bool { return field.Name == jsonvalue.UnescapePointer(token) })
		if i < 0 {
			break
		}
		found, fields = &fields[i], fields[i].Fields
	}
	return found
}

// Decision returns the field if it is the form's only required one and a boolean: the form can be shown as two buttons.
func (f *Form) Decision() *Field {
	var found *Field
	for i := range f.Fields {
		switch {
		case !f.Fields[i].Required:
		case found != nil || f.Fields[i].Kind != Boolean:
			return nil
		default:
			found = &f.Fields[i]
		}
	}
	return found
}

// fieldsOf returns the fields of an object. Only the outermost object has groups.
func fieldsOf(schema map[string]any, outermost bool) ([]Field, error) {
	for _, keyword := range notShown {
		if _, ok := schema[keyword]; ok {
			return nil, fmt.Errorf("a form cannot show %q", keyword)
		}
	}
	if kind, ok := schema["type"]; ok && !onlyType(kind, "object") {
		return nil, fmt.Errorf("the payload must be an object")
	}
	properties, _ := schema["properties"].(map[string]any)
	names, err := order(properties, schema["required"])
	switch {
	case err != nil:
		return nil, err
	case len(names) > maxFields:
		return nil, fmt.Errorf("more than %d fields", maxFields)
	case len(names) == 0 && schema["additionalProperties"] != false:
		return nil, fmt.Errorf("the schema has no properties")
	}
	least, _ := schema["minProperties"].(float64)
	var fields []Field
	for _, name := range names {
		if name == "" || Clean(name, MaxLabel) != name {
			return nil, fmt.Errorf("the name of a field is empty, too long, or has characters that cannot be shown")
		}
		one, err := fieldOf(properties[name], outermost)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		listed := contains(schema["required"], name)
		all := least >= float64(len(names))
		one.Name = name
		one.Required, one.Demanded = listed && !one.OrNull || all, listed || all
		if one.Kind == Group && !one.Required {
			for i := range one.Fields {
				if one.Fields[i].Required {
					one.Fields[i].Required = false
					one.Fields[i].Hints = append(one.Fields[i].Hints, "required if another field of the group is filled in")
				}
			}
		}
		fields = append(fields, one)
	}
	return fields, nil
}

// order returns the names of the fields: the required ones in their order, then the others by name.
func order(properties map[string]any, required any) ([]string, error) {
	var names []string
	list, _ := required.([]any)
	for _, r := range list {
		name, _ := r.(string)
		if _, ok := properties[name]; !ok {
			return nil, fmt.Errorf("the schema does not describe %q", name)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range jsonvalue.Keys(properties) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// onlyType reports whether a type keyword names this type and no other.
func onlyType(kind any, name string) bool {
	if list, ok := kind.([]any); ok && len(list) == 1 {
		kind = list[0]
	}
	return kind == name
}

func contains(list any, name string) bool {
	names, _ := list.([]any)
	return slices.Contains(names, any(name))
}

// Clean returns untrusted text of at most most bytes, without characters that control a terminal or change the
// direction of text.
func Clean(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\u200c' || r == '\u200d': // the last two join and part letters
			return r
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, strings.ToValidUTF8(text, "\ufffd"))
	return problem.Clip(strings.TrimSpace(text), most)
}
