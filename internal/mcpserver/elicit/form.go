package elicit

import (
	"fmt"
	"math"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxSchemaBytes is the size of the largest form that a host is asked to show.
const maxSchemaBytes = 16 << 10

// Form asks for a payload with the few kinds of fields that hosts can show.
type Form struct {
	// Schema is the requestedSchema of the protocol.
	Schema jsonvalue.Ordered
	fields []form.Field
}

// FormOf returns the form for payloads of a schema, for hosts of a protocol revision. The error explains why there is
// no form: the schema is nested, or too large for a person. Rules that a form cannot express, such as a pattern, are
// described in its fields; the payload is validated later.
func FormOf(schema map[string]any, revision string) (*Form, error) {
	of, err := form.Of(schema)
	if err != nil {
		return nil, err
	}
	f := &Form{fields: of.Fields}
	properties, required := jsonvalue.Ordered{}, []any{}
	for i := range f.fields {
		one := &f.fields[i]
		if one.Kind == form.Group || one.Kind == form.Choices && revision < richerSince {
			return nil, fmt.Errorf("%q: %w", one.Name, form.ErrNotFlat)
		}
		properties.Put(one.Name, encode(one, revision))
		if one.Required {
			required = append(required, one.Name)
		}
	}
	f.Schema = jsonvalue.Ordered{{"type", "object"}, {"properties", properties}}
	if len(required) > 0 {
		f.Schema.Put("required", required)
	}
	if size := len(f.Schema.Append(nil)); size > maxSchemaBytes {
		return nil, fmt.Errorf("the form exceeds %d bytes", maxSchemaBytes)
	}
	return f, nil
}

// types are the kinds of fields as hosts know them.
var types = map[form.Kind]string{
	form.Text: "string", form.Number: "number", form.Integer: "integer", form.Boolean: "boolean", form.Choice: "string", form.Choices: "array",
}

// encode returns the schema of a field for hosts.
func encode(f *form.Field, revision string) jsonvalue.Ordered {
	s := jsonvalue.Ordered{{"type", types[f.Kind]}}
	s.Text("title", f.Title)
	description := f.Description
	if len(f.Hints) > 0 {
		description = strings.TrimSpace(description + " (" + strings.Join(f.Hints, ", ") + ")")
	}
	s.Text("description", description)
	switch f.Kind {
	case form.Choice:
		choose(&s, f, "oneOf", revision)
	case form.Choices:
		bound(&s, f, "minItems", "maxItems")
		items := jsonvalue.Ordered{}
		choose(&items, f, "anyOf", revision)
		s.Put("items", items)
	case form.Text:
		bound(&s, f, "minLength", "maxLength")
		s.Text("format", f.Format)
	case form.Number, form.Integer:
		if f.Min != nil {
			s.Put("minimum", *f.Min)
		}
		if f.Max != nil {
			s.Put("maximum", *f.Max)
		}
	}
	if f.Default != nil && (revision >= richerSince || f.Kind == form.Boolean) {
		s.Put("default", f.Default)
	}
	return s
}

func bound(s *jsonvalue.Ordered, f *form.Field, low, high string) {
	if f.Least > 0 {
		s.Put(low, float64(f.Least))
	}
	if f.Most >= 0 {
		s.Put(high, float64(f.Most))
	}
}

// choose puts the values to choose from into the schema of a choice. keyword is the one for values with titles.
func choose(s *jsonvalue.Ordered, f *form.Field, keyword, revision string) {
	titled := false
	labels, titles, pairs := make([]any, len(f.Options)), make([]any, len(f.Options)), make([]jsonvalue.Ordered, len(f.Options))
	for i, o := range f.Options {
		titled = titled || o.Title != ""
		labels[i], titles[i], pairs[i] = o.Label, o.Shown(), jsonvalue.Ordered{{"const", o.Label}, {"title", o.Shown()}}
	}
	switch {
	case titled && revision >= richerSince:
		s.Put(keyword, pairs)
	case titled:
		s.Put("enum", labels)
		s.Put("enumNames", titles)
	default:
		if f.Kind == form.Choices {
			s.Put("type", "string")
		}
		s.Put("enum", labels)
	}
}

// Payload returns the payload of a filled-in form, without unknown fields. The error names a field that does not fit
// its form; the payload is validated later.
func (f *Form) Payload(content map[string]any) (map[string]any, error) {
	payload := map[string]any{}
	for i := range f.fields {
		one := &f.fields[i]
		v, given := content[one.Name]
		switch {
		case !given || v == nil || v == "" && !one.Required && !one.Blank:
			if one.OrNull && one.Demanded {
				payload[one.Name] = nil
			}
			continue
		case one.Kind == form.Choice || one.Kind == form.Choices:
			chosen, err := chosen(one, v)
			if err != nil {
				return nil, err
			}
			v = chosen
		case one.Kind == form.Number || one.Kind == form.Integer:
			if n, isNumber := v.(float64); isNumber && math.Abs(n) >= 1<<53 && n == math.Trunc(n) {
				return nil, fmt.Errorf("%s: the number is too large to be exact", one.Name)
			}
		}
		payload[one.Name] = v
	}
	return payload, nil
}

// chosen returns the values of the chosen labels.
func chosen(f *form.Field, v any) (any, error) {
	if f.Kind == form.Choice {
		return value(f, v)
	}
	list, isList := v.([]any)
	if !isList {
		return nil, fmt.Errorf("%s: expected an array", f.Name)
	}
	values := make([]any, len(list))
	for i := range list {
		one, err := value(f, list[i])
		if err != nil {
			return nil, err
		}
		values[i] = one
	}
	return values, nil
}

// value returns the value of a label.
func value(f *form.Field, label any) (any, error) {
	for _, o := range f.Options {
		if label == o.Label {
			return o.Value, nil
		}
	}
	return nil, fmt.Errorf("%s: the value is not one of the choices", f.Name)
}

// How many bytes of a question and of a complaint a form shows.
const (
	maxPrompt    = 6 << 10
	maxComplaint = 1000
)

// Message is the text of a question with its run. complaint is the reason why the person's last answer was rejected, or
// "".
func Message(prompt, run, complaint string) string {
	var b strings.Builder
	if complaint != "" {
		fmt.Fprintf(&b, "Your answer is invalid: %s\n\n", form.Clean(complaint, maxComplaint))
	}
	shown := form.Clean(prompt, maxPrompt)
	if shown == "" {
		shown = "A workflow waits for your answer."
	}
	b.WriteString(shown)
	if len(prompt) > maxPrompt {
		b.WriteString("\n\nThe question is longer than this form shows: read all of it before you answer.")
	}
	fmt.Fprintf(&b, "\n\n%s", form.Clean(run, form.MaxHelp))
	return b.String()
}
