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

// hides reports whether the protocol names a member as secret (spec: execution, 1.6): its whole name, ignoring case.
func hides(name string) bool {
	switch strings.ToLower(name) {
	case "apikey", "token", "password", "secret":
		return true
	}
	return false
}

// Redact hides the secret members of the record, in Raw and in what is read from it.
func (r *Record) Redact() (err error) {
	r.Raw = Redact(r.Raw)
	r.Payload, err = DecodePayload(r.Name, r.Raw)
	return err
}

// RedactValue returns a plain value in which secret members, at any depth, are replaced by Redacted: for logs, exports and answers.
// The given value is not changed; the result shares unchanged parts with it. Stores never redact, because redacted values cannot be
// replayed.
func RedactValue(v any) any {
	out, _ := redacted(v)
	return out
}

func redacted(v any) (out any, changed bool) {
	switch v := v.(type) {
	case map[string]any:
		var m map[string]any
		for name, member := range v {
			shown, differs := any(Redacted), true
			if !hides(name) {
				shown, differs = redacted(member)
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
			shown, differs := redacted(e)
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

// Redact is RedactValue for JSON text. The rest of the text keeps its form and order; a text with nothing to hide is returned unchanged.
// Text that is not JSON is replaced as a whole.
func Redact(raw []byte) []byte {
	if !json.Valid(raw) {
		return jsonvalue.AppendString(nil, Redacted)
	}
	t := redactedText{src: raw, in: json.NewDecoder(bytes.NewReader(raw))}
	t.in.UseNumber()
	t.value()
	if t.copied == 0 {
		return raw
	}
	return append(t.out, raw[t.copied:]...)
}

// redactedText reads valid JSON text. The text before copied has been written to out.
type redactedText struct {
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
			if name, _ := t.in.Token(); hides(name.(string)) {
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
