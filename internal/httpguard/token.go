package httpguard

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/document"
	"github.com/workflows-engine/workflows-engine/schemas"
)

// Caller describes the holder of a token.
type Caller struct {
	// Name is recorded as the author of changes; "" for a token without a name, and without tokens.
	Name string
	// ReadOnly is set if the token permits no changes.
	ReadOnly bool
}

// Tokens are the bearer tokens of a server. They are kept as hashes. The zero value is empty.
type Tokens struct{ list []token }

type token struct {
	hash   [sha256.Size]byte
	caller Caller
}

// OneToken returns a single token that permits everything, or no token if secret is "".
func OneToken(secret, name string) Tokens {
	if secret == "" {
		return Tokens{}
	}
	return Tokens{[]token{{sha256.Sum256([]byte(secret)), Caller{Name: name}}}}
}

// None reports whether the server has no tokens.
func (t Tokens) None() bool { return len(t.list) == 0 }

// Find returns the caller whose token a secret is. The time that it takes does not depend on the secret.
func (t Tokens) Find(secret string) (caller Caller, found bool) {
	hash := sha256.Sum256([]byte(secret))
	for _, one := range t.list {
		if subtle.ConstantTimeCompare(hash[:], one.hash[:]) == 1 {
			caller, found = one.caller, true
		}
	}
	return caller, found
}

// MaxTokensBytes bounds the text of a list of tokens.
const MaxTokensBytes = 1 << 20

var tokensKind = document.Kind{Schema: schemas.Tokens, Code: problem.UsageError, MaxBytes: MaxTokensBytes}

// ParseTokens reads a list of tokens (schemas/tokens.schema.json). It calls mask with each token that the list holds as text. The findings
// have a line each.
func ParseTokens(text []byte, mask func(token string)) (Tokens, problem.Findings) {
	var list struct {
		Tokens []struct {
			Name     string `json:"name"`
			Token    string `json:"token"`
			SHA256   string `json:"sha256"`
			ReadOnly bool   `json:"readOnly"`
		} `json:"tokens"`
	}
	d := tokensKind.Read(text, &list)
	if !d.Decoded() {
		return Tokens{}, d.Findings()
	}
	var tokens Tokens
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for i, entry := range list.Tokens {
		mask(entry.Token)
		one := token{sha256.Sum256([]byte(entry.Token)), Caller{Name: entry.Name, ReadOnly: entry.ReadOnly}}
		if entry.SHA256 != "" {
			_, _ = hex.Decode(one.hash[:], []byte(entry.SHA256)) // the schema has checked it
		}
		if names[entry.Name] {
			d.Fail(document.At("tokens", i, "name"), "uniqueItems", "name %q is used twice", entry.Name)
		}
		if hashes[one.hash] {
			d.Fail(document.At("tokens", i), "uniqueItems", "token of %q is used twice", entry.Name)
		}
		names[entry.Name], hashes[one.hash] = true, true
		tokens.list = append(tokens.list, one)
	}
	if !d.Valid() {
		return Tokens{}, d.Findings()
	}
	return tokens, nil
}
