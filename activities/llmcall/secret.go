package llmcall

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// mask stands where a secret stood.
const mask = "[secret]"

// Secret holds a key so that it is not printed by accident: it is formatted, logged and encoded as a mask.
type Secret struct{ value string }

// NewSecret makes a Secret of a value, without the white space around it.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String is the mask.
func (Secret) String() string { return mask }

// GoString is the mask.
func (Secret) GoString() string { return mask }

// Format writes the mask for every verb, those included that look into a struct.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, mask) }

// MarshalJSON returns the mask.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(mask) }

// MarshalText returns the mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue is the mask.
func (Secret) LogValue() slog.Value { return slog.StringValue(mask) }

// sendable reports whether the key may stand in a header.
func (s Secret) sendable() bool {
	return s.value != "" && !strings.ContainsFunc(s.value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

var (
	_ fmt.Formatter  = Secret{}
	_ slog.LogValuer = Secret{}
)
