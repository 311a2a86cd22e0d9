package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Redacted replaces the value of a member that must not be shown.
const Redacted = "[REDACTED]"

// Redaction hides the values of members by name, in logs, exports and answers. Stores never redact, because redacted values
// cannot be replayed.
//
// The zero value hides nothing.
type Redaction struct{ names map[string]bool }

// NewRedaction hides members whose whole name is one of names, ignoring case.
func NewRedaction(names ...string) Redaction {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[strings.ToLower(n)] = true
	}
	return Redaction{names: m}
}

// DefaultRedaction hides the members that the protocol names (spec: execution, 1.6).
func DefaultRedaction() Redaction { return NewRedaction("apikey", "token", "password", "secret") }

var defaultRedaction = DefaultRedaction()

// Redact is DefaultRedaction().Text.
func Redact(raw []byte) []byte { return defaultRedaction.Text(raw) }

// Redact hides the secret members of the record by DefaultRedaction, in Raw and in what is read from it.
func (r *Record) Redact() (err error) {
	r.Raw = Redact(r.Raw)
	r.Payload, err = DecodePayload(r.Name, r.Raw)
	return err
}

// RedactValue is DefaultRedaction().Value.
func RedactValue(v any) any { return defaultRedaction.Value(v) }

func (r Redaction) hides(name string) bool { return r.names[strings.ToLower(name)] }

// Value returns a plain value in which hidden members, at any depth, are replaced by Redacted. The given value is not changed;
// the result shares unchanged parts with it.
func (r Redaction) Value(v any) any {
	out, _ := r.value(v)
	return out
}

func (r Redaction) value(v any) (out any, changed bool) {
	switch v := v.(type) {
	case map[string]any:
		var m map[string]any
		for name, member := range v {
			shown, differs := any(Redacted), true
			if !r.hides(name) {
				shown, differs = r.value(member)
			}
			if !differs {
				continue
			}
			if m == nil {
				m = maps.Clone(v)
			}
			m[name] = shown
		}
		if m != nil {
			return m, true
		}
	case []any:
		var s []any
		for i, e := range v {
			shown, differs := r.value(e)
			if !differs {
				continue
			}
			if s == nil {
				s = slices.Clone(v)
			}
			s[i] = shown
		}
		if s != nil {
			return s, true
		}
	}
	return v, false
}

// Text is Value for JSON text. The rest of the text keeps its form and order; a text with nothing to hide is returned unchanged.
// Text that is not JSON is replaced as a whole.
func (r Redaction) Text(raw []byte) []byte {
	if !json.Valid(raw) {
		return jsonvalue.AppendString(nil, Redacted)
	}
	t := redactedText{Redaction: r, src: raw, in: json.NewDecoder(bytes.NewReader(raw))}
	t.in.UseNumber()
	t.value()
	if t.copied == 0 {
		return raw
	}
	return append(t.out, raw[t.copied:]...)
}

// redactedText reads valid JSON text. The text before copied has been written to out.
type redactedText struct {
	Redaction
	src    []byte
	in     *json.Decoder
	out    []byte
	copied int64
}

// value reads a value. The decoder cannot fail, because the text is valid.
func (t *redactedText) value() {
	start, _ := t.in.Token()
	if _, composite := start.(json.Delim); !composite {
		return
	}
	for t.in.More() {
		if start == json.Delim('{') {
			if name, _ := t.in.Token(); t.hides(name.(string)) {
				t.hide()
				continue
			}
		}
		t.value()
	}
	_, _ = t.in.Token() // the closing bracket
}

// hide replaces the next value.
func (t *redactedText) hide() {
	var value json.RawMessage
	_ = t.in.Decode(&value)
	end := t.in.InputOffset()
	t.out = append(t.out, t.src[t.copied:end-int64(len(value))]...)
	t.out = jsonvalue.AppendString(t.out, Redacted)
	t.copied = end
}
