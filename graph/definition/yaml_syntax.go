package definition

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// yamlLine finds the line in the reader's errors, which have it only in their text.
var yamlLine = pattern(`^(?:yaml: )?(?:line (\d+): )?`)

// yamlFaults are the errors of the reader that an author can do something about, by how they begin.
var yamlFaults = []struct{ begins, hint string }{
	{"mapping values are not allowed", `quote the text if it holds ": "; indent the fields of an object alike`},
	{"did not find expected ','", `close the list or object, put a comma between its values, and quote texts with ", ", ": ", "?,", brackets or braces`},
	{"did not find expected key", "indent the fields of an object alike; quote a text as a whole, not a part of it"},
	{"did not find expected '-' indicator", "indent the dashes of a list alike, and the fields of an element as far as its first one"},
	{"could not find expected ':'", `put ": " after the name of a field; indent a text of several lines further than its name`},
	{endsInQuotes, "close the quotes that begin here"},
	{"found unknown escape character", `write \\ for a backslash, or use single quotes`},
	{"found a tab character", "indent with blanks, not with tabs"},
	{"found character that cannot start any token", "quote the text if it begins with %, @ or a backtick; indent with blanks, not with tabs"},
	{"block sequence entries are not allowed", `begin a list on a new line; quote the text if it begins with "- "`},
	{"did not find expected comment or line break", "begin the text on the next line; quote the text if it begins with | or >"},
	{"did not find expected alphabetic or numeric character", "quote the text if it begins with & or *"},
	{"found incompatible YAML document", "leave the line %YAML out"},
	{"unknown anchor", "quote the text if it begins with *"},
	{"the text holds several documents", "keep one document; leave the line --- out"},
}

// endsInQuotes begins the error of a text that ends within quotes.
const endsInQuotes = "found unexpected end of stream"

// maxSearch is the largest text, in bytes, that is searched for the line of an error.
const maxSearch = 1 << 20

// yamlSyntax is the finding for a text that the reader rejects.
func yamlSyntax(src []byte, err error) problem.Finding {
	line, text := yamlError(err)
	hint := ""
	for _, f := range yamlFaults {
		if strings.HasPrefix(text, f.begins) {
			hint = f.hint
		}
	}
	lines := bytes.SplitAfter(src, []byte("\n"))
	at := problem.Place{}
	line = faultLine(src, lines, line, text)
	if begins := quotesBegin(lines, line); begins > 0 && !strings.Contains(text, "escape") && !strings.Contains(text, "hexdecimal") {
		hint = fmt.Sprintf("close the quotes that begin here: their text ends on line %d", line)
		line = begins
	}
	if line > 0 && line <= len(lines) {
		content := lines[line-1]
		at.Line, at.Column = line, 1+len(content)-len(bytes.TrimLeft(content, " "))
	}
	return textFinding(problem.DefinitionSyntax, at, "invalid YAML: "+text, hint)
}

// yamlError returns the line that an error of the reader names, 0 if absent, and its text.
func yamlError(err error) (line int, text string) {
	text = err.Error()
	if m := yamlLine().FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	return line, text
}

// faultLine returns the line of an error. The reader names it for errors of scanning; otherwise it names the line before the list or
// object around the fault, or no line if that begins on the first.
func faultLine(src []byte, lines [][]byte, named int, text string) int {
	switch {
	case strings.HasPrefix(text, "did not find expected ','"): // what is not closed is worth more than where that shows
		if named < len(lines) && bytes.ContainsAny(lines[named], "[{") {
			return named + 1
		}
		return 1
	case strings.HasPrefix(text, "did not find expected node content"):
		return named + 1
	case named > 0 && (strings.HasPrefix(text, endsInQuotes) || strings.HasPrefix(text, "could not find expected ':'")):
		return named
	case len(src) > maxSearch:
		return named
	}
	// The first line that gives the text this fault.
	size := 0
	ends := make([]int, len(lines))
	for i, l := range lines {
		size += len(l)
		ends[i] = size
	}
	return 1 + sort.Search(len(lines), func(i int) bool {
		if i+1 < named {
			return false
		}
		_, err := decodeYAML(src[:ends[i]])
		if err == nil {
			return false
		}
		_, found := yamlError(err)
		return found == text
	})
}

// quotesBegin returns the first line of quotes that are open where a line begins, or 0. Quotes that are not closed extend to the
// next ones, and the fault shows only there.
func quotesBegin(lines [][]byte, line int) int {
	if line < 2 || line > len(lines) {
		return 0
	}
	before := bytes.Join(lines[:line-1], nil)
	if len(before) > maxSearch {
		return 0
	}
	_, err := decodeYAML(before)
	if err == nil {
		return 0
	}
	if begins, text := yamlError(err); strings.HasPrefix(text, endsInQuotes) && begins < line {
		return begins
	}
	return 0
}
