package expr

import (
	"slices"
	"strings"

	"github.com/itchyny/gojq"
)

// A reduce that assigns to parts of its accumulator builds an object from a list:
//
//	reduce .items[] as $i ({}; .[$i.id] = $i | .count += 1)
//
// As written, it copies the object for every item. Where nothing can see the difference, the accumulator becomes one edit
// for the whole reduce, which changes its own copy in place:
//
//	reduce .items[] as $i ({} | _edit; updates of the edit) | _done

func (r *rewriter) reduce(t *gojq.Term) {
	loop := t.Reduce
	r.query(loop.Query)
	r.patterns(loop.Patterns)
	r.query(loop.Start)
	steps := updateSteps(loop.Update)
	if steps == nil {
		r.query(loop.Update)
		return
	}
	inPlace := true
	for _, step := range steps {
		r.query(step.Left)
		r.query(step.Right)
		inPlace = inPlace && (step.Op == gojq.OpModify || plain(step.Right, reading{input: true}))
	}
	for _, step := range steps {
		if inPlace {
			*step = *r.updateInPlace(step)
		} else {
			r.update(step)
		}
	}
	if !inPlace {
		return
	}
	loop.Start = pipe(group(loop.Start), r.native("_edit"), "")
	*t = gojq.Term{
		Type: gojq.TermTypeQuery, SuffixList: t.SuffixList,
		Query: pipe(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeReduce, Reduce: loop}}, r.native("_done"), ""),
	}
}

// updateSteps returns the updates in "update | update | …", nil if there is anything else.
func updateSteps(q *gojq.Query) []*gojq.Query {
	if q == nil || q.Term != nil || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return nil
	}
	if isUpdate(q.Op) {
		return []*gojq.Query{q}
	}
	if q.Op != gojq.OpPipe {
		return nil
	}
	left, right := updateSteps(q.Left), updateSteps(q.Right)
	if left == nil || right == nil {
		return nil
	}
	return append(left, right...)
}

func isUpdate(op gojq.Operator) bool {
	return op == gojq.OpAssign || op == gojq.OpModify || op == gojq.OpUpdateAlt || plainOperator[op] != 0
}

// updateInPlace is an update of the edit that is its input. All paths are found before the first change, because the
// search reads the edited value.
//
//	(_value | right) as $value | reduce [_value | path(left)][] as $path (.; _set($path; changed)) | _settle
func (r *rewriter) updateInPlace(q *gojq.Query) *gojq.Query {
	changed := r.changed(q)
	set := "_set"
	if q.Op != gojq.OpModify && !plain(q.Right, reading{}) {
		set = "_share"
	}
	paths := array(pipe(group(pipe(r.native("_value"), r.paths(q.Left), "")), r.native("_element"), ""))
	paths.Term.SuffixList = []*gojq.Suffix{{Iter: true}}
	update := pipe(&gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeReduce, Reduce: &gojq.Reduce{
		Query:    paths,
		Patterns: []*gojq.Pattern{{Name: pathVariable}},
		Start:    &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIdentity}},
		Update:   r.native(set, variable(pathVariable), changed),
	}}}, r.native("_settle"), "")
	if q.Op == gojq.OpModify {
		return update
	}
	return group(pipe(group(pipe(r.native("_value"), group(q.Right), "")), update, valueVariable))
}

// reading lists the permissions of a plain query: to read its input, to have other than one output, and to hold lists
// of anything.
type reading struct{ input, many, lists bool }

// plain reports whether a rewritten query is made of variables, literals and natives. Such a query has exactly one
// output unless it fails or may have many; if it may not read its input, its output shares no part with it. It may
// return false for such a query.
func plain(q *gojq.Query, may reading) bool {
	switch {
	case q == nil:
		return true
	case len(q.FuncDefs) > 0 || slices.ContainsFunc(q.Patterns, func(p *gojq.Pattern) bool { return p.Name == "" }):
		return false
	case q.Term != nil:
		return plainTerm(q.Term, may)
	}
	switch right := may; q.Op {
	case gojq.OpPipe:
		right.input = may.input || len(q.Patterns) == 0 // then its input is what the left side returns
		return plain(q.Left, may) && plain(q.Right, right)
	case gojq.OpComma:
		return may.many && plain(q.Left, may) && plain(q.Right, may)
	case gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
		return plain(q.Left, may) && plain(q.Right, may)
	}
	return false
}

// enumerated reports whether a query has at most as many outputs as there are commas in it, and one.
func enumerated(q *gojq.Query) bool {
	if q != nil && q.Op == gojq.OpComma && len(q.FuncDefs) == 0 {
		return enumerated(q.Left) && enumerated(q.Right)
	}
	return plain(q, reading{input: true, lists: true}) // what is in lists has been read before
}

func plainTerm(t *gojq.Term, may reading) bool {
	for _, s := range t.SuffixList {
		if s.Iter && !may.many || s.Index != nil && !plainIndex(s.Index, may) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeString:
		return true
	case gojq.TermTypeIdentity:
		return may.input
	case gojq.TermTypeIndex:
		return may.input && plainIndex(t.Index, may)
	case gojq.TermTypeUnary:
		return plainTerm(t.Unary.Term, may)
	case gojq.TermTypeQuery:
		return plain(t.Query, may)
	case gojq.TermTypeTry:
		return may.many && plain(t.Try.Body, may) && plain(t.Try.Catch, reading{input: true, many: true})
	case gojq.TermTypeArray:
		return may.lists || plain(t.Array.Query, reading{input: may.input, many: true})
	case gojq.TermTypeFunc:
		return plainCall(t.Func, may)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			named := kv.Val == nil && !strings.HasPrefix(kv.Key, "$")
			if named && !may.input || kv.KeyString != nil && kv.KeyString.Queries != nil ||
				!plain(kv.KeyQuery, may) || !plain(kv.Val, may) {
				return false
			}
		}
		return true
	case gojq.TermTypeIf:
		for _, e := range t.If.Elif {
			if !plain(e.Cond, may) || !plain(e.Then, may) {
				return false
			}
		}
		return plain(t.If.Cond, may) && plain(t.If.Then, may) && (t.If.Else != nil || may.input) && plain(t.If.Else, may)
	}
	return false
}

func plainIndex(x *gojq.Index, may reading) bool { return plain(x.Start, may) && plain(x.End, may) }

var operatorSignatures = func() map[string]bool {
	signatures := map[string]bool{}
	for _, name := range operatorNatives {
		signatures[signature(name, 2)] = true
	}
	return signatures
}()

// plainCall knows variables and natives. Of those only operators do not read their input.
func plainCall(f *gojq.Func, may reading) bool {
	if strings.HasPrefix(f.Name, "$") || f.Name == "empty" && may.many {
		return true
	}
	name, native := strings.CutPrefix(f.Name, nativePrefix)
	if !native || !may.input && !operatorSignatures[name] {
		return false
	}
	return !slices.ContainsFunc(f.Args, func(arg *gojq.Query) bool { return !plain(arg, may) })
}
