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
	if !strings.ContainsAny(token, "~/") {
		return token
	}
	return pointerEscaper.Replace(token)
}

// Lookup gives the node at a JSON pointer (RFC 6901), nil if there is none. The pointer "" is n itself.
func (n *Node) Lookup(pointer string) *Node {
	if pointer == "" {
		return n
	}
	if pointer[0] != '/' {
		return nil
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if n == nil {
			return nil
		}
		switch n.Kind {
		case Object:
			n = n.Get(pointerUnescaper.Replace(token))
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
