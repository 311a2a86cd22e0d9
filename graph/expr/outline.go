package expr

import (
	"strings"

	"github.com/itchyny/gojq"
)

// An outline holds the facts about a rewritten program that decide how much the interpreter keeps while it runs
// (frames.go), and how far it walks to a variable (links.go).
type outline struct {
	r     *rewriter
	calls []callSite
	uses  []variableUse
}

// body is a part of a program with a scope of its own: a function, an argument of a call, or the program.
type body struct {
	// def is nil for an argument and for the program.
	def   *gojq.FuncDef
	outer *body
	// running is set while the function is being read: a call of it is then recursive.
	running bool
	// recursive functions call themselves. loops says that they, or functions in or called by them, may run a parameter
	// in each round of a loop.
	recursive, loops bool
	weight           weight

	// links is how many more scopes than those of the text lead from a function to its surroundings, at most
	// manyLinks. A function that carries has them in a parameter.
	links   int
	carries bool
}

// callSite is a call of one of the program's functions.
type callSite struct {
	call *gojq.Func
	at   *body
	to   *body
}

// variableUse is a variable or parameter of home that is read at some place. behind puts a query before it.
type variableUse struct {
	at, home *body
	behind   func(*gojq.Query)
}

// binding is a chain of names, the innermost first. function is the body of a function; home is the body that a
// variable or parameter belongs to.
type binding struct {
	name     string
	function *body
	home     *body
	outer    *binding
}

func (b *binding) find(name string) *binding {
	for b != nil && b.name != name {
		b = b.outer
	}
	return b
}

// outlined reads a rewritten program and adds the charges that depend on its outline.
func (r *rewriter) outlined(q *gojq.Query) {
	o := &outline{r: r}
	program := &body{}
	program.weight = o.query(q, program, nil)
	if bytes := program.weight.most(); bytes > freeFrame {
		o.charge(q, bytes)
	}
	o.countLinks()
}

// query reads a query in a body and returns its weight.
func (o *outline) query(q *gojq.Query, at *body, names *binding) weight {
	if q == nil {
		return weight{}
	}
	for _, def := range q.FuncDefs {
		names = o.function(def, at, names)
	}
	if q.Term != nil {
		return o.term(q.Term, at, names)
	}
	left := o.query(q.Left, at, names)
	inner, patterns := o.patterns(q.Patterns, at, names)
	right := o.query(q.Right, at, inner)
	switch q.Op {
	case gojq.OpComma:
		return left.around(forkBytes).or(right)
	case gojq.OpAlt:
		return left.around(forkBytes + variableBytes).or(right)
	}
	return left.then(patterns).then(right)
}

func (o *outline) function(def *gojq.FuncDef, at *body, names *binding) *binding {
	f := &body{def: def, outer: at, running: true}
	names = &binding{name: signature(def.Name, len(def.Args)), function: f, outer: names}
	inner := names
	for _, arg := range def.Args {
		name, isValue := strings.CutPrefix(arg, "$")
		inner = &binding{name: signature(name, 0), home: f, outer: inner}
		if isValue {
			inner = &binding{name: arg, home: f, outer: inner}
		}
	}
	f.weight = o.query(def.Body, f, inner).around(len(def.Args) * variableBytes)
	f.running = false
	if bytes := f.weight.most(); f.recursive || bytes > freeFrame {
		o.charge(def.Body, scopeBytes+bytes)
		f.weight.kept, f.weight.open = 0, 0
	}
	return names
}

// argument reads a query that the interpreter enters as a function without a name.
func (o *outline) argument(q *gojq.Query, at *body, names *binding) weight {
	if q == nil {
		return weight{}
	}
	return o.query(q, &body{outer: at}, names).called()
}

func (o *outline) patterns(list []*gojq.Pattern, at *body, names *binding) (*binding, weight) {
	w := weight{kept: max(len(list)-1, 0) * forkBytes}
	for _, p := range list { // all names are visible in all of them
		names = patternNames(p, at, names)
	}
	for _, p := range list {
		w = w.then(o.pattern(p, at, names))
	}
	return names, w
}

