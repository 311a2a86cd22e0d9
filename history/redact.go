package history

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

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
	t := redactedText{Redaction: r, src: raw}
	t.value()
	if t.copied == 0 {
		return raw
	}
	return append(t.out, raw[t.copied:]...)
}

// redactedText reads valid JSON text. The text before copied has been written to out.
type redactedText struct {
	Redaction
	src        []byte
	at, copied int
	out        []byte
}

// next skips white space and returns the byte behind it, which at is the place of.
func (t *redactedText) next() byte {
	for ; t.at < len(t.src); t.at++ {
		switch c := t.src[t.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value reads a value.
func (t *redactedText) value() {
	switch t.next() {
	case '"':
		t.text()
	case '{':
		for t.at++; t.next() != '}'; {
			if t.src[t.at] == ',' {
				t.at++
				continue
			}
			begin := t.at
			t.text()
			name := t.src[begin:t.at]
			t.next() // the colon
			if t.at++; t.names.hideText(name) {
				t.hide()
			} else {
				t.value()
			}
		}
		t.at++
	case '[':
		for t.at++; t.next() != ']'; {
			if t.src[t.at] == ',' {
				t.at++
				continue
			}
			t.value()
		}
		t.at++
	default:
		t.skipScalar()
	}
}

// skipScalar skips a number, true, false or null.
func (t *redactedText) skipScalar() {
	for ; t.at < len(t.src); t.at++ {
		switch t.src[t.at] {
		case ',', ']', '}', ' ', '\t', '\r', '\n':
			return
		}
	}
}

// skipString skips a string.
func (t *redactedText) skipString() {
	for t.at++; t.src[t.at] != '"'; t.at++ {
		if t.src[t.at] == '\\' {
			t.at++
		}
	}
	t.at++
}

// text reads a string and masks the secrets in it.
func (t *redactedText) text() {
	begin := t.at
	t.skipString()
	if t.mask == nil {
		return
	}
	text := unquoted(t.src[begin:t.at])
	if shown := t.mask(text); shown != text {
		t.replace(begin, shown)
	}
}

// hide replaces the next value.
func (t *redactedText) hide() {
	t.next()
	begin, depth := t.at, 0
	for again := true; again; again = depth > 0 {
		switch t.next() {
		case '"':
			t.skipString()
		case '{', '[':
			depth++
			t.at++
		case '}', ']':
			depth--
			t.at++
		case ',', ':':
			t.at++
		default:
			t.skipScalar()
		}
	}
	t.replace(begin, Redacted)
}

// replace writes a string in place of the text from begin to at.
func (t *redactedText) replace(begin int, by string) {
	t.out = append(t.out, t.src[t.copied:begin]...)
	t.out = jsonvalue.AppendString(t.out, by)
	t.copied = t.at
}

// unquoted returns the value of a string in JSON.
func unquoted(text []byte) (value string) {
	if inner := text[1 : len(text)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	_ = json.Unmarshal(text, &value) // valid, as all of the text
	return value
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
	known: &knownNames{},
}}

// secretNames lists names of secret fields, in lower case and without word separators.
type secretNames struct {
	anywhere, atEnd []string
	// known has the results for names that were examined; nil without names.
	known *knownNames
}

// with returns the names plus others, which match anywhere in a name.
func (n secretNames) with(names []string) secretNames {
	n.anywhere, n.known = slices.Clone(n.anywhere), &knownNames{}
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
	if n.known == nil {
		return false
	}
	if hidden, found := n.known.get([]byte(member)); found {
		return hidden
	}
	hidden := n.examine(member)
	n.known.put(member, hidden)
	return hidden
}

// hideText is hide for a name in JSON.
func (n secretNames) hideText(name []byte) bool {
	if n.known == nil {
		return false
	}
	if hidden, found := n.known.get(name[1 : len(name)-1]); found { // no kept name has an escape
		return hidden
	}
	return n.hide(unquoted(name))
}

func (n secretNames) examine(member string) bool {
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

// knownNames keeps which names of fields are hidden: histories repeat a few hundred names, and to examine a name takes long.
type knownNames struct {
	mu     sync.RWMutex
	hidden map[string]bool
}

// maxKnownNames and maxKnownName limit the names that are kept, and their length in bytes.
const maxKnownNames, maxKnownName = 1024, 64

func (k *knownNames) get(name []byte) (hidden, found bool) {
	k.mu.RLock()
	defer k.mu.RUnlock()
	hidden, found = k.hidden[string(name)]
	return hidden, found
}

// put keeps a name, provided that JSON has a single spelling of it without escapes.
func (k *knownNames) put(name string, hidden bool) {
	if len(name) > maxKnownName || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hidden == nil {
		k.hidden = map[string]bool{}
	}
	if len(k.hidden) < maxKnownNames {
		k.hidden[strings.Clone(name)] = hidden
	}
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
