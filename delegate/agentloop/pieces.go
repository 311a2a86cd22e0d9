package agentloop

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// OfLarge returns a part of a large result. read returns the text of a piece, counted from 0; as few as possible are read, one at a time.
func (v View) OfLarge(ref string, l *Large, read func(i int) (string, *Failure)) (any, *Failure) {
	p := &pieces{ref: ref, l: l, read: read}
	if v.JQ == "" && v.Path == "" {
		return v.whole(p)
	}
	if l.Type == typeText && v.Path != "" {
		return nil, pathFailed("the result is a text; read it with offset and limit")
	}
	steps, why := parsePath(v.Path)
	if why != "" {
		return nil, pathFailed(why)
	}
	found, f := p.follow(steps)
	if f != nil {
		return nil, f
	}
	if v.JQ == "" {
		return v.at(p, found)
	}
	value, f := p.decode(l, found)
	if f != nil {
		return nil, f
	}
	if value, f = v.evaluate(value); f != nil {
		return nil, f
	}
	return v.of(value), nil
}

// whole returns a part of the result itself. The index finds its first piece.
func (v View) whole(p *pieces) (any, *Failure) {
	l := p.l
	if l.Type == typeList {
		from := min(v.Offset, l.Items)
		at := -1
		for i := range l.Pieces {
			if l.Pieces[i].At >= 0 && l.Pieces[i].Item <= from {
				at = i
			}
		}
		w := window{from: from, to: l.Items}
		if v.Limit > 0 {
			w.to = min(from+v.Limit, l.Items)
		}
		if at < 0 || from >= l.Items {
			return v.listed(p, w, l.Items, 0, l.Items, true)
		}
		p.seek(at, l.Pieces[at].At)
		return v.listed(p, w, l.Pieces[at].Item, 0, l.Items, true)
	}
	from := min(v.Offset, l.Chars)
	to := min(from+v.MaxChars, l.Chars)
	if v.Limit > 0 {
		to = min(to, from+v.Limit)
	}
	at, before := 0, 0
	for at < len(l.Pieces)-1 && before+l.Pieces[at].Chars <= from {
		before += l.Pieces[at].Chars
		at++
	}
	p.seek(at, 0)
	w := &capture{from: from - before, to: to - before}
	for w.seen < w.to && p.more() { // to the end of the last character
		w.take(p.text[p.off])
		p.off++
	}
	for p.more() && p.text[p.off]&0xC0 == 0x80 {
		w.take(p.text[p.off])
		p.off++
	}
	name := typeText
	if l.Type != typeText {
		name = "json"
	}
	out := map[string]any{name: string(w.buf), "offset": float64(from), "of": float64(l.Chars)}
	if l.Truncated {
		out["truncated"], out["whole_bytes"] = true, float64(l.WholeBytes)
	}
	return next(out, to, l.Chars), p.failed
}

// next adds the offset of the next part, if there is one.
func next(out map[string]any, to, of int) map[string]any {
	if to < of {
		out["next_offset"] = float64(to)
	}
	return out
}

// at returns a part of the current value, or of a slice of it.
func (v View) at(p *pieces, s slice) (any, *Failure) {
	c, ok := p.peek()
	if !ok {
		return nil, p.ended()
	}
	switch {
	case c == '[':
		p.off++
		w := window{from: s.from + v.Offset, to: s.to}
		if v.Limit > 0 {
			w.to = min(w.to, w.from+v.Limit)
		}
		return v.listed(p, w, 0, s.from, s.to, false)
	case s.sliced:
		return nil, pathFailed("what the path has before its last [from:to] is no list")
	case c == '"':
		p.off++
		w := &capture{from: v.Offset, to: v.Offset + v.MaxChars}
		if v.Limit > 0 {
			w.to = min(w.to, v.Offset+v.Limit)
		}
		p.string(w)
		if p.failed != nil {
			return nil, p.failed
		}
		var text string
		if err := json.Unmarshal(append(append([]byte{'"'}, w.buf...), '"'), &text); err != nil {
			return nil, p.ended()
		}
		from := min(v.Offset, w.seen)
		out := map[string]any{typeText: text, "offset": float64(from), "of": float64(w.seen)}
		return next(out, min(w.to, w.seen), w.seen), nil
	}
	w := &capture{from: v.Offset, to: v.Offset + v.MaxChars}
	if v.Limit > 0 {
		w.to = min(w.to, v.Offset+v.Limit)
	}
	p.value(w)
	if p.failed != nil {
		return nil, p.failed
	}
	if v.Offset == 0 && v.Limit == 0 && w.seen <= w.to && len(w.buf) <= v.MaxChars { // as View.of decides
		value, f := p.plain(w.buf)
		if f != nil {
			return nil, f
		}
		return map[string]any{"value": value}, nil
	}
	out := map[string]any{"json": string(w.buf), "offset": float64(min(v.Offset, w.seen)), "of": float64(w.seen)}
	return next(out, min(w.to, w.seen), w.seen), nil
}

