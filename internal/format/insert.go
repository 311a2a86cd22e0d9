package format

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// insert puts comments and empty lines into a text without any, which was written from a tree to whose values they belong.
func insert(tree *yaml.Node, n notes, text []byte) ([]byte, error) {
	root, err := read(text)
	if err != nil {
		return nil, err
	}
	in := insertion{layout: newLayout(text, root), notes: n, at: map[int]*place{}}
	if head := n.head[tree]; len(head) > 0 { // only members and elements have a place for one
		return nil, lost(head[0])
	}
	if err := in.walk(tree, root); err != nil {
		return nil, err
	}
	out := in.write()
	final, err := read(out)
	if err != nil {
		return nil, err
	}
	after, err := newLayout(out, final).notes()
	if err != nil {
		return nil, err
	}
	return out, kept(tree, n, final, after)
}

// insertion is a text with what to put into it, by line.
type insertion struct {
	*layout
	notes notes
	at    map[int]*place
}

// place is what comes to a line of a text.
type place struct {
	foot, head []comment
	margins    []int // of foot
	part       bool  // an empty line parts foot from what follows
	apart      bool  // an empty line stands before the line itself
	margin     int   // of head
	trail      string
	splits     map[int]*split
}

// split breaks a line at the first part of a block behind a dash.
type split struct {
	trail string
	lines []comment
}

func (in *insertion) place(line int) *place {
	if in.at[line] == nil {
		in.at[line] = &place{splits: map[int]*split{}}
	}
	return in.at[line]
}

func (in *insertion) split(p *part) *split {
	splits := in.place(in.line(p.begin)).splits
	if splits[p.begin] == nil {
		splits[p.begin] = &split{}
	}
	return splits[p.begin]
}

// walk notes the comments of a value of the tree at the same value of the text.
func (in *insertion) walk(was, is *yaml.Node) error {
	if len(was.Content) != len(is.Content) || was.Kind != is.Kind {
		return errors.New("the text has another structure")
	}
	p := in.of[is]
	if c, ok := in.notes.trail[was]; ok {
		if err := in.trail(c, p); err != nil {
			return err
		}
	}
	flow := len(is.Content) == 0 || p.flow()
	step := 1
	if is.Kind == yaml.MappingNode {
		step = 2
	}
	for i := 0; i < len(is.Content); i += step {
		x, y := was.Content[i], is.Content[i]
		head, apart := slices.Clone(in.notes.head[x]), in.notes.apart[x]
		if top := in.notes.top[was]; i == 0 && len(top) > 0 {
			if len(head) > 0 {
				head[0].apart = true
			} else {
				apart = true
			}
			head = slices.Concat(top, head)
		}
		foot := in.notes.foot[x]
		if list := slices.Concat(head, foot); flow && len(list) > 0 {
			return lost(list[0])
		}
		if !flow {
			in.head(in.of[y], head, apart)
		}
		if err := in.walk(was.Content[i+step-1], is.Content[i+step-1]); err != nil {
			return err
		}
		in.foot(foot, is.Content[i+step-1], in.margin(p), i+step < len(is.Content))
	}
	end := in.notes.end[was]
	if flow && len(end) > 0 {
		return lost(end[0])
	}
	in.foot(end, is, in.margin(p), false)
	return nil
}

// head notes what comes before a member or an element.
func (in *insertion) head(p *part, comments []comment, apart bool) {
	line := in.line(p.begin)
	if len(bytes.TrimSpace(in.text[in.lines[line]:p.begin])) == 0 {
		at := in.place(line)
		at.head, at.margin, at.apart = comments, in.column(p.begin), apart
		return
	}
	if len(comments) > 0 {
		in.split(p).lines = comments
	}
}

// foot notes what comes behind a value.
func (in *insertion) foot(comments []comment, last *yaml.Node, margin int, part bool) {
	if len(comments) == 0 {
		return
	}
	for len(last.Content) > 0 {
		last = last.Content[len(last.Content)-1]
	}
	i := in.of[last].order
	line := len(in.lines)
	if i+1 < len(in.parts) {
		line = in.line(in.parts[i+1].begin)
	} else if len(in.text) == in.lines[line-1] {
		line-- // the text ends with the end of a line
	}
	at := in.place(line)
	for range comments {
		at.margins = append(at.margins, margin)
	}
	at.foot, at.part = append(at.foot, comments...), part
}

// trail notes what stands on the line of a value.
func (in *insertion) trail(c comment, p *part) error {
	at := p.start
	switch {
	case p.end > 0:
		at = p.end - 1
	case len(p.node.Content) == 0 || p.flow() || in.text[at] == '&' || in.text[at] == '!':
	case p.parent == nil:
		return lost(c)
	case p.parent.node.Kind == yaml.MappingNode:
		at = in.of[p.parent.node.Content[p.index-1]].start
	default:
		in.split(in.of[p.node.Content[0]]).trail = c.text
		return nil
	}
	place := in.place(in.line(at))
	if place.trail != "" {
		return lost(c)
	}
	place.trail = c.text
	return nil
}

// write returns the text with all that has been noted.
func (in *insertion) write() []byte {
	var out []byte
	empty := true  // none at the beginning, and never two
	keeps := false // an empty line would belong to the text value before it
	newline := func() {
		if !empty && !keeps {
			out, empty = append(out, '\n'), true
		}
	}
	own := func(c comment, margin int) {
		out = append(append(append(out, strings.Repeat(" ", max(margin, 0))...), c.text...), '\n')
		empty, keeps = false, false
	}
	for line := range len(in.lines) + 1 {
		at := in.at[line]
		if at == nil {
			at = &place{}
		}
		keeps = in.keeps[line]
		for i, c := range at.foot {
			if c.apart {
				newline()
			}
			own(c, at.margins[i])
		}
		if at.part {
			newline()
		}
		for _, c := range at.head {
			if c.apart {
				newline()
			}
			own(c, at.margin)
		}
		if at.apart {
			newline()
		}
		if line == len(in.lines) {
			break
		}
		from, to := in.lines[line], len(in.text)
		if line+1 < len(in.lines) {
			to = in.lines[line+1]
		}
		if from == to {
			continue
		}
		for _, behind := range slices.Sorted(maps.Keys(at.splits)) {
			s, margin := at.splits[behind], in.column(behind)
			out = append(out, bytes.TrimRight(in.text[from:behind], " ")...)
			if s.trail != "" {
				out = append(append(out, ' '), s.trail...)
			}
			out = append(out, '\n')
			for _, c := range s.lines {
				own(c, margin)
			}
			out = append(out, strings.Repeat(" ", margin)...)
			from = behind
		}
		end := in.lineEnd(from)
		out = append(out, in.text[from:end]...)
		if at.trail != "" {
			out = append(append(out, ' '), at.trail...)
		}
		out = append(out, in.text[end:to]...)
		empty = len(bytes.TrimSpace(in.text[from:to])) == 0
	}
	return out
}
