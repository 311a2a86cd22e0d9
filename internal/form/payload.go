package form

import (
	"math"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Mistake is a field that was filled in wrongly.
type Mistake struct {
	// Field is the field's ID.
	Field string
	// Text is a sentence for the person, without the field's name.
	Text string
}

// Payload returns the payload of a submitted HTML form: values by field ID. Unknown names are ignored. Fields left empty
// are left out, or are null or an empty text where the schema demands that. Mistakes are those of the form alone; the
// payload is validated by the schema later.
func (f *Form) Payload(values map[string][]string) (map[string]any, []Mistake) {
	r := reader{values: values}
	return r.object(f.Fields), r.mistakes
}

type reader struct {
	values   map[string][]string
	mistakes []Mistake
}

func (r *reader) wrong(f *Field, text string) { r.mistakes = append(r.mistakes, Mistake{f.ID, text}) }

// object reads the fields of the payload or of a group.
func (r *reader) object(fields []Field) map[string]any {
	payload := map[string]any{}
	for i := range fields {
		f := &fields[i]
		switch v, given := r.field(f); {
		case given:
			payload[f.Name] = v
		case f.Demanded && f.OrNull:
			payload[f.Name] = nil
		}
	}
	return payload
}

// field reads a field. A field with a mistake counts as not given.
func (r *reader) field(f *Field) (value any, given bool) {
	if f.Kind == Group {
		return r.group(f)
	}
	texts := r.values[f.ID]
	if f.Kind == Choices {
		return r.several(f, texts)
	}
	text := ""
	switch len(texts) {
	case 0:
	case 1:
		text = texts[0]
	default:
		r.wrong(f, "This field has several values.")
		return nil, false
	}
	if f.Kind != Text || f.Format != "" {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		return r.empty(f)
	}
	switch f.Kind {
	case Text:
		return r.text(f, text)
	case Boolean, Choice:
		return r.option(f, text)
	}
	return r.number(f, text)
}

func (r *reader) empty(f *Field) (any, bool) {
	switch {
	case f.Demanded && !f.OrNull && f.Kind == Text && f.Blank:
		return "", true
	case f.Demanded && !f.OrNull || f.Required:
		r.wrong(f, "This field is required.")
	}
	return nil, false
}

func (r *reader) text(f *Field, text string) (any, bool) {
	text = strings.ReplaceAll(text, "\r\n", "\n") // browsers submit text areas so
	if f.Format == "date-time" {
		text = instant(text)
	}
	if !f.fits(text) {
		r.wrong(f, "This text is too short or too long.")
		return nil, false
	}
	return text, true
}

// instant completes the text of an input of type datetime-local, which has no zone and may have no seconds: it is read
// as UTC.
func instant(text string) string {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Format(time.RFC3339Nano)
		}
	}
	return text
}

// local returns a time as the value of an input of type datetime-local, "" if it is not one.
func local(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05")
}

func (r *reader) option(f *Field, label string) (any, bool) {
	for _, o := range f.Options {
		if o.Label == label {
			return o.Value, true
		}
	}
	r.wrong(f, "Choose one of the values.")
	return nil, false
}

func (r *reader) number(f *Field, text string) (any, bool) {
	v, losses, err := jsonvalue.DecodeExact([]byte(text))
	n, isNumber := v.(float64)
	switch {
	case err != nil || !isNumber:
		r.wrong(f, "This is not a number. Use digits, with a point for decimals.")
	case f.Kind == Integer && n != math.Trunc(n):
		r.wrong(f, "This is not a whole number.")
	case len(losses) > 0 || n == math.Trunc(n) && math.Abs(n) >= 1<<53:
		r.wrong(f, "A number of this size cannot be kept exactly.")
	case f.Min != nil && n < *f.Min:
		r.wrong(f, "This must be at least "+string(jsonvalue.Canonical(*f.Min))+".")
	case f.Max != nil && n > *f.Max:
		r.wrong(f, "This must be at most "+string(jsonvalue.Canonical(*f.Max))+".")
	default:
		return n, true
	}
	return nil, false
}

func (r *reader) several(f *Field, labels []string) (any, bool) {
	list := []any{}
	for _, label := range labels {
		v, ok := r.option(f, label)
		if !ok {
			return nil, false
		}
		list = append(list, v)
	}
	switch {
	case len(list) == 0 && (f.OrNull || !f.Demanded):
		return nil, false
	case len(list) < f.Least || f.Most >= 0 && len(list) > f.Most:
		r.wrong(f, "These are too few or too many values.")
		return nil, false
	}
	return list, true
}

// group reads the fields of an object. An optional group without any input is left out.
func (r *reader) group(f *Field) (any, bool) {
	filled := false
	for _, inner := range f.Fields {
		for _, text := range r.values[inner.ID] {
			filled = filled || strings.TrimSpace(text) != ""
		}
	}
	if !filled && !f.Required {
		return nil, false
	}
	return r.object(f.Fields), true
}
