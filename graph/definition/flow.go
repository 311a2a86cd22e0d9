package definition

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// checkFlow follows the ways of runs, and so decides which faults are errors: those that every run meets before it can
// complete. A fault that a run can avoid stays a warning.
func (c *compiler) checkFlow() {
	if c.lost.any() || c.broken || c.entry == nil || c.end == nil {
		// Where the graph cannot be followed, a fault that fails its node is an error.
		c.decideFaults(func(f fault) bool { return f.vertex.blocked })
		return
	}
	_, reached := walk([]*vertex{c.entry}, anywhere)
	leads := c.leadTo(func(v *vertex) bool { return v == c.end })
	if !c.danglingEdge {
		c.checkUnreachable(reached)
	}
	c.checkLoops(reached, leads)
	for _, v := range c.vertices {
		if v.node.Type == Parallel {
			c.decide(v)
		}
	}
	if c.canComplete() {
		c.decideFaults(fault.offTheGraph)
		return
	}
	_, blame := walk([]*vertex{c.entry}, blamed)
	c.decideFaults(func(f fault) bool {
		switch {
		case f.offTheGraph():
			return true
		case !blame[f.vertex]:
			// A wrong name may be all that keeps runs away from here.
			return c.danglingEdge && !reached[f.vertex] && f.branch < 0 && f.vertex.blocked
		case f.branch < 0:
			// A switch whose other targets lead back needs the one that does not exist.
			return f.vertex.blocked || f.finding.Code == problem.UnknownNode && !leads[f.vertex]
		}
		return f.vertex.passes == no && !f.vertex.completable[f.branch]
	})
	if !c.findings.HasErrors() {
		c.fail(problem.GraphNoEnd, c.end.json, c.end.at, c.end, "no run can reach the end node", "lead an edge or a switch to it")
	}
}

// offTheGraph reports an edge to nowhere on the part of a branch that every run through it takes: the protocol rejects
// such a document even where no run goes through the branch.
func (f fault) offTheGraph() bool {
	return f.vertex.forced && f.finding.Code == problem.UnknownNode && f.vertex.node.Type != Switch
}

// decideFaults turns faults into findings.
func (c *compiler) decideFaults(isError func(fault) bool) {
	for _, f := range c.faults {
		if c.options.Runnable || isError(f) {
			f.finding.Severity = problem.SeverityError
		}
		c.findings = append(c.findings, f.finding)
	}
	c.faults = nil
}

// everywhere returns the nodes that may come after a node, branches included.
func everywhere(v *vertex) []*vertex {
	if v.node.Type == Parallel {
		return slices.Concat(v.entries, mainPath(v))
	}
	return mainPath(v)
}

// mainPath returns the nodes that may come after a node, without the insides of blocks.
func mainPath(v *vertex) []*vertex {
	if v.node.Type == Switch {
		return v.targets
	}
	return append([]*vertex{v.next}, v.catches...)
}

// onward returns the nodes that a run may get to after a node, without the insides of blocks: only those that catch its failure if
// the node fails it.
func onward(v *vertex) []*vertex {
	switch {
	case !v.passable():
		return v.catches
	case v.node.Type == Switch:
		return v.ways
	}
	return append([]*vertex{v.next}, v.catches...)
}

// blamed returns the nodes that a run needs after a node: of a parallel node's branches only those whose failing fails
// the node.
func blamed(v *vertex) []*vertex {
	next := mainPath(v)
	if v.node.Type == Parallel && v.passes == no {
		for i, entry := range v.entries {
			if !v.completable[i] {
				next = append(next, entry)
			}
		}
	}
	return next
}

// passable reports whether a run that comes to the node may get past it.
func (v *vertex) passable() bool {
	return !v.blocked && (v.node.Type != Parallel || v.passes == yes)
}

// walk returns all nodes that can be reached, in a fixed order; nil stands for no node.
func walk(from []*vertex, next func(*vertex) []*vertex) ([]*vertex, map[*vertex]bool) {
	seen := map[*vertex]bool{}
	var order []*vertex
	add := func(list []*vertex) {
		for _, v := range list {
			if v != nil && !seen[v] {
				seen[v] = true
				order = append(order, v)
			}
		}
	}
	add(from)
	for i := 0; i < len(order); i++ {
		add(next(order[i]))
	}
	return order, seen
}

