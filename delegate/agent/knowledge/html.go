package knowledge

import (
	"html"
	"strings"
)

// An HTML file is searched for its words and read by a model, never shown: only the texts between the tags are needed, cut at the
// headings. So tags are told from text by the simple rules of this file, which never fail, and a parser of the whole language is not needed.

// unshown are elements whose content is not text of the page.
var unshown = map[string]bool{"script": true, "style": true, "template": true, "noscript": true, "svg": true}

// breaks are elements that begin a new line.
var breaks = map[string]bool{
	"p": true, "div": true, "br": true, "li": true, "ul": true, "ol": true, "tr": true, "table": true, "section": true, "article": true, "header": true,
	"footer": true, "main": true, "nav": true, "aside": true, "blockquote": true, "pre": true, "dt": true, "dd": true, "hr": true, "title": true, "figure": true,
	"h1": true, "h2": true, "h3": true, "h4": true, "h5": true, "h6": true, "body": true, "form": true, "option": true,
}

// html cuts a page at its headings h1 to h6. Tags and comments are left out.
func (s *splitter) html(text string) {
	slug, title, level := "top", "", 0
	var out, heading strings.Builder
	inHeading := 0
	flush := func() {
		if level > 0 || strings.TrimSpace(out.String()) != "" {
			s.add(slug, title, level, out.String())
		}
		out.Reset()
	}
	write := func(words string) {
		words = spaced(html.UnescapeString(words))
		if out.Len() == 0 || strings.HasSuffix(out.String(), "\n") {
			words = strings.TrimLeft(words, " ")
		}
		out.WriteString(words)
		if inHeading > 0 {
			heading.WriteString(words)
		}
	}
	line := func() {
		if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
			out.WriteByte('\n')
		}
	}
	for text != "" {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			write(text)
			break
		}
		if i > 0 {
			write(text[:i])
			text = text[i:]
		}
		if rest, ok := strings.CutPrefix(text, "<!--"); ok {
			_, text, _ = strings.Cut(rest, "-->")
			continue
		}
		name, closing, length := tag(text)
		if length == 0 { // a "<" that begins no tag
			write("<")
			text = text[1:]
			continue
		}
		text = text[length:]
		if unshown[name] && !closing {
			text = after(text, name)
			continue
		}
		if breaks[name] {
			line()
		}
		switch isHeading := len(name) == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6'; {
		case isHeading && !closing:
			if inHeading == 0 {
				flush()
			}
			inHeading = int(name[1] - '0')
			level, slug = inHeading, ""
			heading.Reset()
		case isHeading && inHeading > 0:
			title = strings.TrimSpace(heading.String())
			slug, inHeading = slugOf(title), 0
		case name == "li" && !closing:
			out.WriteString("- ")
		case (name == "td" || name == "th") && closing:
			write(" ")
		}
	}
	if inHeading > 0 {
		title = strings.TrimSpace(heading.String())
		slug = slugOf(title)
	}
	line()
	flush()
}

// tag reads a tag or a declaration at the beginning of a text: its name in lower case and its length, 0 if it is not a tag.
func tag(text string) (name string, closing bool, length int) {
	i := 1
	if i < len(text) && text[i] == '/' {
		closing = true
		i++
	}
	from := i
	for i < len(text) && (text[i]|0x20 >= 'a' && text[i]|0x20 <= 'z' || i > from && text[i] >= '0' && text[i] <= '9') {
		i++
	}
	name = strings.ToLower(text[from:i])
	if name == "" && (closing || i >= len(text) || text[i] != '!' && text[i] != '?') {
		return "", false, 0
	}
	quote, before := byte(0), byte(0)
	for ; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && before == '=':
			quote = c
		case c == '>':
			return name, closing, i + 1
		}
		if c := text[i]; c != ' ' && c != '\n' && c != '\t' {
			before = c
		}
	}
	return name, closing, len(text)
}

// after is the text after the end of an element that has no child elements.
func after(text, name string) string {
	for at := 0; ; {
		i := strings.Index(text[at:], "</")
		if i < 0 {
			return ""
		}
		at += i + 2
		if len(text)-at >= len(name) && strings.EqualFold(text[at:at+len(name)], name) {
			if got, closing, n := tag(text[at-2:]); closing && got == name {
				return text[at-2+n:]
			}
		}
	}
}

// spaced makes one blank of any white space.
func spaced(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	if text != "" && words == "" {
		return " "
	}
	if words == "" {
		return ""
	}
	if first := text[0]; first == ' ' || first == '\n' || first == '\t' || first == '\r' {
		words = " " + words
	}
	if last := text[len(text)-1]; last == ' ' || last == '\n' || last == '\t' || last == '\r' {
		words += " "
	}
	return words
}
