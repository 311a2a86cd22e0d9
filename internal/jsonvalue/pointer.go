package jsonvalue

import (
	"strconv"
	"strings"
)

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// EscapePointer escapes one reference token of a JSON pointer ("~" and "/").
func EscapePointer(token string) string {
	return pointerEscaper.Replace(token)
}

// UnescapePointer undoes EscapePointer.
func UnescapePointer(token string) string { return pointerUnescaper.Replace(token) }

// PointerTokens splits a JSON pointer into its reference tokens; "" has no tokens.
func PointerTokens(pointer string) []string {
	tokens := strings.Split(pointer, "/")[1:]
	for i, token := range tokens {
		tokens[i] = UnescapePointer(token)
	}
	return tokens
}

// Lookup returns the node at a JSON pointer (RFC 6901), nil if it leads to nothing. The pointer "" is n itself.
func (n *Node) Lookup(pointer string) *Node {
	if pointer == "" {
		return n
	}
	if pointer[0] != '/' {
		return nil
	}
	for _, token := range PointerTokens(pointer) {
		if n == nil {
			return nil
		}
		switch n.Kind {
		case Object:
			n = n.Get(token)
		case Array:
			i, err := strconv.Atoi(token)
			if err != nil || !isIndex(token) || i >= len(n.Elements) {
				return nil
			}
			n = n.Elements[i]
		default:
			return nil
		}
	}
	return n
}
