package format

import (
	"bytes"
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// layout is a YAML text with the places of its values and comments. The library's reader attaches comments to values as well, but to
// other ones than an author would, and not always to the same ones after it has written them; its positions can be relied on.
type layout struct {
	text     []byte
	lines    []int   // where each line begins
	parts    []*part // as they stand in the text
	of       map[*yaml.Node]*part
	comments []comment
	// inside are the lines that a text value began before; keeps are those before which an empty line would belong to a text value.
	inside, keeps map[int]bool
	closed        map[int]*part // the flow collections by where they end
	cursor        struct{ line, column, at int }
}

// part is a value or a key, with its offsets in the text.
type part struct {
	node   *yaml.Node
	parent *part // the collection that holds it
	index  int   // among the children of parent
	order  int   // among all parts
	start  int   // with its anchor and tag
	begin  int   // with the dash of an element
	end    int   // behind a quoted text, the head of a block text, or a flow collection; 0 of all others
}

// comment is one line of comment.
type comment struct {
	text string
	line int // from 0 on
	// column is where it begins, if it has a line of its own; after is the last byte before it, if it has not.
	column, after int
	own           bool
	apart         bool  // an empty line stands before it
	flow          *part // the innermost flow collection that holds it
}

func (p *part) flow() bool { return p.node.Style&yaml.FlowStyle != 0 }

// starts reports whether a member or an element starts with the part.
func (p *part) starts() bool {
	return p.parent != nil && (p.parent.node.Kind == yaml.SequenceNode || p.index%2 == 0)
}

func newLayout(text []byte, root *yaml.Node) *layout {
	l := &layout{text: text, lines: []int{0}, of: map[*yaml.Node]*part{}, inside: map[int]bool{}, keeps: map[int]bool{}, closed: map[int]*part{}}
	for i := 0; i < len(text); {
		n := lineBreak(text[i:])
		if n > 0 {
			l.lines = append(l.lines, i+n)
		}
		i += max(n, 1)
	}
	l.add(root, nil, 0)
	l.scan()
	return l
}

// lineBreak is the length of the end of a line with which a text begins, 0 for none. Lines end where they do for the library.
func lineBreak(text []byte) int {
	for _, end := range []string{"\r\n", "\n", "\r", "\u0085", "\u2028", "\u2029"} {
		if bytes.HasPrefix(text, []byte(end)) {
			return len(end)
		}
	}
	return 0
}

func (l *layout) add(n *yaml.Node, parent *part, index int) {
	at := l.offset(n.Line, n.Column)
	p := &part{node: n, parent: parent, index: index, order: len(l.parts), start: at, begin: at}
	l.parts = append(l.parts, p)
	l.of[n] = p
	for i, inner := range n.Content {
		l.add(inner, p, i)
	}
}

// offset is the offset of a line and a column, both from 1 on. It goes on from the last one that was asked for: a line may be long.
func (l *layout) offset(line, column int) int {
	if line < 1 || line > len(l.lines) {
		return len(l.text)
	}
	c := &l.cursor
	if line != c.line || column < c.column {
		c.line, c.column, c.at = line, 1, l.lines[line-1]
	}
	for ; c.column < column && c.at < len(l.text); c.column++ {
		_, size := utf8.DecodeRune(l.text[c.at:])
		c.at += size
	}
	return c.at
}

// line is the line of an offset, from 0 on.
func (l *layout) line(at int) int {
	return sort.Search(len(l.lines), func(i int) bool { return l.lines[i] > at }) - 1
}

// column is how many characters stand before an offset on its line.
func (l *layout) column(at int) int { return utf8.RuneCount(l.text[l.lines[l.line(at)]:at]) }

// margin is the column of the members or elements of a collection; -1 of no collection.
func (l *layout) margin(collection *part) int {
	if collection == nil {
		return -1
	}
	if len(collection.node.Content) == 0 {
		return l.column(collection.start)
	}
	return l.column(l.of[collection.node.Content[0]].begin)
}

// lineEnd is the offset at which the line of another one ends.
func (l *layout) lineEnd(at int) int {
	for at < len(l.text) && lineBreak(l.text[at:]) == 0 {
		at++
	}
	return at
}

// scan finds the comments, and where parts begin and end that say so themselves.
func (l *layout) scan() {
	var open []*part  // flow collections
	var pending *part // has begun, but its text has not
	next, last, closed := 0, -1, -1
	for i := 0; i < len(l.text); {
		for ; next < len(l.parts) && l.parts[next].start <= i; next++ {
			pending = l.parts[next]
			l.begin(pending, last)
		}
		c := l.text[i]
		if n := lineBreak(l.text[i:]); n > 0 || c == ' ' || c == '\t' {
			i += max(n, 1)
			continue
		}
		if c == '#' && (i == 0 || closed == i || blank(l.text[i-1]) || l.lines[l.line(i)] == i || len(open) > 0 && strings.IndexByte(",[{", l.text[i-1]) >= 0) {
			i = l.comment(i, last, open)
			continue
		}
		last = i
		switch {
		case pending != nil && (c == '&' || c == '!'):
			for i < len(l.text) && !blank(l.text[i]) && lineBreak(l.text[i:]) == 0 && strings.IndexByte(",[]{}", l.text[i]) < 0 {
				last = i
				i++
			}
			continue
		case pending != nil && (c == '"' && pending.node.Style&yaml.DoubleQuotedStyle != 0 || c == '\'' && pending.node.Style&yaml.SingleQuotedStyle != 0):
			i = l.quoted(i)
			pending.end, closed, last = i, i, i-1
		case pending != nil && pending.node.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 && (c == '|' || c == '>'):
			i, last = l.block(pending, i)
		case pending != nil && pending.flow() && (c == '[' || c == '{'):
			open = append(open, pending)
			i++
		case len(open) > 0 && (c == ']' || c == '}'):
			i++
			open[len(open)-1].end, closed = i, i
			l.closed[i] = open[len(open)-1]
			open = open[:len(open)-1]
		default:
			i++
		}
		pending = nil
	}
	for ; next < len(l.parts); next++ {
		l.begin(l.parts[next], last)
	}
}

func blank(b byte) bool { return b == ' ' || b == '\t' }

// begin says where a part begins, given what stands before it: a dash, or the mark of a key that is written at length.
func (l *layout) begin(p *part, before int) {
	if before < 0 || p.parent == nil || p.parent.flow() {
		return
	}
	if p.parent.node.Kind == yaml.SequenceNode && l.text[before] == '-' {
		p.begin = before
	}
	if p.parent.node.Kind == yaml.MappingNode && p.index%2 == 0 && l.text[before] == '?' {
		if line := l.text[l.lines[l.line(before)]:before]; len(bytes.Trim(line, " \t-")) == 0 {
			p.begin = before
		}
	}
}

// comment notes the comment at an offset, and returns where it ends.
func (l *layout) comment(at, last int, open []*part) int {
	end := l.lineEnd(at)
	line := l.line(at)
	c := comment{text: strings.TrimRight(string(l.text[at:end]), " \t"), line: line, after: last}
	if len(open) > 0 {
		c.flow = open[len(open)-1]
	}
	if c.own = l.empty(line, at); c.own {
		c.column = l.column(at)
	}
	l.comments = append(l.comments, c)
	return end
}

// empty reports whether a line has nothing before an offset but blanks or a mark of the document.
func (l *layout) empty(line, before int) bool {
	if l.inside[line] {
		return false
	}
	words := strings.TrimSpace(string(l.text[l.lines[line]:before]))
	return words == "" || words == "---" || words == "..." || words[0] == '%' && l.lines[line] < l.parts[0].start
}

// quoted returns where a text in quotes ends.
func (l *layout) quoted(at int) int {
	quote, i := l.text[at], at+1
	for ; i < len(l.text); i++ {
		if n := lineBreak(l.text[i:]); n > 0 {
			l.inside[l.line(i)+1] = true
		}
		if quote == '"' && l.text[i] == '\\' {
			i++
			if i < len(l.text) && lineBreak(l.text[i:]) > 0 {
				l.inside[l.line(i)+1] = true
			}
			continue
		}
		if l.text[i] == quote {
			if quote == '\'' && i+1 < len(l.text) && l.text[i+1] == quote {
				i++
				continue
			}
			return i + 1
		}
	}
	return i
}

// block returns where a text in block style (| or >) ends, and the last byte of it or of its head.
func (l *layout) block(p *part, at int) (end, last int) {
	i, given, keep := at+1, 0, false
	for ; i < len(l.text) && strings.IndexByte("+-0123456789", l.text[i]) >= 0; i++ {
		if l.text[i] == '+' {
			keep = true
		} else if l.text[i] != '-' {
			given = int(l.text[i] - '0')
		}
	}
	p.end = i
	end = l.lineEnd(i)
	if hash := bytes.IndexByte(l.text[i:end], '#'); hash >= 0 {
		l.comment(i+hash, i-1, nil)
	}
	margin := l.margin(p.parent)
	indent := max(margin, 0) + given
	if given == 0 {
		indent = max(l.textIndent(l.line(at)+1), margin+1, 1)
	}
	last = p.end - 1
	line := l.line(at) + 1
	for n := line; n < len(l.lines); n++ {
		text := l.text[l.lines[n]:l.lineEnd(l.lines[n])]
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		filled := spaces < len(text)
		if filled && spaces < indent {
			break
		}
		if filled || spaces > indent || keep && n < len(l.lines)-1 {
			for ; line <= n; line++ {
				l.inside[line] = true
			}
			end = l.lines[n] + len(text)
			last = max(last, end-1)
		}
	}
	if keep {
		l.keeps[line] = true
	}
	return end, last
}

// textIndent is the indentation of a text in block style that begins on a line.
func (l *layout) textIndent(line int) int {
	indent := 0
	for ; line < len(l.lines); line++ {
		text := l.text[l.lines[line]:l.lineEnd(l.lines[line])]
		spaces := len(text) - len(bytes.TrimLeft(text, " "))
		indent = max(indent, spaces)
		if spaces < len(text) {
			return indent
		}
	}
	return indent
}
