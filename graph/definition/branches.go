package definition

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Branches are checked by following them (spec: definition, 7.1 and 14.1). The part of a branch before any choice must
// be whole, because the protocol rejects the document otherwise: it must not run into the end node, into a loop, or off
// the graph. Behind a switch everything depends on the choice, so there such mistakes are warnings. An interrupt is rejected
// on both sides of a switch.

// maxSteps bounds how many nodes all walks over branches visit together. Branches of one document may share their tails,
// so the walks could otherwise cost the square of its size.
const maxSteps = 1_000_000

func (c *compiler) checkBranches() {
	if c.lost.any() {
		return
	}
	reported := map[*vertex]bool{}
	for _, v := range c.vertices {
		if v.node.Type == Parallel && v.sound && len(v.out) > 0 {
			w := branchWalk{c: c, parallel: v, origin: map[*vertex]int{}, reported: reported}
			w.run()
		}
	}
	if c.steps == 0 {
		c.warn(problem.ParallelBranch, c.document.root.Get("nodes"), (*path)(nil).member("nodes"), nil,
			"the branches share so many nodes that not all of them could be checked", "give branches nodes of their own")
	}
	for _, v := range c.vertices {
		if v.node.Type == Switch && !v.inBranch {
			for _, e := range v.out {
				c.warn(problem.GraphUnusedEdge, e.json, e.at, v,
					"this edge is never followed: a switch leads to the targets of its cases", "remove the edge")
			}
		}
	}
}

// branchWalk follows the branches of one parallel node.
type branchWalk struct {
	c        *compiler
	parallel *vertex
	// joins is where branches end; several only if the parallel node has several edges, which is an error.
	joins map[*vertex]bool
	// join is the only one of them, nil if there are several.
	join *vertex
	// origin returns the first branch that reached a node.
	origin map[*vertex]int
	order  []*vertex
	// outside are the nodes where following stopped: join targets, the end, the parallel node itself.
	outside []*vertex
	// links are the edges that were followed, backwards.
	links map[*vertex][]*vertex
	// broken is set when a branch has been reported as broken.
	broken bool
	// reported holds the interrupts that have been reported, for any parallel node.
	reported map[*vertex]bool
}

func (w *branchWalk) run() {
	p := w.parallel
	w.joins, w.links = map[*vertex]bool{}, map[*vertex][]*vertex{}
	for _, e := range p.out {
		if v := w.c.byID[e.target]; v != nil {
			w.joins[v], w.join = true, v
		}
	}
	if len(w.joins) > 1 {
		w.join = nil
	}
	if p.next == nil && len(p.out) == 1 {
		p.forced = true // the join target does not exist: no branch can be followed to it
		return
	}
	for i, entry := range p.entries {
		if entry != nil {
			w.arrive(nil, entry, i, true)
		}
	}
	choices := w.follow(0, true)
	forced := len(w.order)
	w.checkForcedLoops(forced)
	for _, v := range choices {
		for _, target := range v.chosen() {
			w.arrive(v, target, w.origin[v], false)
		}
	}
	w.follow(forced, false)
	w.checkInterrupts()
	w.checkCompletable()
}

// chosen returns the nodes that a run may continue to from here, and need not.
func (v *vertex) chosen() []*vertex {
	if v.node.Type == Switch {
		return v.targets
	}
	return v.catches
}

// follow continues from the nodes in order, from position i. In the forced part it returns the nodes where runs choose, and does not
// follow their choices.
func (w *branchWalk) follow(i int, forced bool) (choices []*vertex) {
	for ; i < len(w.order) && w.c.steps > 0; i++ {
		w.c.steps--
		v := w.order[i]
		v.inBranch = true
		v.forced = v.forced || forced
		if forced && len(v.chosen()) > 0 {
			choices = append(choices, v)
		} else {
			for _, target := range v.chosen() {
				w.arrive(v, target, w.origin[v], false)
			}
		}
		switch {
		case v.node.Type == Switch:
		case v.next != nil:
			w.arrive(v, v.next, w.origin[v], forced)
		case forced:
			w.broken = true // a missing, surplus or wrong edge, which has a finding of its own
		}
	}
	return choices
}

// arrive takes note that a node is reached from another one, or as the entry of a branch.
func (w *branchWalk) arrive(from, to *vertex, branch int, forced bool) {
	w.links[to] = append(w.links[to], from)
	if w.joins[to] {
		w.outside = append(w.outside, to)
		return
	}
	if to == w.parallel || to.node.Type == End {
		w.outside = append(w.outside, to)
		w.leaves(from, to, branch, forced)
		return
	}
	if _, seen := w.origin[to]; !seen {
		w.origin[to] = branch
		w.order = append(w.order, to)
	}
}