func patternNames(p *gojq.Pattern, at *body, names *binding) *binding {
	if p.Name != "" {
		names = &binding{name: p.Name, home: at, outer: names}
	}
	for _, e := range p.Array {
		names = patternNames(e, at, names)
	}
	for _, kv := range p.Object {
		if strings.HasPrefix(kv.Key, "$") {
			names = &binding{name: kv.Key, home: at, outer: names}
		}
		if kv.Val != nil {
			names = patternNames(kv.Val, at, names)
		}
	}
	return names
}

func (o *outline) pattern(p *gojq.Pattern, at *body, names *binding) weight {
	w := weight{kept: 2 * variableBytes}
	for _, e := range p.Array {
		w = w.then(o.pattern(e, at, names))
	}
	for _, kv := range p.Object {
		w = w.then(o.argument(kv.KeyQuery, at, names)).then(o.text(kv.KeyString, at, names))
		if kv.Val != nil {
			w = w.then(o.pattern(kv.Val, at, names))
		}
	}
	return w
}

// text reads the parts of a string, which the interpreter adds up.
func (o *outline) text(s *gojq.String, at *body, names *binding) weight {
	w := weight{}
	if s == nil {
		return w
	}
	for _, part := range s.Queries {
		at = &body{outer: at}
		w = o.argument(part, at, names).then(w).around(argumentBytes)
	}
	return w
}

func (o *outline) index(x *gojq.Index, at *body, names *binding) weight {
	if x == nil || x.Start == nil && x.End == nil && x.Str == nil {
		return weight{}
	}
	w := o.argument(x.End, at, names).then(o.argument(x.Start, at, names)).then(o.text(x.Str, at, names))
	return w.around(argumentBytes)
}

func (o *outline) term(t *gojq.Term, at *body, names *binding) weight {
	var w weight
	for _, s := range t.SuffixList {
		if w = w.then(o.index(s.Index, at, names)); s.Iter {
			w.kept += forkBytes
		}
	}
	if t.Type == gojq.TermTypeFunc {
		return o.call(t, at, names).then(w)
	}
	return o.plainTerm(t, at, names).then(w)
}

func (o *outline) plainTerm(t *gojq.Term, at *body, names *binding) (w weight) {
	switch t.Type {
	case gojq.TermTypeIndex:
		return o.index(t.Index, at, names)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			w = w.then(o.member(kv, at, names))
		}
	case gojq.TermTypeArray:
		w = o.query(t.Array.Query, at, names).opened(forkBytes + variableBytes).collected()
	case gojq.TermTypeUnary:
		w = o.term(t.Unary.Term, at, names)
	case gojq.TermTypeString, gojq.TermTypeFormat:
		w = o.text(t.Str, at, names)
	case gojq.TermTypeIf:
		branches := o.branch(t.If.Then, at, names)
		w = o.query(t.If.Cond, at, names)
		for _, e := range t.If.Elif {
			w = w.then(o.query(e.Cond, at, names))
			branches = branches.or(o.branch(e.Then, at, names))
		}
		w = w.then(branches.or(o.branch(t.If.Else, at, names)))
	case gojq.TermTypeTry:
		w = o.query(t.Try.Body, at, names).around(2 * forkBytes).or(o.query(t.Try.Catch, at, names))
	case gojq.TermTypeReduce:
		w = o.loop(t.Reduce.Query, t.Reduce.Patterns, at, names, t.Reduce.Start, t.Reduce.Update, nil).collected()
	case gojq.TermTypeForeach:
		w = o.loop(t.Foreach.Query, t.Foreach.Patterns, at, names, t.Foreach.Start, t.Foreach.Update, t.Foreach.Extract)
	case gojq.TermTypeLabel:
		w = o.query(t.Label.Body, at, names).around(forkBytes + variableBytes)
	case gojq.TermTypeQuery:
		w = o.query(t.Query, at, names)
	}
	return w
}

