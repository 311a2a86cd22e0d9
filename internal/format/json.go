package format

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxWidth is the width of the longest line with a whole object or array.
const maxWidth = 100

// writeJSON appends a value at an indentation: on one line if it fits, else each field and element on its own line. The root is
// never on one line.
func writeJSON(dst []byte, n *jsonvalue.Node, indent int) []byte {
	if len(n.Members)+len(n.Elements) == 0 {
		return oneLine(dst, n)
	}
	if line := oneLine(nil, n); indent > 0 && column(dst)+utf8.RuneCount(line) <= maxWidth {
		return append(dst, line...)
	}
	begin, end := byte('{'), byte('}')
	if n.Kind == jsonvalue.Array {
		begin, end = '[', ']'
	}
	dst = append(dst, begin)
	next := func(i int) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, '\n'), strings.Repeat("  ", indent+1)...)
	}
	for i, m := range n.Members {
		next(i)
		dst = writeJSON(append(jsonvalue.AppendString(dst, m.Name), ": "...), m.Value, indent+1)
	}
	for i, e := range n.Elements {
		next(i)
		dst = writeJSON(dst, e, indent+1)
	}
	dst = append(append(dst, '\n'), strings.Repeat("  ", indent)...)
	return append(dst, end)
}

// column is how many characters the last line has.
func column(text []byte) int {
	return utf8.RuneCount(text[bytes.LastIndexByte(text, '\n')+1:])
}

func oneLine(dst []byte, n *jsonvalue.Node) []byte {
	switch n.Kind {
	case jsonvalue.Number:
		return append(dst, n.Text...) // as written
	case jsonvalue.Array:
		dst = append(dst, '[')
		for i, e := range n.Elements {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = oneLine(dst, e)
		}
		return append(dst, ']')
	case jsonvalue.Object:
		dst = append(dst, '{')
		for i, m := range n.Members {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = oneLine(append(jsonvalue.AppendString(dst, m.Name), ": "...), m.Value)
		}
		return append(dst, '}')
	}
	return jsonvalue.Append(dst, n.Value())
}
