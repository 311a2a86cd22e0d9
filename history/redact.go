package history

import (
	"encoding/json"
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
				m = make(map[string]any, len(v))
				for n, x := range v {
					m[n] = x
				}
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
				s = append(s, v...)
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
	s := redactScan{r: r, src: raw}
	s.value()
	if s.copied == 0 {
		return raw
	}
	return append(s.out, raw[s.copied:]...)
}

// redactScan scans valid JSON text. The text before copied has been written to out.
type redactScan struct {
	r      Redaction
	src    []byte
	at     int
	out    []byte
	copied int
}

func (s *redactScan) value() {
	s.space()
	switch s.src[s.at] {
	case '{':
		s.each('}', s.member)
	case '[':
		s.each(']', s.value)
	case '"':
		s.text()
	default:
		for s.at < len(s.src) && !strings.ContainsRune(",]} \t\r\n", rune(s.src[s.at])) {
			s.at++
		}
	}
}

// each scans the elements of an object or array, from its opening bracket to its closing one.
func (s *redactScan) each(end byte, element func()) {
	s.at++
	for s.space(); s.src[s.at] != end; s.space() {
		if s.src[s.at] == ',' {
			s.at++
			continue
		}
		element()
	}
	s.at++
}

func (s *redactScan) member() {
	quoted := s.text()
	s.space()
	s.at++ // the colon
	s.space()
	start := s.at
	if !s.hidden(quoted) {
		s.value()
		return
	}
	silent := redactScan{src: s.src, at: start}
	silent.value()
	s.at = silent.at
	s.out = append(s.out, s.src[s.copied:start]...)
	s.out = jsonvalue.AppendString(s.out, Redacted)
	s.copied = s.at
}

func (s *redactScan) hidden(quoted []byte) bool {
	var name string
	if json.Unmarshal(quoted, &name) != nil {
		return true
	}
	return s.r.hides(name)
}

// text scans a string and returns it with its quotes.
func (s *redactScan) text() []byte {
	start := s.at
	for s.at++; s.src[s.at] != '"'; s.at++ {
		if s.src[s.at] == '\\' {
			s.at++
		}
	}
	s.at++
	return s.src[start:s.at]
}

func (s *redactScan) space() {
	for s.at < len(s.src) && strings.ContainsRune(" \t\r\n", rune(s.src[s.at])) {
		s.at++
	}
}
