package mcphost

import (
	"bytes"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads a document as values.
func parseTOML(text []byte) (map[string]any, error) {
	values := map[string]any{}
	err := toml.Unmarshal(text, &values)
	return values, err
}

// span is a part of a text.
type span struct{ from, to int }

// tableSpans returns where the tables of a path and those below it stand, each from its bracket to its last member. The
// text has been parsed.
func tableSpans(text []byte, path ...string) (spans []span) {
	var p unstable.Parser
	p.KeepComments = true
	p.Reset(text)
	inside := false
	close := func(at int) {
		if inside {
			open := &spans[len(spans)-1]
			open.to = open.from + len(bytes.TrimRight(text[open.from:at], " \t\r\n"))
		}
		inside = false
	}
	// end is where the last thing inside begins that is not ours: comments after the last member are not.
	end := -1
	for p.NextExpression() {
		node := p.Expression()
		if node.Kind == unstable.Comment {
			if end < 0 {
				end = int(node.Raw.Offset)
			}
			continue
		}
		if node.Kind == unstable.KeyValue {
			end = -1
			continue
		}
		var names []string
		first := -1
		for keys := node.Key(); keys.Next(); {
			if first < 0 {
				first = int(keys.Node().Raw.Offset)
			}
			names = append(names, string(keys.Node().Data))
		}
		from := bytes.LastIndexByte(text[:first], '[')
		if node.Kind == unstable.ArrayTable {
			from = bytes.LastIndexByte(text[:from], '[')
		}
		if end < 0 {
			end = from
		}
		close(end)
		end = -1
		if len(names) >= len(path) && strings.Join(names[:len(path)], "\x00") == strings.Join(path, "\x00") {
			spans, inside = append(spans, span{from: from}), true
		}
	}
	if end < 0 {
		end = len(text)
	}
	close(end)
	return spans
}

// setTOML writes the tables of a server in the place of those that are there, or at the end.
func setTOML(text, server []byte, spans []span) []byte {
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	server = bytes.ReplaceAll(bytes.TrimRight(server, "\n"), []byte("\n"), []byte(newline))
	if len(spans) == 0 {
		out := bytes.Clone(text)
		if len(out) > 0 && !bytes.HasSuffix(out, []byte("\n")) {
			out = append(out, newline...)
		}
		if len(out) > 0 {
			out = append(out, newline...)
		}
		return append(append(out, server...), newline...)
	}
	out := cutTOML(text, spans[1:])
	return append(append(bytes.Clone(out[:spans[0].from]), server...), out[spans[0].to:]...)
}

// cutTOML takes tables out, each with its line end and the empty line before it, or after the first.
func cutTOML(text []byte, spans []span) []byte {
	out := bytes.Clone(text)
	for i := len(spans) - 1; i >= 0; i-- {
		from, to := spans[i].from, spans[i].to
		rest := bytes.TrimLeft(out[to:], " \t")
		switch {
		case bytes.HasPrefix(rest, []byte("\r\n")):
			rest = rest[2:]
		case bytes.HasPrefix(rest, []byte("\n")):
			rest = rest[1:]
		}
		head := out[:from]
		if above := bytes.TrimSuffix(bytes.TrimSuffix(head, []byte("\n")), []byte("\r")); bytes.HasSuffix(above, []byte("\n")) {
			head = above
		} else if len(head) == 0 { // the empty line before the next one, where this one was the first
			rest = bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte("\r")), []byte("\n"))
		}
		out = append(bytes.Clone(head), rest...)
	}
	return out
}
