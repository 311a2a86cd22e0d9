package definition

import (
	"fmt"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Bounds of loops.
const (
	// MaxRounds is the largest max of a loop.
	MaxRounds = 10_000
	// MaxLoops is how many loops a definition has: the graph is walked for each.
	MaxLoops = 100
)

// Loop makes a switch repeat the nodes of a body, which lead back to it (the extension loop). The switch decides by its cases and its
// default only once the loop has ended. Exactly one of While and Until is set.
type Loop struct {
	// While is true before each round; Until is true after the last one, and not asked before the first.
	While, Until *expr.Program
	// Body is the first node of a round.
	Body *Node
	// Max is how many rounds are made at most.
	Max int
	// Counter is the field of the state that counts the rounds, or "".
	Counter string
	// OnLimit is where a run continues that needs more rounds than Max; nil fails it.
	OnLimit *Node

	// body has a bit for each node of the body, by its index.
	body []bool
}

// Inside reports whether a node belongs to the body: a run that comes to another one has left the loop.
func (l *Loop) Inside(n *Node) bool { return n.Index < len(l.body) && l.body[n.Index] }

var loopShape = objectOf("a loop",
	member{"while", filled("the while of a loop").
		about("A jq program over the state, evaluated before each round: the loop ends when it is false or null.", `".open > 0"`), false},
	member{"until", filled("the until of a loop").
		about("A jq program over the state, evaluated after each round: the loop ends when it is true. There is always a first round.", `".good"`), false},
	member{"body", filled("the body of a loop").or("name the first node of a round").
		about("The id of the first node of a round. All nodes of the body lead back to the switch, or out of the loop."), true},
	member{"max", atLeast("the max of a loop", 1).upTo(MaxRounds).
		about("The largest number of rounds. If more are needed, the node fails with LOOP_LIMIT_EXCEEDED."), true},
	member{"counter", filled("the counter of a loop").or("name the field of the state that counts the rounds").
		about("The property of the state that counts the rounds: 1 in the first, starting again each time the loop is entered.", `"round"`), false},
	member{"on_limit", filled("the on_limit of a loop").or("name the node where the run continues").
		about("The id of the node where the run continues, instead of failing, if the loop needs more than max rounds."), false},
).not(map[string]string{
	"condition": `write "while" or "until"`, "if": `write "while"`, "when": `write "while"`, "do": `write "body"`,
	"target":         `write "body"`,
	"max_iterations": `write "max"`, "limit": `write "max"`, "times": `write "max"`, "index": `write "counter"`,
	"as":   `write "counter"`,
	"then": `write "default" in the config`, "default": "put it into the config",
}).ruled(exactlyOne{"while", "until", "a loop must have either while or until", "a loop must have either while or until",
	`write "while", a jq program that is true before each round, or "until", one that is true after the last round`,
}).called("loop").
	about("Repeats the nodes of a body, which lead back to the switch. The config decides only after the loop has ended. Extension loop.")

// loop compiles the loop of a switch, after its cases.
func (x *config) loop() {
	n, at := x.v.json.Get("loop"), x.v.at.member("loop")
	if n == nil {
		return
	}
	x.c.used[ExtensionLoop] = true
	l := &Loop{Max: int(n.Get("max").Num)}
	x.v.node.Loop = l
	for name, program := range map[string]**expr.Program{"while": &l.While, "until": &l.Until} {
		if text := n.Get(name); text != nil {
			*program = x.program(text, at.member(name))
		}
	}
	l.Body = x.loopTarget(n.Get("body"), at.member("body"))
	if to := n.Get("on_limit"); to != nil {
		l.OnLimit = x.loopTarget(to, at.member("on_limit"))
	}
	if counter := n.Get("counter"); counter != nil {
		l.Counter = counter.Str
		x.counter(l, counter, at.member("counter"))
	}
}

// loopTarget follows a member of a loop.
func (x *config) loopTarget(n *jsonvalue.Node, at *path) *Node {
	to := x.c.byID[n.Str]
	if to == nil {
		if !x.c.named(n.Str) {
			x.c.danglingEdge = true
			x.c.fail(problem.UnknownNode, n, at, x.v, fmt.Sprintf("there is no node %q", clip(n.Str)), x.c.suggest(n.Str))
		}
		return nil
	}
	x.v.targets = append(x.v.targets, to)
	x.v.ways = append(x.v.ways, to)
	return to.node
}

// counter checks that the state can hold the numbers of the rounds.
func (x *config) counter(l *Loop, n *jsonvalue.Node, at *path) {
	if x.c.literals == nil {
		return // the state_schema has errors
	}
	if r, reduced := x.c.rules.Reducers[l.Counter]; reduced && r != ReducerOverwrite {
		x.c.fail(problem.StateAssignment, n, at, x.v,
			fmt.Sprintf("the counter %q has the reducer %s: its values would be combined", clip(l.Counter), r),
			"take the reducer away, or name another field")
		return
	}
	first := 1.0
	if l.While != nil {
		first = 0 // no round at all
	}
	for _, round := range []float64{first, float64(l.Max)} {
		if objection, hint := x.c.literals.Objection(l.Counter, round); objection != "" {
			if hint == "" {
				hint = fmt.Sprintf(`declare it at %s, for example {"type": "integer"}`,
					"/state_schema/properties/"+clip(jsonvalue.EscapePointer(l.Counter)))
			}
			x.c.fail(problem.StateAssignment, n, at, x.v, fmt.Sprintf("the counter %q cannot be %v: %s", clip(l.Counter), round, objection), hint)
			return
		}
	}
}

// checkLoopBodies finds the nodes of the bodies, and rejects loops that do not come round or can be entered past their switch.
//
// A body are the nodes that follow Body and that no run can reach in another way: from the beginning, or after the loop. So a run that
// leaves a loop from within has left it, even if an outer loop leads back to it later.
func (c *compiler) checkLoopBodies() {
	if c.lost.any() || c.broken || c.entry == nil {
		return
	}
	loops := 0
	for _, v := range c.vertices {
		if v.node.Loop == nil || v.node.Loop.Body == nil {
			continue
		}
		if loops++; loops > MaxLoops {
			c.fail(problem.ConfigInvalid, v.json.Get("loop"), v.at.member("loop"), v,
				fmt.Sprintf("a definition has at most %d loops", MaxLoops), "move a part into a subworkflow")
			return
		}
		c.checkLoopBody(v)
	}
}

// loopExits returns the nodes that follow a loop.
func (c *compiler) loopExits(v *vertex) []*vertex {
	exits := []*vertex{c.byID[v.node.Switch.Default]}
	for _, k := range v.node.Switch.Cases {
		exits = append(exits, c.byID[k.Target])
	}
	if to := v.node.Loop.OnLimit; to != nil {
		exits = append(exits, c.byID[to.ID])
	}
	return exits
}

func (c *compiler) checkLoopBody(v *vertex) {
	l, n, at := v.node.Loop, v.json.Get("loop").Get("body"), v.at.member("loop").member("body")
	past := func(u *vertex) []*vertex {
		if u == v {
			return nil
		}
		return everywhere(u)
	}
	_, outside := walk(append(c.loopExits(v), c.entry), past)
	first := c.byID[l.Body.ID]
	switch {
	case first == v:
		c.fail(problem.ConfigInvalid, n, at, v, "the body of the loop is the loop itself", "name the first node of a round")
		return
	case !outside[v]:
		return // no run comes to the loop, which has a finding of its own
	case outside[first]:
		c.fail(problem.ConfigInvalid, n, at, v,
			fmt.Sprintf("a run can come to %q, the body of the loop, without a round of %q", clip(first.node.ID), clip(v.node.ID)),
			fmt.Sprintf(`lead to %q from outside: it begins each round, and with "until" the first one without a question`, clip(v.node.ID)))
		return
	}
	body, _ := walk([]*vertex{first}, func(u *vertex) []*vertex {
		return slices.DeleteFunc(slices.Clone(everywhere(u)), func(to *vertex) bool { return to == nil || to == v || outside[to] })
	})
	l.body = make([]bool, len(c.vertices))
	back, astray := false, false
	for _, u := range body {
		l.body[u.node.Index] = true
		back = back || slices.Contains(everywhere(u), v)
		astray = astray || u.astray
	}
	if !back && !astray {
		c.fail(problem.ConfigInvalid, n, at, v,
			fmt.Sprintf("the body of the loop never leads back to %q", clip(v.node.ID)),
			fmt.Sprintf("let the last node of a round lead to %q", clip(v.node.ID)))
	}
}
