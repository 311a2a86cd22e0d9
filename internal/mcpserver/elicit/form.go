package elicit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The largest form for a person. A larger schema has no form.
const (
	maxFields      = 32
	maxOptions     = 100
	maxSchemaBytes = 16 << 10
)

// Form asks for a payload with the few kinds of fields that hosts can show.
type Form struct {
	// Schema is the requestedSchema of the protocol.
	Schema jsonvalue.Ordered
	fields []field
}

// field is a field of the payload.
type field struct {
	name string
	kind string // boolean, number, integer, string or array
	// required is set if the form requires the field.
	required bool
	// orNull is set if the schema requires the field and accepts null: an empty field is null then.
	orNull bool
	// blank is set if empty text is a valid value.
	blank bool
	// options maps the shown labels to values; nil if the field is not a choice.
	options map[string]any
	schema  jsonvalue.Ordered
}

// notShown are keywords of a schema that a form cannot show.
var notShown = []string{
	"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum", "dependencies", "dependentRequired",
	"dependentSchemas", "patternProperties", "propertyNames",
}

// FormOf returns the form for payloads of a schema, for hosts of a protocol revision. The error explains why there is
// no form: the schema is nested, or too large for a person. Rules that a form cannot express, such as a pattern, are
// described in its fields; the payload is validated later.
func FormOf(schema map[string]any, revision string) (*Form, error) {
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
	f := &Form{}
	for _, name := range names {
		if name == "" || clean(name, maxLabel) != name {
			return nil, fmt.Errorf("the name of a field is empty, too long, or has characters that cannot be shown")
		}
		one, err := fieldOf(properties[name], revision)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		demanded := contains(schema["required"], name)
		one.name = name
		one.required, one.orNull = demanded && !one.orNull || least >= float64(len(names)), demanded && one.orNull
		f.fields = append(f.fields, one)
	}
	f.build()
	if size := len(f.Schema.Append(nil)); size > maxSchemaBytes {
		return nil, fmt.Errorf("the form exceeds %d bytes", maxSchemaBytes)
	}
	return f, nil
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

func (f *Form) build() {
	properties, required := jsonvalue.Ordered{}, []any{}
	for i := range f.fields {
		one := &f.fields[i]
		properties.Put(one.name, one.schema)
		if one.required {
			required = append(required, one.name)
		}
	}
	f.Schema = jsonvalue.Ordered{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		f.Schema.Put("required", required)
	}
}

// Payload returns the payload of a filled-in form, without unknown fields. The error names a field that does not fit
// its form; the payload is validated later.
func (f *Form) Payload(content map[string]any) (map[string]any, error) {
	payload := map[string]any{}
	for i := range f.fields {
		one := &f.fields[i]
		v, given := content[one.name]
		switch {
		case !given || v == nil || v == "" && !one.required && !one.blank:
			if one.orNull {
				payload[one.name] = nil
			}
			continue
		case one.options != nil:
			chosen, err := one.chosen(v)
			if err != nil {
				return nil, err
			}
			v = chosen
		case one.kind == "number" || one.kind == "integer":
			if n, isNumber := v.(float64); isNumber && math.Abs(n) >= 1<<53 && n == math.Trunc(n) {
				return nil, fmt.Errorf("%s: the number is too large to be exact", one.name)
			}
		}
		payload[one.name] = v
	}
	return payload, nil
}

// chosen returns the values of the chosen labels.
func (one *field) chosen(v any) (any, error) {
	if one.kind == "array" {
		list, isList := v.([]any)
		if !isList {
			return nil, fmt.Errorf("%s: expected an array", one.name)
		}
		values := make([]any, len(list))
		for i := range list {
			value, err := one.option(list[i])
			if err != nil {
				return nil, err
			}
			values[i] = value
		}
		return values, nil
	}
	return one.option(v)
}

func (one *field) option(v any) (any, error) {
	if label, isText := v.(string); isText {
		if value, ok := one.options[label]; ok {
			return value, nil
		}
	}
	return nil, fmt.Errorf("%s: the value is not one of the choices", one.name)
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

// Limits of the texts of a definition in a form, in bytes.
const (
	maxLabel       = 200
	maxDescription = 1000
	maxPrompt      = 6 << 10
	maxComplaint   = 1000
)

// Message is the text of a question with its run. complaint is the reason why the person's last answer was rejected, or
// "".
func Message(prompt, run, complaint string) string {
	var b strings.Builder
	if complaint != "" {
		fmt.Fprintf(&b, "Your answer is invalid: %s\n\n", clean(complaint, maxComplaint))
	}
	shown := clean(prompt, maxPrompt)
	if shown == "" {
		shown = "A workflow waits for your answer."
	}
	b.WriteString(shown)
	if len(prompt) > maxPrompt {
		b.WriteString("\n\nThe question is longer than this form shows: read all of it before you answer.")
	}
	fmt.Fprintf(&b, "\n\n%s", clean(run, maxDescription))
	return b.String()
}

// clean returns untrusted text of at most most bytes, without characters that control a terminal or change the
// direction of text.
func clean(text string, most int) string {
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
