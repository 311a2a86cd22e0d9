package expr

import (
	"sync"

	"github.com/itchyny/gojq"
)

// Program is a compiled jq program, safe for concurrent use.
type Program struct {
	src string
	// err is the error of every evaluation, nil for a program that compiled.
	err error
	// query is the rewritten program, natives are those that it calls, strings its literals.
	query   *gojq.Query
	natives map[string]native
	strings map[string]bool

	// tree is the program as parsed, once it was asked for (Tree).
	parse sync.Once
	tree  *gojq.Query

	mu sync.Mutex
	// idle are instances that no evaluation uses. There are as many as there were evaluations at a time.
	idle []*instance
}

// instance is a program compiled together with the meter that its natives charge. It serves one evaluation at a time.
type instance struct {
	code  *gojq.Code
	meter *meter
}

// Failing returns a program that fails with err whenever it is evaluated.
func Failing(src string, err error) *Program { return &Program{src: src, err: err} }

// Identity returns the program ".".
func Identity() *Program { return identity() }

var identity = sync.OnceValue(func() *Program {
	p, err := Compile(".")
	if err != nil {
		panic("expr: " + err.Error())
	}
	return p
})

// Source is the program's text.
func (p *Program) Source() string { return p.src }

// Truthy is jq's truth: all but nil and false (spec: execution, 4.3).
func Truthy(v any) bool { return v != nil && v != false }

// acquire returns an instance for one evaluation; release takes it back.
func (p *Program) acquire() (*instance, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		i := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return i, nil
	}
	p.mu.Unlock()
	return p.newInstance()
}

// maxIdle instances are kept; a burst of evaluations does not hold its memory for ever.
const maxIdle = 16

func (p *Program) release(i *instance) {
	*i.meter = meter{} // it must not keep values alive
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) < maxIdle {
		p.idle = append(p.idle, i)
	}
}

// Tree returns the program as parsed, nil for one that does not compile. Analyses share it and must not change it; it is parsed on
// the first call, because compiling rewrites the tree that it starts from.
func (p *Program) Tree() *gojq.Query {
	p.parse.Do(func() {
		if p.err == nil {
			p.tree, _ = gojq.Parse(p.src)
		}
	})
	return p.tree
}

// Part is a query inside a term.
type Part struct {
	*gojq.Query
	// SameInput is set if the query has the input of the term. An argument of a function may have another one.
	SameInput bool
	// Multiplies is set if the term has an output for each output of the query.
	Multiplies bool
}

// Parts lists the queries directly inside a term, except for those in patterns of bindings.
func Parts(t *gojq.Term) (parts []Part) {
	add := func(q *gojq.Query, sameInput, multiplies bool) {
		if q != nil {
			parts = append(parts, Part{q, sameInput, multiplies})
		}
	}
	text := func(s *gojq.String) {
		if s != nil {
			for _, q := range s.Queries {
				add(q, true, false)
			}
		}
	}
	index := func(x *gojq.Index) {
		if x != nil {
			add(x.Start, true, false)
			add(x.End, true, false)
			text(x.Str)
		}
	}
	index(t.Index)
	text(t.Str)
	switch t.Type {
	case gojq.TermTypeFunc:
		for _, q := range t.Func.Args {
			add(q, false, false)
		}
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			text(kv.KeyString)
			add(kv.KeyQuery, true, false)
			add(kv.Val, true, true)
		}
	case gojq.TermTypeArray:
		add(t.Array.Query, true, false)
	case gojq.TermTypeUnary:
		add(&gojq.Query{Term: t.Unary.Term}, true, true)
	case gojq.TermTypeIf:
		add(t.If.Cond, true, true)
		add(t.If.Then, true, true)
		for _, e := range t.If.Elif {
			add(e.Cond, true, true)
			add(e.Then, true, true)
		}
		add(t.If.Else, true, true)
	case gojq.TermTypeTry:
		add(t.Try.Body, true, true)
		add(t.Try.Catch, false, false)
	case gojq.TermTypeReduce:
		add(t.Reduce.Query, true, false)
		add(t.Reduce.Start, true, false)
		add(t.Reduce.Update, false, false)
	case gojq.TermTypeForeach:
		add(t.Foreach.Query, true, false)
		add(t.Foreach.Start, true, false)
		add(t.Foreach.Update, false, false)
		add(t.Foreach.Extract, false, false)
	case gojq.TermTypeLabel:
		add(t.Label.Body, true, false)
	case gojq.TermTypeQuery:
		add(t.Query, true, true)
	}
	for _, s := range t.SuffixList {
		index(s.Index)
	}
	return parts
}
