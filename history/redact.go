package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Redacted replaces the value of a hidden field.
const Redacted = "[REDACTED]"

// Redaction hides values in logs, exports and answers: the values of fields with certain names, and certain texts anywhere. Stores never
// redact, because redacted values cannot be replayed.
//
// The zero value hides nothing.
type Redaction struct {
	names secretNames
	mask  func(string) string
}

// NewRedaction hides fields whose names contain one of names, compared word by word in any spelling: "api-key" hides apiKey, X-Api-Key and
// api_key_2, but not apikeys.
func NewRedaction(names ...string) Redaction { return Redaction{}.WithNames(names...) }

// DefaultRedaction hides the fields that the protocol names (spec: execution, 1.6) and other usual names of secrets.
func DefaultRedaction() Redaction { return defaultRedaction }

// WithNames returns a Redaction that also hides fields with these names.
func (r Redaction) WithNames(names ...string) Redaction {
	r.names = r.names.with(names)
	return r
}

// WithMask returns a Redaction that passes each text, including field names, through mask, which removes the secrets known to it.
func (r Redaction) WithMask(mask func(string) string) Redaction {
	r.mask = mask
	return r
}

// Or returns the Redaction, or the default one for nil.
func (r *Redaction) Or() Redaction {
	if r == nil {
		return defaultRedaction
	}
	return *r
}

// Redact hides the secrets of the record, in Raw and in the fields parsed from it. A nil by means DefaultRedaction.
func (r *Record) Redact(by *Redaction) (err error) {
	shown := by.Or().Text(r.Raw)
	if len(shown) > 0 && len(r.Raw) > 0 && &shown[0] == &r.Raw[0] {
		return nil // nothing is hidden
	}
	r.Raw = shown
	r.Payload, err = DecodePayload(r.Name, r.Raw)
	return err
}

// RedactValue is DefaultRedaction().Value.
func RedactValue(v any) any { return defaultRedaction.Value(v) }

// String returns a text without the secrets known by value.
func (r Redaction) String(text string) string {
	if r.mask == nil {
		return text
	}
	return r.mask(text)
}

// Value returns v with all hidden fields, at any depth, replaced by Redacted. It does not change v; the result shares unchanged parts with
// it.
func (r Redaction) Value(v any) any {
	out, _ := r.value(v)
	return out
}

func (r Redaction) value(v any) (out any, changed bool) {
	switch v := v.(type) {
	case string:
		shown := r.String(v)
		return shown, shown != v
	case map[string]any:
		var m map[string]any
		for name, member := range v {
			shown, differs := any(Redacted), true
			if !r.names.hide(name) {
				shown, differs = r.value(member)
			}
			as := r.String(name)
			if !differs && as == name {
				continue
			}
			if m == nil {
				m = maps.Clone(v)
			}
			if as != name {
				delete(m, name)
			}
			m[as] = shown
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

// Text is Value for JSON text. The rest of the text keeps its form and order. A text without hidden fields is returned unchanged. Invalid
// JSON is replaced as a whole.
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
	start := t.token()
	if _, composite := start.(json.Delim); !composite {
		return
	}
	for t.in.More() {
		if start == json.Delim('{') {
			if name := t.token(); t.names.hide(name.(string)) {
				t.hide()
				continue
			}
		}
		t.value()
	}
	_, _ = t.in.Token() // the closing bracket
}

// token reads a token. It masks the secrets in a string.
func (t *redactedText) token() json.Token {
	before := t.in.InputOffset()
	token, _ := t.in.Token()
	if text, ok := token.(string); ok && t.mask != nil {
		if shown := t.mask(text); shown != text {
			begin := before + int64(bytes.IndexByte(t.src[before:], '"')) // behind white space and a comma or colon
			t.out = append(t.out, t.src[t.copied:begin]...)
			t.out = jsonvalue.AppendString(t.out, shown)
			t.copied = t.in.InputOffset()
		}
	}
	return token
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

// defaultRedaction hides the names that the protocol and well-known tools hide. A token or jwt is hidden only at the end of a name: a
// token_count is not secret.
var defaultRedaction = Redaction{names: secretNames{
	anywhere: []string{
		"accesskey", "accesstoken", "apikey", "apitoken", "authorization", "authtoken", "bearer", "clientsecret", "cookie", "cookies",
		"credential", "credentials", "encryptionkey", "idtoken", "passcode", "passphrase", "passwd", "password", "passwords", "privatekey",
		"pwd", "refreshtoken", "secret", "secretkey", "secrets", "sessiontoken", "signingkey",
	},
	atEnd: []string{"jwt", "token"},
}}

// secretNames lists names of secret fields, in lower case and without word separators.
type secretNames struct{ anywhere, atEnd []string }

// with returns the names plus others, which match anywhere in a name.
func (n secretNames) with(names []string) secretNames {
	n.anywhere = slices.Clone(n.anywhere)
	for _, name := range names {
		if joined := strings.Join(words(name), ""); joined != "" {
			n.anywhere = append(n.anywhere, joined)
		}
	}
	return n
}

// pieceMember is the field that holds a part of a value's text (activities.PieceMember). The fields in that part are unknown, so the whole
// field is hidden.
const pieceMember = "pieceText"

// hide reports whether a field's name contains one of the names, as one or several whole words.
func (n secretNames) hide(member string) bool {
	if member == pieceMember {
		return len(n.anywhere)+len(n.atEnd) > 0
	}
	list := words(member)
	for i := range list {
		run := ""
		for j := i; j < len(list); j++ {
			run += list[j]
			if slices.Contains(n.anywhere, run) || j == len(list)-1 && slices.Contains(n.atEnd, run) {
				return true
			}
		}
	}
	return false
}

// maxNameWords is the maximum number of words examined in a name.
const maxNameWords = 16

// words splits a name into lower-case words: at characters that are not letters, between a small letter and a capital, and before the last of
// several capitals if a small letter follows it (APIKey).
func words(name string) (list []string) {
	var word []rune
	end := func() {
		if len(word) > 0 && len(list) < maxNameWords {
			list = append(list, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	letters := []rune(name)
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			end()
			continue
		case i > 0 && unicode.IsUpper(c) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end()
		}
		word = append(word, c)
	}
	end()
	return list
}
