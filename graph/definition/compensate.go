package definition

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Compensation is the node that undoes a completed node when the run, or its branch, is rolled back (the extension compensate).
type Compensation struct {
	// Node undoes. No edge leads to it or from it, and several nodes may share one.
	Node *Node
	// As is the field of the state for the input of Node, or "". It is not written to the run's state.
	As string
}

// Rollback selects the ends of a run that roll it back first; see Catch for failures that are caught.
type Rollback struct{ OnCancel, OnFailure bool }

const (
	rollbackOnCancel  = "cancel"
	rollbackOnFailure = "failure"
)

var compensateMember = extended{member{"compensate", objectOf("compensate",
	member{"node", filled("the node of compensate").
		about("The id of a node that undoes this one: a step, llm_call, tool_call, agent_delegate or subworkflow without edges, catch, map and compensate. Several nodes may share it."), true},
	member{"as", filled("the as of compensate").or("name the field of the state that holds the input of the compensation").
		about("The property of the state that holds the input of the compensation: an object with node, output and, for a map, item. It is not written to the state of the run."), false},
).not(map[string]string{"target": `write "node"`, "with": `write "node"`, "id": `write "node"`, "name": `write "as"`}).
	or(`write {"node": "<id of the node that undoes this one>"}`).called("compensate").
	about("The node that undoes this one in a rollback, once it has completed. Extension compensate."), false}, ExtensionCompensate}

// rollbackOfCatch and rollbackOfRun are the fields rollback of a catch and of the root field that names the extensions.
var (
	rollbackOfCatch = extended{member{"rollback", boolean("the rollback of a catch").
			about("Whether the run, or the branch, is rolled back first: the compensations run, the newest first. Extension compensate."), false}, ExtensionCompensate}
	rollbackOfRun = extended{member{"rollback", listOf("rollback",
		oneOf("an end of a run", rollbackOnCancel, rollbackOnFailure),
	).nonEmpty().or(`write a list of "cancel" and "failure"`).
		about("The ends before which the run is rolled back: cancel, when it is cancelled; failure, when it fails and no catch applies. Extension compensate."), false}, ExtensionCompensate}
)

// followCompensations resolves the compensations of nodes, before their edges are checked: compensations have no edges.
func (c *compiler) followCompensations() {
	for _, v := range c.vertices {
		n, at := v.json.Get("compensate"), v.at.member("compensate").member("node")
		if n == nil || n.Kind != jsonvalue.Object || !isFilled(n.Get("node")) || c.duplicate[v.node.ID] {
			continue
		}
		c.used[ExtensionCompensate] = true
		id := n.Get("node")
		to := c.byID[id.Str]
		if to != nil {
			to.compensates = true // also of a node that is not sound
		}
		if to == nil || !v.sound {
			if to == nil && !c.named(id.Str) {
				c.danglingEdge = true
				c.fail(problem.UnknownNode, id, at, v, fmt.Sprintf("there is no node %q", clip(id.Str)), c.suggest(id.Str))
			}
			continue
		}
		v.compensation = to
		k := &Compensation{Node: to.node}
		if as := n.Get("as"); as != nil {
			k.As = as.Str
		}
		v.node.Compensation = k
	}
}

// checkCompensations checks that compensations are nodes of their own, and that something is rolled back.
func (c *compiler) checkCompensations() {
	reported := map[*vertex]bool{}
	for _, v := range c.vertices {
		to := v.compensation
		if to == nil || reported[to] {
			continue
		}
		reported[to] = true
		to.compensates = c.checkCompensation(v, to)
	}
	for _, v := range c.vertices {
		for _, to := range everywhere(v) {
			if to != nil && to.compensates && !v.compensates && reported[to] {
				c.reachedCompensation(v, to)
			}
		}
	}
	if c.entry != nil && c.entry.compensates {
		c.fail(problem.CompensationInvalid, c.entry.json, c.entry.at, c.entry,
			fmt.Sprintf("a run begins at %q, which is a compensation", clip(c.entry.node.ID)), "lead the edge from __start__ to another node")
	}
	c.checkRollbacks(len(reported) > 0)
}

