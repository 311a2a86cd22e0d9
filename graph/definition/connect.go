package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// startSource is the synthetic source of the edge into the graph.
const startSource = "__start__"

// collect checks the shape of the nodes and gathers nodes and edges, also of a broken document, as far as they have
// ids and types.
func (c *compiler) collect() {
	root := c.document.root
	values, _ := c.document.value.(map[string]any)
	if nodes := root.Get("nodes"); nodes != nil && nodes.Kind == jsonvalue.Array {
		list, _ := values["nodes"].([]any)
		at := (*path)(nil).member("nodes")
		for i, n := range nodes.Elements {
			c.collectNode(n, list[i], at.element(i), i)
		}
	} else {
		c.lost = lost{ids: true, nodes: true}
	}
	edges := root.Get("edges")
	if edges == nil || edges.Kind != jsonvalue.Array {
		c.lost.edges = true
		return
	}
	at := (*path)(nil).member("edges")
	for i, n := range edges.Elements {
		source, target := n.Get("source"), n.Get("target")
		if !isFilled(source) || !isFilled(target) {
			c.lost.edges = true
			continue
		}
		c.edges = append(c.edges, edge{source.Str, target.Str, n, at.element(i)})
	}
}

func isFilled(n *jsonvalue.Node) bool { return n != nil && n.Kind == jsonvalue.String && n.Str != "" }

func (c *compiler) collectNode(n *jsonvalue.Node, value any, at *path, index int) {
	check := shapeCheck{uses: c.uses, unnamed: c.unnamed, enough: len(c.findings) > MaxFindings}
	whole := check.checkNode(n, at)
	sound := whole || check.faults == check.strangers && check.hidden == 0
	id, t := n.Get("id"), n.Get("type")
	if isFilled(id) {
		c.ids[id.Str] = true
		c.names = append(c.names, id.Str)
		for i := range check.findings {
			check.findings[i].At.NodeID = id.Str
		}
	} else {
		c.lost.ids = true
	}
	c.findings = append(c.findings, check.findings...)
	if !isFilled(id) || t == nil || t.Kind != jsonvalue.String || typeNamed[Type(t.Str)] == nil {
		c.lost.nodes = true
		return
	}
	object := value.(map[string]any)
	node := &Node{ID: id.Str, Type: Type(t.Str), Index: index, Config: map[string]any{}}
	if config, ok := object["config"].(map[string]any); ok {
		node.Config = config
	}
	node.Metadata, _ = object["metadata"].(map[string]any)
	if !whole && (node.Type == Switch || node.Type == Parallel || n.Get("catch") != nil || n.Get("on_timeout") != nil) {
		c.lost.ways = true
	}
	c.vertices = append(c.vertices, &vertex{node: node, json: n, at: at, sound: sound, strangers: sound && !whole})
}

// connect resolves ids and edges and checks the graph's invariants (spec: execution, 5.2; definition, 8).
func (c *compiler) connect() {
	if len(c.ids) == 0 {
		return // there is nothing that edges could connect
	}
	before := len(c.findings)
	c.index()
	outgoing := make(map[string][]edge, len(c.vertices)+1)
	for _, e := range c.edges {
		outgoing[e.source] = append(outgoing[e.source], e)
	}
	c.checkEdgeEnds(outgoing)
	c.checkStartAndEnd()
	c.checkEntry(outgoing[startSource])
	c.followCompensations()
	for _, v := range c.vertices {
		if !c.duplicate[v.node.ID] {
			v.out = outgoing[v.node.ID]
			c.checkOutgoing(v)
			c.followCatches(v)
		}
	}
	c.checkOtherTargets(outgoing)
	c.broken = c.findings[before:].HasErrors()
}

// checkOtherTargets checks the targets of edges that are not followed because of another error: those of nodes without a known type, and
// of nodes with more than one edge.
func (c *compiler) checkOtherTargets(outgoing map[string][]edge) {
	for _, e := range c.edges {
		v := c.byID[e.source]
		switch {
		case e.source == startSource:
			if len(outgoing[startSource]) > 1 {
				c.checkTarget(e, nil)
			}
		case v == nil:
			if c.ids[e.source] {
				c.checkTarget(e, nil)
			}
		case c.duplicate[e.source]: // the target may be the id that one of the nodes should have
		case v.node.Type != Switch && v.node.Type != End && !v.compensates && len(v.out) > 1:
			c.checkTarget(e, v)
		}
	}
}