// leaves reports a branch that gets out of its block.
func (w *branchWalk) leaves(from, to *vertex, branch int, forced bool) {
	if w.join == nil {
		return
	}
	name, n, at := w.branch(branch)
	where := ""
	if from != nil {
		where = fmt.Sprintf(" from %q", clip(from.node.ID))
	}
	message := fmt.Sprintf("the branch %q runs%s into the end node %q instead of the join target", name, where, clip(to.node.ID))
	if to == w.parallel {
		message = fmt.Sprintf("the branch %q leads%s back into its own parallel node", name, where)
	}
	hint := fmt.Sprintf("lead every path of the branch to %q", clip(w.join.node.ID))
	if forced {
		w.broken = true
		w.c.fail(problem.ParallelBranch, n, at, w.parallel, message, hint)
	} else {
		w.c.warn(problem.ParallelBranch, n, at, w.parallel, message+"; a run that takes this path fails", hint)
	}
}

func (w *branchWalk) branch(i int) (name string, n *jsonvalue.Node, at *path) {
	config := w.parallel.json.Get("config")
	n = config.Get("branches").Elements[i].Get("entry")
	at = w.parallel.at.member("config").member("branches").element(i).member("entry")
	return clip(w.parallel.node.Parallel.Branches[i].Name), n, at
}

// checkForcedLoops reports branches that go round without ever meeting a choice.
func (w *branchWalk) checkForcedLoops(forced int) {
	if w.join == nil || w.c.steps == 0 {
		return
	}
	// A node where following stops, because the branch ends, breaks or chooses there, is not part of a loop.
	stops := slices.Clone(w.outside)
	for _, v := range w.order[:forced] {
		if len(v.chosen()) > 0 || v.next == nil {
			stops = append(stops, v)
		}
	}
	_, leads := walk(stops, w.backwards)
	for i, entry := range w.parallel.entries {
		if entry == nil || leads[entry] {
			continue
		}
		name, n, at := w.branch(i)
		w.broken = true
		w.c.fail(problem.ParallelBranch, n, at, w.parallel,
			fmt.Sprintf("the branch %q loops and never reaches the join target", name),
			"leave the loop through a switch")
	}
	for _, v := range w.order[:forced] {
		v.loops = v.loops || !leads[v]
	}
}

// backwards returns the nodes that a node was reached from.
func (w *branchWalk) backwards(v *vertex) []*vertex { return w.links[v] }

func (w *branchWalk) checkInterrupts() {
	declared := slices.Contains(w.c.uses, ExtensionInterruptInBranch)
	for _, v := range w.order {
		if v.node.Type != Interrupt || w.reported[v] {
			continue
		}
		w.reported[v] = true
		if declared {
			w.c.used[ExtensionInterruptInBranch] = true
			continue
		}
		if w.c.options.AllowInterruptInBranch {
			continue
		}
		name, _, _ := w.branch(w.origin[v])
		w.c.fail(problem.InterruptInParallelBranch, v.json, v.at, v,
			fmt.Sprintf("INTERRUPT_IN_PARALLEL_BRANCH: the interrupt %q stands on the branch %q of the parallel node %q",
				clip(v.node.ID), name, clip(w.parallel.node.ID)),
			"ask before the branches begin or after they have joined, or allow it by the extension "+string(ExtensionInterruptInBranch))
	}
}

// checkCompletable reports branches that no choice leads to the join target.
func (w *branchWalk) checkCompletable() {
	if w.broken || w.join == nil || w.c.steps == 0 {
		return
	}
	_, leads := walk([]*vertex{w.join}, w.backwards)
	for i, entry := range w.parallel.entries {
		if entry == nil || entry == w.join || leads[entry] || w.endsInFault(entry) {
			continue
		}
		name, n, at := w.branch(i)
		f := finding(problem.ParallelBranch, problem.SeverityWarning, n, at.pointer(), w.parallel,
			fmt.Sprintf("no path leads the branch %q to its join target %q", name, clip(w.join.node.ID)),
			"let a case of its switch lead there")
		w.c.faults = append(w.c.faults, fault{finding: f, vertex: w.parallel, branch: i})
		lost, _ := walk([]*vertex{entry}, w.insideNext)
		for _, v := range lost {
			v.loops = v.loops || !leads[v]
		}
	}
}

// endsInFault reports whether a branch fails at a node of its own, or may, that has a finding already.
func (w *branchWalk) endsInFault(entry *vertex) bool {
	order, _ := walk([]*vertex{entry}, w.insideNext)
	return slices.ContainsFunc(order, func(v *vertex) bool {
		_, inside := w.origin[v]
		return inside && (v.blocked || v.astray)
	})
}

// insideNext returns the successors of a node of the block, nil for a node outside it.
func (w *branchWalk) insideNext(v *vertex) []*vertex {
	if _, inside := w.origin[v]; !inside {
		return nil
	}
	return mainPath(v)
}
