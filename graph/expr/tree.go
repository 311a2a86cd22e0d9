package expr

import "github.com/itchyny/gojq"

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
