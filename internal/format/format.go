// Package format writes definitions in one form: fields in a fixed order, indented by two spaces. It keeps the meaning of a definition,
// checked by the hash, and its comments.
package format

import (
	"bytes"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// JSON returns a definition in JSON in its usual form. Errors are definition.Parse's.
func JSON(text []byte) ([]byte, error) {
	before, err := definition.Parse(text)
	if err != nil {
		return nil, err
	}
	root, _ := jsonvalue.Parse(text, 0, 0)
	out := append(writeJSON(nil, inOrder(root, rootRole), 0), '\n')
	after, err := definition.Parse(out)
	if err != nil || !same(before, after) {
		return nil, changed(err)
	}
	return out, nil
}

// Value returns a JSON text in the same form, its fields in their own order. The text must be valid.
func Value(text []byte) []byte {
	root, _ := jsonvalue.Parse(text, 0, 0)
	return append(writeJSON(nil, root, 0), '\n')
}

// maxRounds is after how many rounds the form of a YAML text has to stay as it is: the library writes some texts in two steps.
const maxRounds = 4

// YAML returns a definition in YAML in its usual form, with its comments and the empty lines between fields and elements. Errors are
// definition.ParseYAML's, or report that a comment cannot be kept.
func YAML(text []byte) ([]byte, error) {
	before, err := definition.ParseYAML(text)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	for range maxRounds {
		next, err := formatYAML(text)
		if _, refused := problem.As(err); refused {
			return nil, err
		}
		if err != nil {
			return nil, changed(err)
		}
		after, err := definition.ParseYAML(next)
		if err != nil || !same(before, after) {
			return nil, changed(err)
		}
		if bytes.Equal(next, text) {
			return text, nil
		}
		text = next
	}
	return nil, changed(nil)
}

// same reports whether two documents are equal, with their signatures.
func same(a, b *definition.Document) bool {
	return a.Hash() == b.Hash() && jsonvalue.Equal(a.Value(), b.Value()) && jsonvalue.Equal(a.Signature(), b.Signature())
}

// changed returns the error for a text whose meaning would change in the usual form.
func changed(cause error) error {
	e := problem.New(problem.Unsupported, "the definition cannot be formatted without changing its meaning")
	if cause != nil {
		e = e.WithCause(cause)
	}
	return e.WithHint("The file was not changed. Replace its anchors and aliases by their values, then format it again.")
}