// leadTo returns the nodes that lead to one of the goals if nothing fails.
func (c *compiler) leadTo(isGoal func(*vertex) bool) map[*vertex]bool {
	var goals []*vertex
	before := make(map[*vertex][]*vertex, len(c.vertices))
	for _, v := range c.vertices {
		if isGoal(v) {
			goals = append(goals, v)
		}
		for _, to := range mainPath(v) {
			before[to] = append(before[to], v)
		}
	}
	_, leads := walk(goals, func(v *vertex) []*vertex { return before[v] })
	return leads
}

// checkUnreachable warns of nodes that no run visits, once for each group of them.
func (c *compiler) checkUnreachable(reached map[*vertex]bool) {
	behind := map[*vertex]bool{}
	for _, v := range c.vertices {
		if !reached[v] {
			for _, to := range anywhere(v) {
				if to != v {
					behind[to] = true
				}
			}
		}
	}
	reported := map[*vertex]bool{}
	for _, heads := range []bool{true, false} { // first those that nothing leads to, then loops
		for _, v := range c.vertices {
			if reached[v] || reported[v] || heads && behind[v] {
				continue
			}
			group, _ := walk([]*vertex{v}, anywhere)
			for _, other := range group {
				reported[other] = true
			}
			if v.node.Type == Start || v.node.Type == End {
				continue // the entry edge, or the missing way to the end, has a finding of its own
			}
			c.warn(problem.GraphUnreachable, v.json, v.at, v,
				fmt.Sprintf("no run reaches the node %q", clip(v.node.ID)), "lead an edge or a switch to it, or remove it")
		}
	}
}

// checkLoops reports loops that a run can enter and never leave (spec: definition, 8). It is an error if no run can do
// otherwise. Where a wrong name leads out of a loop, it has a finding of its own.
func (c *compiler) checkLoops(reached, leads map[*vertex]bool) {
	leaves := c.leadTo(func(v *vertex) bool { return v == c.end || v.astray })
	for _, loop := range components(c.vertices, func(v *vertex) bool { return reached[v] && !leaves[v] && !v.loops }) {
		first := loop[0]
		for _, v := range loop {
			if v.node.Index < first.node.Index {
				first = v
			}
		}
		message := fmt.Sprintf("a run that comes to %q loops for ever: no path leads from %s to the end node",
			clip(first.node.ID), loopNames(first, loop))
		if leads[c.entry] {
			c.warn(problem.GraphLoop, first.json, first.at, first, message, "leave the loop through a switch")
		} else {
			c.fail(problem.GraphLoop, first.json, first.at, first, message, "leave the loop through a switch")
		}
	}
}

func loopNames(first *vertex, loop []*vertex) string {
	if len(loop) == 1 {
		return "it"
	}
	var names []string
	for v, i := first, 0; i < min(len(loop), 4); i++ {
		names = append(names, fmt.Sprintf("%q", clip(v.node.ID)))
		if v = successorIn(v, loop); v == nil || v == first {
			break
		}
	}
	return strings.Join(names, ", ")
}

func successorIn(v *vertex, loop []*vertex) *vertex {
	for _, to := range mainPath(v) {
		for _, member := range loop {
			if member == to {
				return to
			}
		}
	}
	return nil
}

// canComplete reports whether some run can get from the entry to the end without meeting a fault that fails it.
func (c *compiler) canComplete() bool {
	_, reached := walk([]*vertex{c.entry}, onward)
	return reached[c.end] && c.end.passable()
}

// decide finds out whether enough branches of a parallel node can complete.
func (c *compiler) decide(p *vertex) {
	if p.passes != unknown {
		return
	}
	p.passes = deciding // a block inside its own branch does not complete by itself
	outside := func(v *vertex) bool { return v == p.next || v == p || v == c.end }
	inside, _ := walk(p.entries, func(v *vertex) []*vertex {
		if outside(v) || c.steps == 0 {
			return nil
		}
		c.steps--
		return mainPath(v)
	})
	before := map[*vertex][]*vertex{}
	for _, v := range inside {
		if outside(v) {
			continue
		}
		if v.node.Type == Parallel {
			c.decide(v)
		}
		for _, to := range onward(v) {
			before[to] = append(before[to], v)
		}
	}
	_, leads := walk([]*vertex{p.next}, func(v *vertex) []*vertex { return before[v] })
	complete := 0
	p.completable = make([]bool, len(p.entries))
	for i, entry := range p.entries {
		if leads[entry] || c.steps == 0 {
			p.completable[i] = true
			complete++
		}
	}
	p.passes = no
	if complete >= p.node.Parallel.N {
		p.passes = yes
	}
}
