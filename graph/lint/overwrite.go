package lint

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// branchWrite is a key of the state that a node on a branch sets.
type branchWrite struct {
	written
	node   *definition.Node
	branch int
	// literal is set if the value is always the same.
	literal *definition.Assignment
}

// overwrites warns of branches that set the same key of the state. Without a reducer the join keeps the value of one branch and loses the
// others. Only keys that the definition names are known: those of assignments, of counters, and of an llm_call's output_schema. It reports
// each key once, at the later branch. Branches may share nodes, so its steps are bounded; beyond the bound there are no warnings.
func (l *linter) overwrites() {
	if l.program.Incomplete || l.program.State == nil {
		return
	}
	steps := maxSteps
	for _, p := range l.program.Nodes {
		if p.Parallel != nil && p.Parallel.N > 1 { // with 1 the changes of a single branch are kept
			l.overwritesIn(p, &steps)
		}
	}
}

// maxSteps bounds how many nodes and keys all walks over branches visit together.
const maxSteps = 1_000_000

func (l *linter) overwritesIn(p *definition.Node, steps *int) {
	first, reported := map[string]branchWrite{}, map[string]bool{}
	for i, b := range p.Parallel.Branches {
		seen := map[*definition.Node]bool{nil: true, p: true, p.Next: true, b.Entry: true}
		for queue := []*definition.Node{b.Entry}; len(queue) > 0; queue = queue[1:] {
			n := queue[0]
			if n == nil || n == p || n == p.Next {
				continue
			}
			if *steps--; *steps >= 0 && n.End == nil {
				for _, next := range l.program.Targets(n) {
					if !seen[next] && (n.Compensation == nil || next != n.Compensation.Node) {
						seen[next] = true
						queue = append(queue, next)
					}
				}
			}
			for _, w := range l.branchWrites(n) {
				if *steps--; *steps < 0 {
					return
				}
				w.branch = i
				before, again := first[w.key]
				_, reduced := l.program.State.Reducers[w.key]
				switch {
				case reduced || reported[w.key]:
				case !again:
					first[w.key] = w
				case before.branch != i && !sameLiteral(before, w):
					reported[w.key] = true
					l.overwritten(p, before, w)
				}
			}
		}
	}
}

// branchWrites lists the keys that a node is known to set.
func (l *linter) branchWrites(n *definition.Node) []branchWrite {
	var out []branchWrite
	add := func(pointer, key string, literal *definition.Assignment) {
		out = append(out, branchWrite{written: written{nodePointer(n) + pointer, key}, node: n, literal: literal})
	}
	switch {
	case n.SetState != nil:
		for i := range n.SetState.Assignments {
			a := &n.SetState.Assignments[i]
			literal := a
			if a.JQ != nil {
				literal = nil
			}
			add("/config/assignments/"+jsonvalue.EscapePointer(a.Key), a.Key, literal)
		}
	case n.Loop != nil && n.Loop.Counter != "":
		add("/loop/counter", n.Loop.Counter, nil)
	case n.Activity != nil && n.Activity.OutputSchema != nil:
		schema, _ := n.Config["output_schema"].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range jsonvalue.Keys(properties) {
			add("/config/output_schema/properties/"+jsonvalue.EscapePointer(name), name, nil)
		}
	}
	return out
}

// sameLiteral reports whether two values are the same, so that it does not matter which of them is kept.
func sameLiteral(a, b branchWrite) bool {
	return a.literal != nil && b.literal != nil && jsonvalue.Equal(a.literal.Literal, b.literal.Literal)
}

func (l *linter) overwritten(p *definition.Node, before, after branchWrite) {
	branches := p.Parallel.Branches
	l.warn(problem.ParallelOverwrite, after.pointer, after.node,
		fmt.Sprintf("branches %q and %q of parallel node %q both set %q, which has no reducer: at the join the later value replaces the one that %q sets",
			clip(branches[before.branch].Name), clip(branches[after.branch].Name), clip(p.ID), clip(after.key), clip(before.node.ID)),
		fmt.Sprintf(`set a different key in each branch, or write "reducer": "append" or "merge" at /state_schema/properties/%s ("overwrite" to keep the last value)`,
			clip(jsonvalue.EscapePointer(after.key))))
}