// checkTarget reports an edge, of v if it is known, to a node that does not exist.
func (c *compiler) checkTarget(e edge, v *vertex) {
	if e.target != startSource {
		c.checkReference(e.json.Get("target"), e.at.member("target"), v)
	}
}

// checkReference reports the id of a node that does not exist.
func (c *compiler) checkReference(n *jsonvalue.Node, at *path, v *vertex) {
	if isFilled(n) && !c.named(n.Str) {
		c.danglingEdge = true
		c.fail(problem.UnknownNode, n, at, v, fmt.Sprintf("there is no node %q", clip(n.Str)), c.suggest(n.Str))
	}
}

// references are the paths of the values in a node that are ids of other nodes; * stands for every element of an array.
var references = [][]string{
	{"config", "cases", "*", "target"}, {"config", "default"}, {"loop", "body"}, {"loop", "on_limit"}, {"config", "branches", "*", "entry"},
	{"catch", "*", "target"}, {"on_timeout"},
}

// checkReferences checks the ids in a node that does not have the shape of its type, as far as they can be read.
func (c *compiler) checkReferences(v *vertex) {
	var follow func(n *jsonvalue.Node, at *path, names []string)
	follow = func(n *jsonvalue.Node, at *path, names []string) {
		switch {
		case n == nil:
		case len(names) == 0:
			c.checkReference(n, at, v)
		case names[0] != "*":
			follow(n.Get(names[0]), at.member(names[0]), names[1:])
		case n.Kind == jsonvalue.Array:
			for i, e := range n.Elements {
				follow(e, at.element(i), names[1:])
			}
		}
	}
	for _, names := range references {
		follow(v.json, v.at, names)
	}
}

func (c *compiler) index() {
	for _, v := range c.vertices {
		if first, ok := c.byID[v.node.ID]; ok {
			c.duplicate[v.node.ID] = true
			c.fail(problem.DuplicateNodeID, v.json.Get("id"), v.at.member("id"), v,
				fmt.Sprintf("duplicate id %q: %s has it", v.node.ID, first.at.pointer()),
				"give each node its own id")
		}
		if v.node.ID == startSource {
			c.warn(problem.ReservedNodeID, v.json.Get("id"), v.at.member("id"), v,
				"__start__ is the source of the first edge and should not name a node", "rename the node")
		}
		c.byID[v.node.ID] = v
	}
}

// named reports whether a node has this id, or may have it: nodes without a readable id hide theirs.
func (c *compiler) named(id string) bool { return c.ids[id] || c.lost.ids }

// checkEdgeEnds reports edges into __start__ and edges that come from nowhere.
func (c *compiler) checkEdgeEnds(outgoing map[string][]edge) {
	for _, e := range c.edges {
		if e.target == startSource {
			c.fail(problem.GraphEntry, e.json.Get("target"), e.at.member("target"), c.byID[e.source],
				"no edge may lead into __start__", "to run a part again, lead back to the first node of that part")
		}
		if e.source == startSource || c.named(e.source) {
			continue
		}
		message, near := fmt.Sprintf("there is no node %q", clip(e.source)), c.nearest(e.source)
		if v := c.byID[near]; v != nil && v.node.Type != End && v.node.Type != Switch && len(outgoing[near]) == 0 {
			// The node that was meant lacks this very edge: one mistake, one finding.
			v.edgeMisspelt = true
			c.fail(problem.UnknownNode, e.json.Get("source"), e.at.member("source"), nil, message, suggest.Hint(near))
			c.checkTarget(e, nil)
			continue
		}
		c.warn(problem.GraphUnusedEdge, e.json.Get("source"), e.at.member("source"), nil,
			message+", so this edge is never followed", suggest.Hint(near))
	}
}

