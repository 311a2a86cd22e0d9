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
	for utf8.RuneCount(line) > maxWidth {
		at := -1
		for i := indent + 1; i+1 < len(line); i++ {
			if line[i] != ' ' || !inWord(line[i-1]) || !inWord(line[i+1]) {
				continue
			}
			if at >= 0 && utf8.RuneCount(line[:i]) > maxWidth {
				break
			}
			at = i
		}
		if at < 0 {
			break
		}
		out = append(append(out, line[:at]...), '\n')
		line = append(bytes.Repeat([]byte(" "), indent), line[at+1:]...)
		if utf8.RuneCount(line) <= indent {
			break
		}
	}
	return append(out, line...)
}

// inWord reports whether a byte is neither a space nor the end of a line.
func inWord(b byte) bool { return b != ' ' && b != '\t' && b != '\n' && b != '\r' }
