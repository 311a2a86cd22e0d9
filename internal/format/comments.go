package format

import (
	"bytes"
	"fmt"
	"sort"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// notes say to what the comments of a text belong. A member is known by its key, an element by its value.
type notes struct {
	// head stands before a member or element, foot behind it.
	head, foot map[*yaml.Node][]comment
	// top stands at the beginning of a collection, apart from its first part; end behind its last part.
	top, end map[*yaml.Node][]comment
	// trail stands on the line of a value, or on that before a block.
	trail map[*yaml.Node]comment
	apart map[*yaml.Node]bool // an empty line stands before the member or element
	block map[*yaml.Node]bool // flow collections with comments within, which only a block has room for
}

// notes attaches each comment to what it belongs to, by its indentation and by the empty lines around it.
func (l *layout) notes() (notes, error) {
	n := notes{
		map[*yaml.Node][]comment{}, map[*yaml.Node][]comment{}, map[*yaml.Node][]comment{}, map[*yaml.Node][]comment{},
		map[*yaml.Node]comment{}, map[*yaml.Node]bool{}, map[*yaml.Node]bool{},
	}
	own := map[int]comment{}
	for _, c := range l.comments {
		for p := c.flow; p != nil; p = p.parent {
			if p.flow() && len(p.node.Content) > 0 {
				n.block[p.node] = true
			}
		}
		if c.own {
			own[c.line] = c
			continue
		}
		v := l.before(c)
		if _, twice := n.trail[v]; twice {
			return n, lost(c)
		}
		if v == l.parts[0].node && v.Kind != yaml.ScalarNode {
			n.top[v] = append(n.top[v], c)
			continue
		}
		n.trail[v] = c
	}
	g := gap{layout: l, notes: n}
	for line := range l.lines {
		c, comment := own[line]
		switch {
		case comment:
			c.apart = g.blank
			g.comments, g.blank = append(g.comments, c), false
		case l.empty(line, l.lineEnd(l.lines[line])):
			g.blank = g.blank || len(bytes.TrimSpace(l.text[l.lines[line]:l.lineEnd(l.lines[line])])) == 0
		default:
			g.close(line)
		}
	}
	g.close(len(l.lines))
	return n, nil
}

// before returns the value on whose line a comment stands.
func (l *layout) before(c comment) *yaml.Node {
	at := c.after
	if c.flow != nil && l.text[at] == ',' {
		for at > 0 && (l.text[at] == ',' || blank(l.text[at])) {
			at--
		}
	}
	if p := l.closed[at+1]; p != nil {
		return p.node
	}
	i := sort.Search(len(l.parts), func(i int) bool { return l.parts[i].begin > at }) - 1
	for ; i > 0 && l.parts[i].start > at; i-- {
		if l.parts[i].begin == at {
			return l.parts[i].node // behind the dash of an element
		}
	}
	p := l.parts[max(i, 0)]
	if p.starts() && p.parent.node.Kind == yaml.MappingNode {
		return p.parent.node.Content[p.index+1]
	}
	return p.node
}

// gap is what stands between two lines of content.
type gap struct {
	*layout
	notes    notes
	comments []comment
	blank    bool // the gap ends with an empty line
	next     int  // the first part that does not begin before the gap
}

// close attaches the comments of a gap that ends with a line, and begins another one.
func (g *gap) close(line int) {
	comments, blank := g.comments, g.blank
	g.comments, g.blank = nil, false
	from, to := len(g.text)+1, len(g.text)+1
	if line < len(g.lines) {
		from = g.lines[line]
	}
	if line+1 < len(g.lines) {
		to = g.lines[line+1]
	}
	for g.next < len(g.parts) && g.parts[g.next].begin < from {
		g.next++
	}
	var follows, value *part
	for i := g.next; i < len(g.parts) && g.parts[i].begin < to && follows == nil; i++ {
		if value == nil {
			value = g.parts[i]
		}
		if g.parts[i].starts() {
			follows = g.parts[i]
		}
	}
	if follows != nil {
		g.notes.apart[follows.node] = blank
	}
	if len(comments) == 0 {
		return
	}
	if follows != nil && follows.begin != value.begin {
		follows = nil // it is within a value that begins the line
	}
	if flow := comments[0].flow; flow != nil {
		if follows != nil && follows.start < flow.end {
			g.notes.head[follows.node] = append(g.notes.head[follows.node], comments...)
		} else {
			g.notes.end[flow.node] = append(g.notes.end[flow.node], comments...)
		}
		return
	}
	if follows == nil && value != nil {
		if follows = value; !value.starts() && value.parent != nil {
			follows = g.of[value.parent.node.Content[value.index-1]]
		}
		g.notes.head[follows.node] = append(g.notes.head[follows.node], comments...)
		return
	}
	g.attach(g.ends(comments, follows), blank, follows)
}

// ends attaches the comments that stand further right than what follows to the collections that end there, and returns the others.
func (g *gap) ends(comments []comment, follows *part) []comment {
	column := -1
	within := map[*part]bool{}
	if follows != nil {
		column = g.column(follows.begin)
		for p := follows.parent; p != nil; p = p.parent {
			within[p] = true
		}
	}
	ending := g.parts[0]
	if g.next > 0 {
		ending = g.parts[g.next-1]
	}
	for len(comments) > 0 && comments[0].column > column {
		for ending.parent != nil && (len(ending.node.Content) == 0 || ending.flow() || g.margin(ending) > comments[0].column) {
			ending = ending.parent
		}
		if within[ending] {
			break
		}
		g.notes.end[ending.node] = append(g.notes.end[ending.node], comments[0])
		comments = comments[1:]
	}
	return comments
}

// attach attaches comments to what follows, or to what is before it if an empty line parts them from what follows only.
func (g *gap) attach(comments []comment, blank bool, follows *part) {
	if len(comments) == 0 {
		return
	}
	paragraph := 1 // the length of the first one
	for paragraph < len(comments) && !comments[paragraph].apart {
		paragraph++
	}
	first := follows.index == 0
	switch {
	case first:
		n := len(comments) // those that an empty line parts from the first member
		if !blank {
			for n--; n > 0 && !comments[n].apart; n-- {
			}
		}
		g.notes.top[follows.parent.node] = append(g.notes.top[follows.parent.node], comments[:n]...)
		comments = comments[n:]
	case !comments[0].apart && (paragraph < len(comments) || blank):
		x := follows.parent.node.Content[follows.index-1]
		if follows.parent.node.Kind == yaml.MappingNode {
			x = follows.parent.node.Content[follows.index-2]
		}
		g.notes.foot[x] = append(g.notes.foot[x], comments[:paragraph]...)
		comments = comments[paragraph:]
	}
	g.notes.head[follows.node] = append(g.notes.head[follows.node], comments...)
}

// lost is the error of a comment for which the usual form has no place.
func lost(c comment) error {
	return problem.New(problem.Unsupported, "the definition cannot be formatted: the comment %q on line %d would be lost", problem.Excerpt(c.text, 60), c.line+1).
		WithHint("Put the comment on a line of its own, before a member or an element of a list.")
}

// kept says which comment of a text stands elsewhere in its form, or not at all.
func kept(was *yaml.Node, before notes, is *yaml.Node, after notes) error {
	found := map[string]int{}
	for key := range belonging(is, after) {
		found[key]++
	}
	for key, c := range belonging(was, before) {
		if found[key] == 0 {
			return lost(c)
		}
	}
	return nil
}

// belonging lists the comments of a text by what they belong to. What is in front of a collection's first part belongs to that, and what
// is behind its last part to the collection: the order of the parts changes.
func belonging(root *yaml.Node, n notes) map[string]comment {
	all := map[string]comment{}
	note := func(path, kind string, list ...comment) {
		for _, c := range list {
			key := path + kind
			for i := 0; ; i++ {
				unique := fmt.Sprint(key, " ", i)
				if _, taken := all[unique+" "+c.text]; !taken {
					all[unique+" "+c.text] = c
					break
				}
			}
		}
	}
	var walk func(v *yaml.Node, path string)
	walk = func(v *yaml.Node, path string) {
		if c, ok := n.trail[v]; ok {
			note(path, "trail", c)
		}
		if len(v.Content) == 0 {
			note(path, "end", n.end[v]...)
			return
		}
		step := 1
		if v.Kind == yaml.MappingNode {
			step = 2
		}
		note(path+"/0", "head", n.top[v]...)
		for i := 0; i < len(v.Content); i += step {
			p := fmt.Sprint(path, "/", i)
			note(p, "head", n.head[v.Content[i]]...)
			if i+step == len(v.Content) {
				note(path, "end", n.foot[v.Content[i]]...)
			} else {
				note(p, "foot", n.foot[v.Content[i]]...)
			}
			walk(v.Content[i+step-1], p)
		}
		note(path, "end", n.end[v]...)
	}
	walk(root, "")
	return all
}