// branch reads one of several ways: where a function calls itself in some of them only, these are charged for by themselves.
func (o *outline) branch(q *gojq.Query, at *body, names *binding) weight {
	w := o.query(q, at, names)
	if bytes := w.most(); bytes > callBytes && at.insideRecursion() {
		o.charge(q, bytes)
		return weight{parameters: w.parameters}
	}
	return w
}

func (o *outline) loop(source *gojq.Query, patterns []*gojq.Pattern, at *body, names *binding, start, update, extract *gojq.Query) weight {
	w := o.query(start, at, names).then(o.query(source, at, names))
	inner, bound := o.patterns(patterns, at, names)
	w = w.then(bound).then(o.query(update, at, inner)).then(o.query(extract, at, inner))
	return w.around(forkBytes + variableBytes)
}

func (o *outline) member(kv *gojq.ObjectKeyVal, at *body, names *binding) weight {
	w := o.query(kv.KeyQuery, at, names).then(o.text(kv.KeyString, at, names)).then(o.query(kv.Val, at, names))
	if b := names.find(kv.Key); b != nil && strings.HasPrefix(kv.Key, "$") && kv.Val == nil { // {$x}
		o.uses = append(o.uses, variableUse{at, b.home, func(before *gojq.Query) {
			kv.Val = group(pipe(before, variable(kv.Key), ""))
			kv.Key = strings.TrimPrefix(kv.Key, "$")
		}})
	}
	return w.around(memberBytes)
}

// call reads a call of a function, a native or a parameter, or a variable.
func (o *outline) call(t *gojq.Term, at *body, names *binding) weight {
	f := t.Func
	name := f.Name
	if !strings.HasPrefix(name, "$") {
		name = signature(name, len(f.Args))
	}
	b := names.find(name)
	if b != nil && b.home != nil {
		o.uses = append(o.uses, variableUse{at, b.home, func(before *gojq.Query) {
			*t = gojq.Term{
				Type: gojq.TermTypeQuery, SuffixList: t.SuffixList,
				Query: pipe(before, &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: f}}, ""),
			}
		}})
		if strings.HasPrefix(name, "$") {
			return weight{}
		}
		return weight{open: callBytes, parameters: 1}
	}
	called, inside := &body{loops: several[name], weight: weight{parameters: 2}}, builtinBytes
	if _, keeps := several[name]; keeps {
		called.weight.kept = builtinBytes
	}
	switch {
	case strings.HasPrefix(f.Name, nativePrefix):
		called.weight.parameters, inside = 1, 0
	case b != nil:
		called, inside = b.function, b.function.weight.open+callBytes
		o.calls = append(o.calls, callSite{f, at, called})
	}
	if called.running {
		called.recursive = true
		at.mayLoop()
	}
	if called.loops {
		at.mayLoop()
	}
	w := weight{kept: called.weight.called().kept + variableBytes}
	if b != nil {
		w.open = inside
	}
	for _, arg := range f.Args {
		a := o.argument(arg, at, names)
		times := max(called.weight.parameters, 1)
		if a.kept >= forkBytes && (called.loops || saturated(times, a.kept) > freeFrame) {
			o.charge(arg, a.most())
			a.kept, a.open = 0, min(a.open, callBytes)
		}
		a = a.opened(argumentBytes)
		w.open = max(w.open, a.opened(inside).open)
		w = w.then(weight{saturated(times, a.kept), a.open, saturated(times, a.parameters)})
	}
	return w
}

// insideRecursion reports whether a function around a body is known to call itself.
func (b *body) insideRecursion() bool {
	for b != nil && !b.recursive {
		b = b.outer
	}
	return b != nil
}

// mayLoop marks the functions around a loop.
func (b *body) mayLoop() {
	for ; b != nil && !b.loops; b = b.outer {
		b.loops = true
	}
}
