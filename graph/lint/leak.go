package lint

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The state of a subworkflow comes back whole and is merged by the reducers of its parent, as the protocol has it. The output of its end is
// its result, which only a map collects.

// writesOf returns the fields of the state that a node is known to write.
func (l *linter) writesOf(n *definition.Node) []string {
	var names []string
	for _, w := range writtenKeys(n) {
		names = append(names, w.key)
	}
	if n.Map != nil {
		return names
	}
	switch t := n.Type.Info(); {
	case t.Output == definition.OutputDeclared && n.Config[t.Schema] != nil:
		names = append(names, schemaShape(n.Config[t.Schema]).names()...)
	case n.Subworkflow != nil:
		if c := l.child(n); c != nil {
			names = append(names, c.writes...)
		}
	}
	return names
}

// leaks warns of subworkflows whose state overwrites the parent's state, probably by mistake.
func (l *linter) leaks() {
	for _, n := range l.program.Nodes {
		if n.Subworkflow == nil || n.Map != nil {
			continue
		}
		c := l.child(n)
		if c == nil {
			continue
		}
		at := nodePointer(n) + "/config"
		if r := c.result; c.mapped && r.kinds == object && r.rest == nil && !r.unsure {
			private := slices.DeleteFunc(slices.Clone(c.writes), func(name string) bool { return r.members[name] != nil })
			if len(private) > 0 {
				l.warn(problem.SubworkflowStateLeaks, at+"/workflow_ref", n,
					fmt.Sprintf("the whole state of %q is merged into this run, not only the output_mapping of its end: also %s", clip(c.name), quoted(private)),
					"rename these fields in one of the two states, or run the subworkflow in a map, where it returns only its result")
			}
		}
		if declared := l.state.declared; declared.rest == nil {
			unknown := slices.DeleteFunc(slices.Clone(c.writes), func(name string) bool { return declared.members[name] != nil })
			if len(unknown) > 0 {
				l.warn(problem.SubworkflowStateLeaks, at+"/workflow_ref", n,
					fmt.Sprintf("the state of %q is merged into this run with %s, which state_schema does not allow", clip(c.name), quoted(unknown)),
					"declare these fields, or run the subworkflow in a map, where it returns only its result")
			}
		}
		mapping, _ := n.Config["input_mapping"].(map[string]any)
		for _, name := range jsonvalue.Keys(mapping) {
			if l.state.reducers[name] == definition.ReducerAppend {
				l.warn(problem.SubworkflowStateLeaks, at+"/input_mapping/"+jsonvalue.EscapePointer(name), n,
					fmt.Sprintf("%q is given to %q and is merged back with its state: append then adds the elements a second time", clip(name), clip(c.name)),
					"give it under another name")
			}
		}
	}
}

// branches warns of fields that a subworkflow in one branch writes and another branch writes too. Branches without subworkflows are checked
// at in definition.Compile.
func (l *linter) branches() {
	for _, p := range l.program.Nodes {
		if p.Parallel == nil || p.Parallel.N < 2 {
			continue
		}
		first := map[string]*definition.Node{}
		of := map[string]int{}
		for i, b := range p.Parallel.Branches {
			for _, n := range l.within(p, b.Entry) {
				for _, name := range l.writesOf(n) {
					before, again := first[name]
					_, reduced := l.state.reducers[name]
					switch {
					case reduced:
					case !again:
						first[name], of[name] = n, i
					case of[name] != i && (before.Subworkflow != nil && before.Map == nil || n.Subworkflow != nil && n.Map == nil):
						l.warn(problem.ParallelOverwrite, nodePointer(n), n, fmt.Sprintf(
							"the branches %q and %q of the parallel node %q both write %q, which has no reducer: at the join the later value replaces the value of %q",
							clip(p.Parallel.Branches[of[name]].Name), clip(b.Name), clip(p.ID), clip(name), clip(before.ID)),
							"run the subworkflows in a map, which collects a result of each, or let them write different fields")
					}
				}
			}
		}
	}
}

// within are the nodes of a branch.
func (l *linter) within(p, entry *definition.Node) []*definition.Node {
	seen := map[*definition.Node]bool{p: true, p.Next: true}
	var list []*definition.Node
	for queue := []*definition.Node{entry}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if n == nil || seen[n] || n.End != nil || l.budget <= 0 {
			continue
		}
		l.budget--
		seen[n] = true
		list = append(list, n)
		queue = append(queue, l.program.Targets(n)...)
	}
	return list
}