func (c *compiler) checkStartAndEnd() {
	var starts, ends []*vertex
	for _, v := range c.vertices {
		switch v.node.Type {
		case Start:
			starts = append(starts, v)
		case End:
			ends = append(ends, v)
		}
	}
	c.exactlyOne(problem.GraphStart, "start", starts)
	c.exactlyOne(problem.GraphEnd, "end", ends)
	c.hasStart = len(starts) > 0
	if len(ends) == 1 {
		c.end = ends[0]
	}
}

func (c *compiler) exactlyOne(code problem.Code, kind string, found []*vertex) {
	if len(found) == 0 && !c.lost.nodes && len(c.vertices) > 0 {
		c.fail(code, c.document.root.Get("nodes"), (*path)(nil).member("nodes"), nil,
			fmt.Sprintf("there is no %s node", kind), fmt.Sprintf(`add a node such as {"id": %q, "type": %q}`, kind, kind))
	}
	for _, v := range found[min(1, len(found)):] {
		c.fail(code, v.json, v.at, v, fmt.Sprintf("a second %s node; the first is %q", kind, clip(found[0].node.ID)),
			"lead all paths to a single one")
	}
}

func (c *compiler) checkEntry(entries []edge) {
	if len(entries) == 0 {
		if !c.lost.edges {
			c.fail(problem.GraphEntry, c.document.root.Get("edges"), (*path)(nil).member("edges"), nil, "no edge has the source __start__",
				`add an edge such as {"source": "__start__", "target": "<id of the start node>"}`)
		}
		return
	}
	for _, e := range entries[1:] {
		c.fail(problem.GraphEntry, e.json, e.at, nil, "a second edge has the source __start__",
			"keep one edge with the source __start__")
	}
	if len(entries) > 1 || entries[0].target == startSource {
		return
	}
	e := entries[0]
	v := c.byID[e.target]
	if v == nil {
		if !c.named(e.target) {
			c.danglingEdge = true
			c.fail(problem.UnknownNode, e.json.Get("target"), e.at.member("target"), nil,
				fmt.Sprintf("there is no node %q", clip(e.target)), c.suggest(e.target))
		}
		return
	}
	c.entry = v
	if v.node.Type != Start && c.hasStart {
		c.warn(problem.GraphEntry, e.json.Get("target"), e.at.member("target"), v,
			fmt.Sprintf("a run begins at %q and passes the start node by", v.node.ID), "lead this edge to the start node")
	}
}

// checkOutgoing checks the number of a node's outgoing edges and follows the single one.
func (c *compiler) checkOutgoing(v *vertex) {
	switch out := v.out; {
	case v.node.Type == Switch:
		return // which of its edges are superfluous is seen when branches are known
	case v.compensates:
		return // checkCompensations does
	case v.node.Type == End:
		if len(out) > 0 {
			c.fail(problem.GraphOutgoing, out[0].json, out[0].at, v, "no edge may leave the end node", "remove the edge")
		}
	case len(out) == 0:
		if !c.lost.edges && !v.edgeMisspelt {
			c.fail(problem.GraphOutgoing, v.json, v.at, v,
				fmt.Sprintf("no edge leads on from the node %q", v.node.ID),
				fmt.Sprintf(`add an edge {"source": %q, "target": …}`, v.node.ID))
		}
	case len(out) > 1:
		hint := "route with a switch node, or run branches with a parallel node"
		if out[0].target == out[1].target {
			hint = "remove one of the two edges"
		}
		c.fail(problem.GraphOutgoing, out[1].json, out[1].at, v,
			fmt.Sprintf("a second edge leaves the node %q", v.node.ID), hint)
	default:
		c.followSingle(v, out[0])
	}
}

func (c *compiler) followSingle(v *vertex, e edge) {
	if v.next = c.byID[e.target]; v.next != nil {
		v.node.Next = v.next.node
		return
	}
	if e.target == startSource || c.named(e.target) {
		return
	}
	c.danglingEdge, v.astray = true, true
	message := fmt.Sprintf("there is no node %q", clip(e.target))
	v.node.NextErr = problem.New(problem.UnknownNode, "the edge from %q leads nowhere: %s", v.node.ID, message).
		WithPlace(problem.Place{NodeID: v.node.ID, Pointer: e.at.member("target").pointer()})
	c.fatal(problem.UnknownNode, e.json.Get("target"), e.at.member("target"), v, message, c.suggest(e.target))
}
