package definition

import (
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Warnings about programs that compile and probably do not do what their author means (spec: definition, 11.1 and
// 14.1). They look at the parsed program and stay silent where they are not sure.

// lintProgram warns about any program.
func (c *compiler) lintProgram(src string, n *jsonvalue.Node, at *path, v *vertex) {
	c.lintSource(src, n, at, v, true)
}

// lintSource is lintProgram, which may leave the clock alone: what an executor fills in is not computed again when a run
// is rebuilt, so that now does no harm there.
func (c *compiler) lintSource(src string, n *jsonvalue.Node, at *path, v *vertex, clock bool) {
	q, err := gojq.Parse(src)
	if err != nil {
		return
	}
	w := jqWalk{}
	w.query(q, true)
	w.clock = w.clock && clock
	if w.stateRoot && !c.hasStateKey() {
		c.warn(problem.ExpressionStateRoot, n, at, v,
			"the program reads .state, but the state itself is the root", `write ".name" instead of ".state.name"`)
	}
	if w.clock {
		c.warn(problem.ExpressionClock, n, at, v,
			"the program reads the clock with now, so the same state can give another value",
			"pass the time in with the input of the run, or take it from an activity")
	}
	for _, regex := range w.regexes {
		if message, hint := regexDifference(regex); message != "" {
			c.warn(problem.ExpressionRegex, n, at, v, message, hint)
		}
	}
}

// lintCondition warns about a condition that may put out several values.
func (c *compiler) lintCondition(n *jsonvalue.Node, at *path, v *vertex) {
	if q, err := gojq.Parse(n.Str); err == nil && several(q) {
		c.warn(problem.ExpressionOutputs, n, at, v,
			"the condition may put out several values; together they are a list, which is always true",
			`ask for one value, for example any(.tags[]; . == "x")`)
	}
}

// lintLiterals warns of texts in a tool's arguments or a prompt that look like templates: both are sent as written
// (spec: definition, 11.1).
func (c *compiler) lintLiterals(n *jsonvalue.Node, at *path, v *vertex) {
	const hint = "compute the value in a set_state or an earlier node; here nothing is filled in"
	switch n.Kind {
	case jsonvalue.String:
		if strings.Contains(n.Str, "${") || strings.Contains(n.Str, "{{") {
			c.warn(problem.TemplateLiteral, n, at, v, "the text looks like a template but is sent as written", hint)
		}
	case jsonvalue.Array:
		for i, e := range n.Elements {
			c.lintLiterals(e, at.element(i), v)
		}
	case jsonvalue.Object:
		if program := n.Get("jq"); program != nil && len(n.Members) == 1 && program.Kind == jsonvalue.String {
			c.warn(problem.TemplateLiteral, n, at, v, "the object looks like a program but is sent as written", hint)
			return
		}
		for _, m := range n.Members {
			c.lintLiterals(m.Value, at.member(m.Name), v)
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

// query looks at a query; atRoot is set while its input is the state.
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
	w.index(t.Index, atRoot)
	w.function(t.Func, atRoot)
	if t.Object != nil {
		for _, kv := range t.Object.KeyVals {
			w.text(kv.KeyString, atRoot)
			w.query(kv.KeyQuery, atRoot)
			w.query(kv.Val, atRoot)
		}
	}
	if t.Array != nil {
		w.query(t.Array.Query, atRoot)
	}
	if t.Unary != nil {
		w.term(t.Unary.Term, atRoot)
	}
	w.text(t.Str, atRoot)
	w.query(t.Query, atRoot)
	w.control(t, atRoot)
	for _, s := range t.SuffixList {
		w.index(s.Index, atRoot)
	}
}

func (w *jqWalk) control(t *gojq.Term, atRoot bool) {
	if t.If != nil {
		w.query(t.If.Cond, atRoot)
		w.query(t.If.Then, atRoot)
		for _, e := range t.If.Elif {
			w.query(e.Cond, atRoot)
			w.query(e.Then, atRoot)
		}
		w.query(t.If.Else, atRoot)
	}
	if t.Try != nil {
		w.query(t.Try.Body, atRoot)
		w.query(t.Try.Catch, false)
	}
	if t.Reduce != nil {
		w.query(t.Reduce.Query, atRoot)
		w.query(t.Reduce.Start, atRoot)
		w.query(t.Reduce.Update, false)
	}
	if t.Foreach != nil {
		w.query(t.Foreach.Query, atRoot)
		w.query(t.Foreach.Start, atRoot)
		w.query(t.Foreach.Update, false)
		w.query(t.Foreach.Extract, false)
	}
	if t.Label != nil {
		w.query(t.Label.Body, atRoot)
	}
}

func (w *jqWalk) index(i *gojq.Index, atRoot bool) {
	if i == nil {
		return
	}
	w.text(i.Str, atRoot)
	w.query(i.Start, atRoot)
	w.query(i.End, atRoot)
}

func (w *jqWalk) text(s *gojq.String, atRoot bool) {
	if s == nil {
		return
	}
	for _, q := range s.Queries {
		w.query(q, atRoot)
	}
}

// function looks at a call. Many functions evaluate their arguments on another input, so no argument counts as reading the state.
func (w *jqWalk) function(f *gojq.Func, _ bool) {
	if f == nil {
		return
	}
	if f.Name == "now" && len(f.Args) == 0 {
		w.clock = true
	}
	if takesRegex(f) {
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
	for _, arg := range f.Args {
		w.query(arg, false)
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
	for _, s := range t.SuffixList {
		if s.Iter {
			return true
		}
	}
	switch t.Type {
	case gojq.TermTypeRecurse, gojq.TermTypeForeach:
		return true
	case gojq.TermTypeFunc:
		return generators[t.Func.Name]
	case gojq.TermTypeUnary:
		return severalTerm(t.Unary.Term)
	case gojq.TermTypeQuery:
		return several(t.Query)
	case gojq.TermTypeTry:
		return several(t.Try.Body)
	case gojq.TermTypeIf:
		return severalIf(t.If)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			if several(kv.Val) {
				return true
			}
		}
	}
	return false
}

func severalIf(i *gojq.If) bool {
	if several(i.Cond) || several(i.Then) || several(i.Else) {
		return true
	}
	for _, e := range i.Elif {
		if several(e.Cond) || several(e.Then) {
			return true
		}
	}
	return false
}