// window are items of a list.
type window struct{ from, to int }

// listed returns items of a list, as many as have room. The pieces are read up to item at, or to the end of the list. offset and
// of count the items from base up to end; known is set if the list has end items.
func (v View) listed(p *pieces, w window, at, base, end int, known bool) (any, *Failure) {
	items, size, full := []any{}, 0, false
	out := map[string]any{}
	to := w.from
	for at < end && !(known && (full || at >= w.to)) {
		c, ok := p.peek()
		if !ok {
			return nil, p.ended()
		}
		if c == ']' {
			break
		}
		if c == ',' {
			p.off++
			continue
		}
		if at < w.from || at >= w.to || full {
			p.value(nil)
			at++
			continue
		}
		at++
		item := &capture{to: v.MaxChars}
		bytes := p.value(item)
		if size += bytes + 1; size <= v.MaxChars {
			value, f := p.plain(item.buf)
			if f != nil {
				return nil, f
			}
			items = append(items, value)
			to++
			continue
		}
		if full = true; len(items) == 0 {
			out["item_beginning"], out["item_bytes"] = jsonvalue.FirstUnits(string(item.buf), v.MaxChars), float64(bytes)
			out["note"] = "This item is too long to be read at once. Pick a part of it with path."
			to++
		}
	}
	if p.failed != nil {
		return nil, p.failed
	}
	if !known {
		end = at
	}
	of := max(end-base, 0)
	from := min(max(w.from-base, 0), of)
	if out["item_bytes"] == nil {
		out["items"] = items
	}
	out["offset"], out["of"] = float64(from), float64(of)
	return next(out, max(min(to-base, of), from), of), nil
}

// pieces reads a large result, from a position on.
type pieces struct {
	ref    string
	l      *Large
	read   func(i int) (string, *Failure)
	next   int
	text   string
	off    int
	failed *Failure
}

// seek goes to an offset in a piece.
func (p *pieces) seek(piece, off int) {
	p.text, p.off, p.next = "", 0, piece
	if p.more() {
		p.off = min(off, len(p.text))
	}
}

// more reports whether there is a byte, text[off].
func (p *pieces) more() bool {
	for p.off >= len(p.text) {
		if p.failed != nil || p.next >= len(p.l.Pieces) {
			return false
		}
		text, f := p.read(p.next)
		if f == nil && hashOf(text) != p.l.Pieces[p.next].Hash {
			f = failureFrom(damaged(p.ref, p.next))
		}
		if f != nil {
			p.failed, p.text, p.off = f, "", 0
			return false
		}
		p.text, p.off = text, 0
		p.next++
	}
	return true
}

func (p *pieces) peek() (byte, bool) {
	if !p.more() {
		return 0, false
	}
	return p.text[p.off], true
}

// ended is the failure of a text that ends too early.
func (p *pieces) ended() *Failure {
	if p.failed != nil {
		return p.failed
	}
	return failureFrom(damaged(p.ref, max(p.next-1, 0)))
}

// capture keeps the characters of a window, and counts all. With a zero to it only counts.
type capture struct {
	from, to, seen int
	buf            []byte
}

// take takes a byte of UTF-8.
func (w *capture) take(c byte) {
	if c&0xC0 != 0x80 {
		w.seen++
	}
	if w.seen > w.from && w.seen <= w.to {
		w.buf = append(w.buf, c)
	}
}

// string advances behind the end of a string whose first quote has been read. An escape is one character.
func (p *pieces) string(w *capture) {
	escape := 0 // bytes left of it
	for p.more() {
		c := p.text[p.off]
		p.off++
		if escape == 0 && c == '"' {
			return
		}
		switch {
		case escape == 0 && c == '\\':
			w.take(c)
			escape = -1
			continue
		case escape == -1 && c == 'u':
			escape = 4
		case escape == -1:
			escape = 0
		case escape > 0:
			escape--
		default:
			w.take(c)
			continue
		}
		if w.seen > w.from && w.seen <= w.to {
			w.buf = append(w.buf, c)
		}
	}
	p.failed = p.ended()
}

// value goes behind the end of a value and returns its size. w may be nil.
func (p *pieces) value(w *capture) (bytes int) {
	depth, quoted, escaped := 0, false, false
	for p.more() {
		c := p.text[p.off]
		if depth == 0 && !quoted && bytes > 0 && (c == ',' || c == ']' || c == '}') {
			return bytes // behind a number, true, false or null
		}
		p.off++
		bytes++
		if w != nil {
			w.take(c)
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			if c == '"' {
				if quoted = false; depth == 0 {
					return bytes
				}
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return bytes
			}
		}
	}
	return bytes
}

