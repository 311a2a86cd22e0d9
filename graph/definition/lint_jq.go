package definition

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Warnings about programs that compile and are probably mistaken (spec: definition, 11.1 and
// 14.1). They look at the parsed program and are silent in doubtful cases.

// lintSource warns about a program.
func (c *compiler) lintSource(p *expr.Program, n *jsonvalue.Node, at *path, v *vertex) {
	c.sources = append(c.sources, Source{Node: v.node, Pointer: at.pointer(), Program: p})
	w := jqWalk{}
	w.query(p.Tree(), true)
	if w.stateRoot && !c.hasStateKey() {
		c.warn(problem.ExpressionStateRoot, n, at, v,
			"the program reads .state, but the state itself is the root", `write ".name" instead of ".state.name"`)
	}
	for _, regex := range w.regexes {
		if message, hint := regexDifference(regex); message != "" {
			c.warn(problem.ExpressionRegex, n, at, v, message, hint)
		}
	}
}

// lintCondition warns about a condition that may put out several values, and about one that reads the clock: a replay sees the recorded
// time, but a fork moves the times of its past, and is rejected if that leads elsewhere.
func (c *compiler) lintCondition(p *expr.Program, n *jsonvalue.Node, at *path, v *vertex) {
	w := jqWalk{}
	if w.query(p.Tree(), true); w.clock {
		c.warn(problem.ExpressionClock, n, at, v,
			"the condition reads the clock with now: a fork decides it anew at its own time, and is refused if that leads elsewhere",
			"pass the time in with the input of the run, or take it from an activity")
	}
	if several(p.Tree()) {
		c.warn(problem.ExpressionOutputs, n, at, v,
			"the condition may put out several values; together they are a list, which is always true",
			`ask for one value, for example any(.tags[]; . == "x")`)
	}
}

// lintLiterals warns of texts in a tool's arguments or a prompt that look like templates: both are sent as written
// (spec: definition, 11.1).
func (c *compiler) lintLiterals(n *jsonvalue.Node, at *path, v *vertex, hint string) {
	switch n.Kind {
	case jsonvalue.String:
		if strings.Contains(n.Str, "${") || strings.Contains(n.Str, "{{") {
			c.warn(problem.TemplateLiteral, n, at, v, "the text looks like a template but is sent as written", hint)
		}
	case jsonvalue.Array:
		for i, e := range n.Elements {
			c.lintLiterals(e, at.element(i), v, hint)
		}
	case jsonvalue.Object:
		if program := n.Get("jq"); program != nil && len(n.Members) == 1 && program.Kind == jsonvalue.String {
			c.warn(problem.TemplateLiteral, n, at, v, "the object looks like a program but is sent as written", hint)
			return
		}
		for _, m := range n.Members {
			c.lintLiterals(m.Value, at.member(m.Name), v, hint)
		}
	}
}

// hasStateKey reports whether the state may well have a key named state.
func (c *compiler) hasStateKey() bool {
	root := c.document.root
	if root.Get("state_schema").Get("properties").Get("state") != nil {
		return true
	}
	for _, v := range c.vertices {
		if v.node.Type == SetState && v.json.Get("config").Get("assignments").Get("state") != nil {
			return true
		}
	}
	return false
}

// jqWalk looks through a program.
type jqWalk struct {
	// stateRoot: some path begins with .state.<name>; clock: now is called.
	stateRoot, clock bool
	// regexes are the regular expressions that are written out.
	regexes []string
}

// query checks a query; atRoot is set while its input is the state.
func (w *jqWalk) query(q *gojq.Query, atRoot bool) {
	if q == nil {
		return
	}
	for _, f := range q.FuncDefs {
		w.query(f.Body, false)
	}
	w.term(q.Term, atRoot)
	w.query(q.Left, atRoot)
	// Behind a pipe the input is another one, unless the pipe belongs to a binding.
	w.query(q.Right, atRoot && (q.Op != gojq.OpPipe || q.Patterns != nil))
}

func (w *jqWalk) term(t *gojq.Term, atRoot bool) {
	if t == nil {
		return
	}
	if atRoot && t.Type == gojq.TermTypeIndex && t.Index.Name == "state" && len(t.SuffixList) > 0 && t.SuffixList[0].Index != nil {
		w.stateRoot = true
	}
	w.function(t.Func)
	for _, part := range expr.Parts(t) {
		w.query(part.Query, atRoot && part.SameInput)
	}
}

// function checks a call.
func (w *jqWalk) function(f *gojq.Func) {
	if f == nil {
		return
	}
	if f.Name == "now" && len(f.Args) == 0 {
		w.clock = true
	}
	if !takesRegex(f) {
		return
	}
	if regex, ok := literalText(f.Args[0]); ok {
		flags := ""
		if last := f.Args[len(f.Args)-1]; len(f.Args) > 1 {
			flags, _ = literalText(last)
		}
		if strings.Contains(flags, "i") && f.Name != "split" {
			regex = "(?i)" + regex
		}
		w.regexes = append(w.regexes, regex)
	}
}

func takesRegex(f *gojq.Func) bool {
	switch f.Name {
	case "test", "match", "capture", "scan", "splits", "sub", "gsub":
		return len(f.Args) > 0
	case "split":
		return len(f.Args) == 2
	}
	return false
}

// literalText returns the text of a query that is just a string without interpolation.
func literalText(q *gojq.Query) (string, bool) {
	if q.Term == nil || q.Term.Type != gojq.TermTypeString || q.Term.Str.Queries != nil || q.Term.SuffixList != nil {
		return "", false
	}
	return q.Term.Str.Str, true
}

// generators are functions that put out several values as a rule.
var generators = map[string]bool{
	"recurse": true, "range": true, "splits": true, "scan": true, "paths": true, "leaf_paths": true,
	"combinations": true, "while": true, "repeat": true, "tostream": true,
}

// several reports whether a query obviously may put out more than one value.
func several(q *gojq.Query) bool {
	if q == nil || q.FuncDefs != nil {
		return false
	}
	switch q.Op {
	case gojq.OpComma:
		return true
	case gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod,
		gojq.OpUpdateAlt, gojq.OpAssign:
		return several(q.Right)
	}
	return several(q.Left) || several(q.Right) || severalTerm(q.Term)
}

func severalTerm(t *gojq.Term) bool {
	if t == nil {
		return false
	}
	if slices.ContainsFunc(t.SuffixList, func(s *gojq.Suffix) bool { return s.Iter }) {
		return true
	}
	switch t.Type {
	case gojq.TermTypeRecurse, gojq.TermTypeForeach:
		return true
	case gojq.TermTypeFunc:
		return generators[t.Func.Name]
	}
	return slices.ContainsFunc(expr.Parts(t), func(part expr.Part) bool { return part.Multiplies && several(part.Query) })
}
