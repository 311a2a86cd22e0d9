package picture

import (
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/timeline"
)

// Entry is an entry of the list that says the same as a drawing, for readers that cannot see it.
type Entry struct {
	// Node is the id of a node, "" for a branch.
	Node string
	// Text is the line of the node as Text writes it, without its outcome, or the name of the branch.
	Text string
	// State and Facts are the outcome of the node in a run: "done" and "done, 2 visits, 3s"; "" if it was not visited.
	State State
	Facts string
	// Inside are the branches of a parallel block, and the nodes of a branch.
	Inside []Entry
}

// List returns the nodes of a definition, or of a run of it, in the order of a run; those of branches are inside their
// block. run is nil for a definition alone.
func List(p *definition.Program, run *timeline.Run) []Entry {
	l := lister{p: p, passed: passagesOf(run), seen: map[*definition.Node]bool{}}
	list := l.from(p.Entry, nil)
	for _, n := range p.Nodes {
		list = append(list, l.from(n, nil)...)
	}
	return list
}

type lister struct {
	p      *definition.Program
	passed passages
	seen   map[*definition.Node]bool
}

// from lists a node and all that follow it, but for those that were listed and those of stop.
func (l *lister) from(first *definition.Node, stop map[*definition.Node]bool) (list []Entry) {
	queue := []*definition.Node{first}
	for i := 0; i < len(queue); i++ {
		n := queue[i]
		if l.seen[n] || stop[n] {
			continue
		}
		l.seen[n] = true
		e := Entry{Node: n.ID, Text: clean(line(n)), State: l.passed.nodes[n.ID].state, Facts: l.passed.facts(n.ID)}
		if n.Parallel != nil {
			join := map[*definition.Node]bool{n.Next: true}
			for s := range stop {
				join[s] = true
			}
			for _, b := range n.Parallel.Branches {
				e.Inside = append(e.Inside, Entry{Text: clean(b.Name), Inside: l.from(b.Entry, join)})
			}
		}
		list = append(list, e)
		queue = append(queue, l.p.Targets(n)...)
	}
	return list
}