// decode returns the current value, or a slice of it, for jq.
func (p *pieces) decode(l *Large, s slice) (any, *Failure) {
	tooLarge := &Failure{
		Code:    ResultTooLargeForJQ,
		Message: problem.Format("jq reads up to %d bytes, and this is more: pick a part of it with path, such as .items[100:120]", maxJQBytes),
	}
	if l.Type == typeText {
		if l.Bytes > maxJQBytes {
			return nil, tooLarge
		}
		var all strings.Builder
		for p.more() {
			all.WriteString(p.text[p.off:])
			p.off = len(p.text)
		}
		return all.String(), p.failed
	}
	if !s.sliced {
		w := &capture{to: maxJQBytes + 1}
		if bytes := p.value(w); bytes > maxJQBytes && p.failed == nil {
			return nil, tooLarge
		}
		return p.plain(w.buf)
	}
	part, f := View{Offset: 0, MaxChars: maxJQBytes}.at(p, s)
	if f != nil {
		return nil, f
	}
	out := part.(map[string]any)
	if _, more := out["next_offset"]; more || out["items"] == nil {
		return nil, tooLarge
	}
	return out["items"], nil
}

func (p *pieces) plain(text []byte) (any, *Failure) {
	if p.failed != nil {
		return nil, p.failed
	}
	value, err := jsonvalue.Decode(text)
	if err != nil {
		return nil, p.ended()
	}
	return value, nil
}

// slice is a part of a list.
type slice struct {
	from, to int
	sliced   bool
}

// pathStep is one part of a path: a field, an item, or a slice at the end.
type pathStep struct {
	name   string
	index  int
	member bool
	slice  slice
}

// parsePath reads a path such as .items[100:120] or ["a b"][3].name.
func parsePath(path string) (steps []pathStep, wrong string) {
	form := problem.Format("the path %q cannot be read: use members, items and a last slice, as in .items[100:120] or [\"a b\"][3].name", problem.Clip(path, problem.MaxQuoted))
	rest := strings.TrimSpace(path)
	if rest == "." {
		rest = ""
	}
	for rest != "" {
		if n := len(steps); n > 0 && steps[n-1].slice.sliced || n == maxPathSteps {
			return nil, form
		}
		if rest[0] == '.' && len(rest) > 1 && rest[1] == '[' {
			rest = rest[1:]
		}
		var s pathStep
		var ok bool
		switch {
		case strings.HasPrefix(rest, `."`) || strings.HasPrefix(rest, `["`):
			quoted, err := quotedPrefix(rest[1:])
			if err != nil {
				return nil, form
			}
			bracket := rest[0] == '['
			rest = rest[1+len(quoted):]
			if bracket {
				if rest, ok = strings.CutPrefix(rest, "]"); !ok {
					return nil, form
				}
			}
			if json.Unmarshal([]byte(quoted), &s.name) != nil {
				return nil, form
			}
			s.member = true
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if s.name, s.member, rest = rest[1:1+end], true, rest[1+end:]; s.name == "" {
				return nil, form
			}
		case rest[0] == '[':
			inner, after, closed := strings.Cut(rest[1:], "]")
			from, to, sliced := strings.Cut(inner, ":")
			if rest = after; !closed {
				return nil, form
			}
			s.slice = slice{to: maxCount, sliced: sliced}
			if s.index, ok = pathNumber(from, sliced); !ok {
				return nil, form
			}
			if s.slice.from = s.index; sliced && to != "" {
				if s.slice.to, ok = pathNumber(to, false); !ok {
					return nil, form
				}
			}
		default:
			return nil, form
		}
		steps = append(steps, s)
	}
	return steps, ""
}

const maxPathSteps = 100

// quotedPrefix returns the JSON string that a text begins with.
func quotedPrefix(text string) (string, error) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1], nil
		}
	}
	return "", strconv.ErrSyntax
}

func pathNumber(text string, empty bool) (int, bool) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, empty
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= 0 && n <= maxCount
}

func pathFailed(why string) *Failure { return &Failure{Code: problem.ExpressionFailed, Message: why} }

// follow goes to the value of a path.
func (p *pieces) follow(steps []pathStep) (slice, *Failure) {
	for i, s := range steps {
		if s.slice.sliced {
			return s.slice, nil
		}
		if !p.enter(&s) {
			if p.failed != nil {
				return slice{}, p.failed
			}
			return slice{}, pathFailed(problem.Format("part %d of the path leads to nothing", i+1))
		}
	}
	return slice{to: maxCount}, nil
}

// enter moves to a field or an item of the current value.
func (p *pieces) enter(s *pathStep) bool {
	open, ok := p.peek()
	if !ok || s.member && open != '{' || !s.member && open != '[' {
		return false
	}
	p.off++
	for n := 0; ; n++ {
		c, ok := p.peek()
		if ok && c == ',' {
			p.off++
			c, ok = p.peek()
		}
		if !ok || c == '}' || c == ']' {
			return false
		}
		if !s.member {
			if n == s.index {
				return true
			}
			p.value(nil)
			continue
		}
		w := &capture{to: 4*len(s.name) + 8}
		p.value(w)
		var name string
		found := json.Unmarshal(w.buf, &name) == nil && name == s.name
		if c, ok := p.peek(); !ok || c != ':' {
			return false
		}
		p.off++
		if found {
			return true
		}
		p.value(nil)
	}
}
