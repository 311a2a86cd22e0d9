package llmcall

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strings"
)

// mask stands where a secret stood.
const mask = "[secret]"

// Secret holds a key so that it is not printed by accident: every way of formatting, logging and encoding it gives a
// mask.
type Secret struct{ value string }

// NewSecret makes a Secret of a value, without the white space around it.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// Reveal gives the value.
func (s Secret) Reveal() string { return s.value }

// String is the mask.
func (Secret) String() string { return mask }

// GoString is the mask.
func (Secret) GoString() string { return mask }

// Format writes the mask for every verb, those included that look into a struct.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON gives the mask.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(mask) }

// MarshalText gives the mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue is the mask.
func (Secret) LogValue() slog.Value { return slog.StringValue(mask) }

// sendable reports whether the key may stand in a header.
func (s Secret) sendable() bool {
	return s.value != "" && !strings.ContainsFunc(s.value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// minOutputSecret is the length from which a key is taken out of a model's answer too. A shorter one, like the "ollama"
// that is given to servers that want no key, is also a word that an answer may rightly have.
const minOutputSecret = 16

// scrubber takes a key out of texts.
type scrubber struct {
	replacer *strings.Replacer // nil without a key
	long     bool
}

// newScrubber knows the key as it is, and as JSON texts and addresses spell it.
func newScrubber(key Secret) scrubber {
	if key.value == "" {
		return scrubber{}
	}
	encoded, _ := json.Marshal(key.value) // a string always has a JSON form
	inJSON := strings.Trim(string(encoded), `"`)
	var pairs []string
	for _, form := range []string{
		key.value, inJSON, strings.ReplaceAll(key.value, "/", `\/`), url.QueryEscape(key.value), url.PathEscape(key.value),
	} {
		if form != "" {
			pairs = append(pairs, form, mask)
		}
	}
	return scrubber{replacer: strings.NewReplacer(pairs...), long: len(key.value) >= minOutputSecret}
}

// text scrubs what the executor says.
func (s scrubber) text(text string) string {
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// answer scrubs what the model says, where the key cannot stand there by chance.
func (s scrubber) answer(text string) string {
	if !s.long {
		return text
	}
	return s.text(text)
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)
