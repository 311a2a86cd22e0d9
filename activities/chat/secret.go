package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Mask replaces a secret.
const Mask = "[secret]"

// Secret holds a key that cannot be printed by accident: it is formatted, logged and encoded as Mask. The zero value is empty.
type Secret struct{ value string }

// NewSecret returns a Secret that holds a value, without the white space around it.
func NewSecret(value string) Secret { return Secret{strings.TrimSpace(value)} }

// Reveal returns the value.
func (s Secret) Reveal() string { return s.value }

// String returns the mask.
func (Secret) String() string { return Mask }

// GoString returns the mask.
func (Secret) GoString() string { return Mask }

// Format writes the mask for every verb, also for those that print the fields of a struct.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Mask) }

// MarshalJSON returns the mask.
func (Secret) MarshalJSON() ([]byte, error) { return json.Marshal(Mask) }

// MarshalText returns the mask.
func (Secret) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// Sendable reports whether the value is valid in an HTTP header: not empty, of printable ASCII characters without spaces.
func (s Secret) Sendable() bool {
	return s.value != "" && !strings.ContainsFunc(s.value, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

var _ fmt.Formatter = Secret{}
