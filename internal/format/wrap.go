package format

import (
	"bytes"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// wrapped breaks the long lines of folded texts (>), which the library writes as one line each. In a folded text the end of a line stands
// for a space.
func wrapped(text []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	begins := map[int]bool{}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Style&yaml.FoldedStyle != 0 {
			begins[n.Line] = true
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(&doc)
	var out []byte
	number, within := 0, -1 // the indentation of the folded text in which a line stands
	for line := range bytes.Lines(text) {
		number++
		indent := len(line) - len(bytes.TrimLeft(line, " "))
		blank := len(bytes.TrimSpace(line)) == 0
		switch {
		case begins[number]:
			out, within = append(out, line...), 0
			continue
		case within == 0 && !blank:
			within = indent
		case within > indent && !blank:
			within = -1
		}
		if within > 0 && indent == within {
			line = breakLine(line, indent)
		}
		out = append(out, line...)
	}
	return out, nil
}

// breakLine breaks a line of a folded text at single spaces.
func breakLine(line []byte, indent int) []byte {
	var out []byte
	margin, rest := line[:indent], line[indent:]
	for at := breakAt(rest, maxWidth-indent); at > 0; at = breakAt(rest, maxWidth-indent) {
		out = append(append(append(out, margin...), rest[:at]...), '\n')
		rest = rest[at+1:]
	}
	return append(append(out, margin...), rest...)
}

// breakAt returns the last space that keeps the first line of a text within a width in characters, or else the first space; 0 if the text
// fits, or has no space.
func breakAt(text []byte, width int) int {
	at, characters := 0, 0
	for i := range text {
		if utf8.RuneStart(text[i]) && text[i] != '\n' {
			characters++
		}
		if characters > width && at > 0 {
			return at
		}
		if i > 0 && i+1 < len(text) && text[i] == ' ' && inWord(text[i-1]) && inWord(text[i+1]) {
			at = i
			if characters > width+1 {
				return at
			}
		}
	}
	return 0
}

// inWord reports whether a byte is neither a space nor the end of a line.
func inWord(b byte) bool { return b != ' ' && b != '\t' && b != '\n' && b != '\r' }
