package jsonvalue

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxProblems is how many problems Parse lists; a text that is wrong throughout needs no more.
	maxProblems = 100
)

// SyntaxError is one problem of a text.
type SyntaxError struct {
	// Line and Column are 1-based, columns count characters; Offset counts bytes from 0.
	Line, Column, Offset int
	// Kind is one of "syntax", "duplicate", "proto", "surrogate", "utf8", "number", "precision", "depth", "size", "trailing".
	Kind string
	// Pointer is the JSON pointer of the value or member that the problem is in.
	Pointer string
	// Message describes the mistake in one sentence, without its place.
	Message string
}

// Error is the place and the message.
func (e SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// Parse reads one JSON value strictly. maxDepth and maxBytes of 0 mean 512 levels and no limit. Where an error of kind
// "syntax", "depth" or "size" ends parsing the node is nil; other problems are collected, up to 100 of them in the
// order of the text, and the node is complete. A byte order mark, which editors on Windows write, is skipped. A
// text is good only if the list is empty. Problems of the kinds ignored, which do not end parsing, are left out.
func Parse(src []byte, maxDepth, maxBytes int, ignored ...string) (*Node, []SyntaxError) {
	p := &parser{cursor: cursor{src: src}, maxDepth: cmp.Or(maxDepth, MaxDepth), line: 1, column: 1, ignored: ignored}
	if maxBytes > 0 && len(src) > maxBytes {
		p.report("size", 0, fmt.Sprintf("the text has more than %d bytes", maxBytes))
		return nil, p.problems
	}
	n := p.document()
	slices.SortStableFunc(p.problems, func(a, b SyntaxError) int { return cmp.Compare(a.Offset, b.Offset) })
	return n, p.problems
}

type parser struct {
	cursor
	maxDepth int
	strings  stringScanner
	// path is the way from the root to the value being read.
	path     []step
	problems []SyntaxError
	ignored  []string // kinds of problems
	// line and column are those of the byte at mark, which only moves forward.
	mark, line, column int
}

// step is one member name, or an index where it is not negative.
type step struct {
	name  string
	index int
}

// place returns line and column of an offset, which must not be before that of the call before.
func (p *parser) place(offset int) (line, column int) {
	passed := p.src[p.mark:offset]
	p.mark = offset
	if lines := bytes.Count(passed, []byte("\n")); lines > 0 {
		p.line, p.column = p.line+lines, 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCount(passed)
	return p.line, p.column
}

func (p *parser) report(kind string, offset int, message string) {
	line, column := p.place(offset)
	p.reportAt(line, column, offset, kind, message)
}

func (p *parser) reportAt(line, column, offset int, kind, message string) {
	if len(p.problems) < maxProblems && !slices.Contains(p.ignored, kind) {
		p.problems = append(p.problems, SyntaxError{
			Line: line, Column: column, Offset: offset, Kind: kind, Pointer: p.pointer(), Message: message,
		})
	}
}

// fail reports a mistake that ends parsing; it is kept even if the list is full.
func (p *parser) fail(kind string, f *fault) *Node {
	if len(p.problems) == maxProblems {
		p.problems = p.problems[:maxProblems-1]
	}
	p.report(kind, f.offset, f.message)
	return nil
}

func (p *parser) pointer() string {
	var b strings.Builder
	for _, s := range p.path {
		b.WriteByte('/')
		if s.index < 0 {
			b.WriteString(EscapePointer(s.name))
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	return b.String()
}

func (p *parser) document() *Node {
	if literal(p.src, 0, byteOrderMark) {
		p.offset = len(byteOrderMark)
		p.mark = p.offset // the mark takes no column
	}
	p.space()
	n := p.value()
	if n == nil {
		return nil
	}
	if f := p.end(); f != nil {
		p.report("trailing", f.offset, f.message)
	}
	return n
}

func (p *parser) value() *Node {
	if p.offset >= len(p.src) {
		return p.fail("syntax", unexpected(p.src, p.offset))
	}
	n := &Node{Offset: p.offset}
	n.Line, n.Column = p.place(p.offset)
	switch c := p.src[p.offset]; {
	case c == '"':
		text, ok := p.string()
		if !ok {
			return nil
		}
		n.Kind, n.Str = String, text
	case c == '{':
		n.Kind = Object
		return p.object(n)
	case c == '[':
		n.Kind = Array
		return p.array(n)
	case c == '-' || c >= '0' && c <= '9':
		n.Kind = Number
		return p.number(n)
	case literal(p.src, p.offset, "true"):
		n.Kind, n.Bool = Bool, true
		p.offset += len("true")
	case literal(p.src, p.offset, "false"):
		n.Kind = Bool
		p.offset += len("false")
	case literal(p.src, p.offset, "null"):
		p.offset += len("null")
	default:
		return p.fail("syntax", unexpected(p.src, p.offset))
	}
	return n
}

func (p *parser) number(n *Node) *Node {
	end, f := scanNumber(p.src, p.offset)
	if f != nil {
		return p.fail("syntax", f)
	}
	n.Text = string(p.src[p.offset:end])
	n.Num = number(p.src[p.offset:end])
	if math.IsInf(n.Num, 0) {
		p.report("number", p.offset, "the number is too large for a double (at most about 1.8e308)")
	} else if text := p.src[p.offset:end]; !keepsInteger(text, n.Num) {
		p.report("precision", p.offset, unkept(text))
	}
	p.offset = end
	return n
}

// string reads the string at the offset and reports its mistakes.
func (p *parser) string() (string, bool) {
	text, end, f := p.strings.scan(p.src, p.offset+1)
	if f != nil {
		p.fail("syntax", f)
		return "", false
	}
	p.offset = end
	for _, f := range p.strings.flaws {
		p.report(f.kind, f.offset, f.message)
	}
	return string(text), true
}

func (p *parser) array(n *Node) *Node {
	if f := p.enter(p.maxDepth); f != nil {
		return p.fail("depth", f)
	}
	for more := !p.empty(']'); more; {
		p.path = append(p.path, step{index: len(n.Elements)})
		e := p.value()
		if e == nil {
			return nil
		}
		p.path = p.path[:len(p.path)-1]
		n.Elements = append(n.Elements, e)
		var f *fault
		if more, f = p.more(']'); f != nil {
			return p.fail("syntax", f)
		}
	}
	return n
}

func (p *parser) object(n *Node) *Node {
	if f := p.enter(p.maxDepth); f != nil {
		return p.fail("depth", f)
	}
	first := map[string]int{}
	for more := !p.empty('}'); more; {
		if !p.member(n, first) {
			return nil
		}
		var f *fault
		if more, f = p.more('}'); f != nil {
			return p.fail("syntax", f)
		}
	}
	return n
}

// member reads a member of n; first holds the index of the first one of each name.
func (p *parser) member(n *Node, first map[string]int) bool {
	if f := p.quote(); f != nil {
		p.fail("syntax", f)
		return false
	}
	var m Member
	start := p.offset
	m.Line, m.Column = p.place(start)
	name, ok := p.string()
	if !ok {
		return false
	}
	m.Name = name
	p.path = append(p.path, step{name: name, index: -1})
	if i, twice := first[name]; twice {
		p.reportAt(m.Line, m.Column, start, "duplicate", fmt.Sprintf(
			"duplicate field %q, first at line %d, column %d", name, n.Members[i].Line, n.Members[i].Column))
	} else {
		first[name] = len(n.Members)
	}
	if name == "__proto__" {
		p.reportAt(m.Line, m.Column, start, "proto",
			`a field cannot be named "__proto__": the definition hash does not cover it`)
	}
	if f := p.colon(); f != nil {
		p.fail("syntax", f)
		return false
	}
	if m.Value = p.value(); m.Value == nil {
		return false
	}
	p.path = p.path[:len(p.path)-1]
	n.Members = append(n.Members, m)
	return true
}