// checkCompensation checks the node that undoes another one. It reports whether that one can: of another kind of node no more is said.
func (c *compiler) checkCompensation(v, to *vertex) bool {
	n, at := v.json.Get("compensate").Get("node"), v.at.member("compensate").member("node")
	wrong := func(n *jsonvalue.Node, at *path, v *vertex, hint, format string, args ...any) {
		c.fail(problem.CompensationInvalid, n, at, v, fmt.Sprintf(format, args...), hint)
	}
	id := clip(to.node.ID)
	switch t := to.node.Type; {
	case to == v:
		wrong(n, at, v, "name another node, which undoes this one", "the node %q compensates itself", id)
		return false
	case !t.Info().has("compensate"):
		wrong(n, at, v, "name a step, llm_call, tool_call, agent_delegate or subworkflow",
			"%s node cannot compensate, as %q is to", withArticle(string(t)), id)
		return false
	case to.compensation != nil:
		wrong(n, at, v, "name a node that nothing undoes: a compensation that fails ends the run",
			"the compensation %q is compensated itself", id)
		return false
	}
	if len(to.out) > 0 {
		wrong(to.out[0].json, to.out[0].at, to, "remove the edge: after a rollback the run continues at the target of the catch, or ends",
			"an edge leads on from %q, which is a compensation", id)
	}
	for _, name := range []string{"catch", "map"} {
		if extra := to.json.Get(name); extra != nil && to.sound {
			wrong(extra, to.at.member(name), to, "remove it; retry and timeout of the compensation apply, and if it fails the run fails",
				"the compensation %q must not have %s itself", id, name)
		}
	}
	return true
}

// reachedCompensation reports a way into a compensation that is no rollback.
func (c *compiler) reachedCompensation(from, to *vertex) {
	n, at := from.json, from.at
	if i := slices.IndexFunc(from.out, func(e edge) bool { return e.target == to.node.ID }); i >= 0 {
		n, at = from.out[i].json, from.out[i].at
	}
	c.fail(problem.CompensationInvalid, n, at, from,
		fmt.Sprintf("%q leads to %q, which is a compensation", clip(from.node.ID), clip(to.node.ID)),
		"lead it elsewhere: a compensation runs in a rollback only; for other uses add a node of the same config")
}

// checkRollbacks warns of compensations that no rollback runs, and of rollbacks without compensations.
func (c *compiler) checkRollbacks(compensated bool) {
	var rollbacks []*jsonvalue.Node
	var places []*path
	var of []*vertex
	add := func(n *jsonvalue.Node, at *path, v *vertex) {
		if n != nil && (n.Kind == jsonvalue.Array || n.Bool) {
			rollbacks, places, of = append(rollbacks, n), append(places, at.member("rollback")), append(of, v)
		}
	}
	if block := c.document.root.Get(extensionsMember); block != nil && block.Kind == jsonvalue.Object {
		add(block.Get("rollback"), (*path)(nil).member(extensionsMember), nil)
	}
	for _, v := range c.vertices {
		if list := v.json.Get("catch"); list != nil && v.sound {
			for i, k := range list.Elements {
				add(k.Get("rollback"), v.at.member("catch").element(i), v)
			}
		}
	}
	if len(rollbacks) > 0 {
		c.used[ExtensionCompensate] = true
	}
	if c.lost.nodes || c.findings.HasErrors() {
		return // what is wrong may be what would compensate, or roll back
	}
	switch {
	case !compensated:
		for i, n := range rollbacks {
			c.fail(problem.CompensationInvalid, n, places[i], of[i], "there is nothing to roll back: no node has compensate",
				`add "compensate": {"node": "<id>"} beside the config of the nodes to undo, or remove rollback`)
		}
	case len(rollbacks) == 0:
		i := slices.IndexFunc(c.vertices, func(v *vertex) bool { return v.compensation != nil })
		v := c.vertices[i]
		c.warn(problem.FieldIgnored, v.json.Get("compensate"), v.at.member("compensate"), v, "nothing rolls back, so no compensation ever runs",
			`add "rollback": true to a catch, or "rollback": ["cancel", "failure"] beside uses in x-workflows-engine`)
	}
}

// rollback reads the ends that roll back a run of a sound document.
func (c *compiler) rollback() (r Rollback) {
	block := c.document.root.Get(extensionsMember)
	if block == nil {
		return r
	}
	if list := block.Get("rollback"); list != nil {
		for _, end := range list.Elements {
			r.OnCancel = r.OnCancel || end.Str == rollbackOnCancel
			r.OnFailure = r.OnFailure || end.Str == rollbackOnFailure
		}
	}
	return r
}

// anywhere returns the nodes that a run may visit after a node, compensations included.
func anywhere(v *vertex) []*vertex { return append(everywhere(v), v.compensation) }
