package enginetest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Patch changes a document by lines of the form "set <pointer> <json>" and "del <pointer>". The last token of a pointer
// may be "-", the place after the last element. The pointer of the root is written "/".
func Patch(t testing.TB, doc any, lines string) any {
	t.Helper()
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		pointer, text, _ := strings.Cut(rest, " ")
		var value any
		if verb == "set" {
			v, err := jsonvalue.Decode([]byte(text))
			if err != nil {
				t.Fatalf("patch line %q: %v", line, err)
			}
			value = v
		}
		if pointer == "/" {
			doc = value
			continue
		}
		doc = apply(t, doc, strings.Split(pointer[1:], "/"), verb, value)
	}
	return doc
}

func apply(t testing.TB, doc any, tokens []string, verb string, value any) any {
	t.Helper()
	token := strings.NewReplacer("~1", "/", "~0", "~", "~s", " ").Replace(tokens[0])
	last := len(tokens) == 1
	switch c := doc.(type) {
	case map[string]any:
		switch {
		case !last:
			c[token] = apply(t, c[token], tokens[1:], verb, value)
		case verb == "del":
			delete(c, token)
		default:
			c[token] = value
		}
		return c
	case []any:
		i := len(c)
		if token != "-" {
			var err error
			if i, err = strconv.Atoi(token); err != nil || i >= len(c) {
				t.Fatalf("no element %q", token)
			}
		}
		switch {
		case !last:
			c[i] = apply(t, c[i], tokens[1:], verb, value)
		case verb == "del":
			return append(c[:i:i], c[i+1:]...)
		case i == len(c):
			return append(c, value)
		default:
			c[i] = value
		}
		return c
	}
	t.Fatalf("%v holds nothing", doc)
	return nil
}
