package knowledge

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// maxSections bounds the sections of a file; the last one has the rest.
	maxSections = 5000
	// partBytes is the approximate size of the parts of a text without headings.
	partBytes = 2000
	// maxTitle bounds a title, in bytes.
	maxTitle = 120
	// maxDecoded limits a JSON file in memory; a larger one is read as plain text.
	maxDecoded = 64 << 20
)

// section is a part of a file. The texts of a file's sections are together its text.
type section struct {
	// slug is the fragment behind "#"; it is unique in its file.
	slug, title string
	// level is that of the heading; sections below it have a higher one.
	level int
	// lead stands above the text where it is read alone, such as the names of columns.
	lead, text string
}

// split cuts a text into one or more sections.
func split(form, text string) []section {
	s := &splitter{seen: map[string]int{}}
	switch form {
	case "md":
		s.markdown(text)
	case "html":
		s.html(text)
	case "json":
		s.json(text)
	case "csv":
		s.csv(text)
	default:
		s.parts(text)
	}
	if len(s.sections) == 0 {
		s.add("top", "", 0, "")
	}
	s.sections[len(s.sections)-1].text += s.rest.String()
	return s.sections
}

type splitter struct {
	sections []section
	seen     map[string]int
	// rest is the additional text of the last section if there are too many sections.
	rest strings.Builder
}

// add adds a section, or lengthens the last one when there are too many.
func (s *splitter) add(slug, title string, level int, text string) {
	if len(s.sections) >= maxSections {
		s.rest.WriteString(text)
		return
	}
	if slug == "" {
		slug = "section"
	}
	unique := slug
	for s.seen[unique] > 0 {
		s.seen[slug]++
		unique = fmt.Sprintf("%s-%d", slug, s.seen[slug])
	}
	s.seen[unique]++
	s.sections = append(s.sections, section{slug: unique, title: problem.Clip(title, maxTitle), level: level, text: text})
}

// slugOf makes the name of a section of its heading, as most sites do: small letters, "-" for white space, no punctuation.
func slugOf(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || r == '_' || r == '-':
			b.WriteRune(r)
		case unicode.IsSpace(r):
			b.WriteByte('-')
		}
		if b.Len() > 80 {
			break
		}
	}
	return strings.Trim(b.String(), "-")
}

// markdown cuts at headings of the form "## Title" that do not stand in a code block.
func (s *splitter) markdown(text string) {
	from, at, fence := 0, 0, ""
	slug, title, level := "top", "", 0
	flush := func(to int) {
		if level > 0 || strings.TrimSpace(text[from:to]) != "" {
			s.add(slug, title, level, text[from:to])
			from = to
		}
	}
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, " ")
		indent := len(line) - len(trimmed)
		switch n := len(trimmed) - len(strings.TrimLeft(trimmed, "#")); {
		case indent > 3:
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t\n") == "" {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, trimmed[:1]))]
		case n >= 1 && n <= 6 && len(trimmed) > n && (trimmed[n] == ' ' || trimmed[n] == '\t' || trimmed[n] == '\n'):
			flush(at)
			title = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(trimmed[n:]), "#"))
			slug, level = slugOf(title), n
		}
		at += len(line)
	}
	flush(len(text))
}

// parts cuts a text without headings at blank lines, or else at the ends of lines, into parts of about the same length.
func (s *splitter) parts(text string) {
	for n := 1; text != ""; n++ {
		end := len(text)
		if end > partBytes {
			end = boundary(text, 2*partBytes)
			if i := strings.Index(text[partBytes:end], "\n\n"); i >= 0 {
				end = partBytes + i + 2
			} else if i := strings.LastIndexByte(text[:end], '\n'); i > 0 {
				end = i + 1
			}
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text[:end]), "\n")
		s.add(fmt.Sprintf("part-%d", n), first, 1, text[:end])
		text = text[end:]
	}
}

// csv cuts a table into groups of rows, each below the first row, which names the columns.
func (s *splitter) csv(text string) {
	r := csv.NewReader(strings.NewReader(text))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if _, err := r.Read(); err != nil {
		s.parts(text)
		return
	}
	from := int(r.InputOffset())
	head, first, row := text[:from], 2, 1
	flush := func(to int) {
		if to > from {
			s.add(fmt.Sprintf("rows-%d-%d", first, row), fmt.Sprintf("rows %d to %d", first, row), 1, text[from:to])
			if len(head) <= partBytes {
				s.sections[len(s.sections)-1].lead = head
			}
			from, first = to, row+1
		}
	}
	for {
		_, err := r.Read()
		to := int(r.InputOffset())
		if err != nil { // the end, or what is no table any more
			flush(len(text))
			break
		}
		row++
		if to-from >= partBytes {
			flush(to)
		}
	}
	if len(s.sections) == 0 {
		s.add("rows-1-1", "row 1", 1, text)
	} else if len(head) > partBytes {
		s.sections[0].text = text[:len(head)+len(s.sections[0].text)]
	}
}

// json cuts an object at its fields and an array at its elements. Invalid JSON is plain text.
func (s *splitter) json(text string) {
	if jsonvalue.DecodedBytes([]byte(text), maxDecoded) > maxDecoded {
		s.parts(text)
		return
	}
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		s.parts(text)
		return
	}
	indented := func(v any) string {
		b, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			b = jsonvalue.Canonical(v)
		}
		return string(b) + "\n"
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range jsonvalue.Keys(v) {
			s.add(slugOf(name), name, 1, string(jsonvalue.AppendString(nil, name))+": "+indented(v[name]))
		}
	case []any:
		for i, e := range v {
			s.add(fmt.Sprintf("item-%d", i), fmt.Sprintf("element %d", i), 1, indented(e))
		}
	default:
		s.parts(text)
	}
}

// clean makes one line of a text.
func clean(text string, most int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
