package expr

import (
	"strings"

	"github.com/itchyny/gojq"
)

// A reduce that assigns to places of the value so far is the way to build an object from a list:
//
//	reduce .items[] as $i ({}; .[$i.id] = $i | .count += 1)
//
// As it stands it copies the object for every item. Where it cannot make a difference the value so far becomes one edit
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
		inPlace = inPlace && (step.Op == gojq.OpModify || single(step.Right))
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

// updateSteps gives the updates in "update | update | …", nil if there is anything else.
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

// updateInPlace is an update of the edit that is its input. All paths are found before the first change, since finding
// the next one reads what the changes are made to.
//
//	(_value | right) as $value | reduce [_value | path(left)][] as $path (.; _set($path; changed)) | _settle
func (r *rewriter) updateInPlace(q *gojq.Query) *gojq.Query {
	changed := r.changed(q)
	set := "_set"
	if q.Op != gojq.OpModify && !apart(q.Right) {
		set = "_share"
	}
	paths := array(pipe(r.native("_value"), call("path", q.Left), ""))
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

// single reports whether a rewritten query has exactly one output unless it fails. It may say no where that is so.
func single(q *gojq.Query) bool {
	if q == nil {
		return true
	}
	if len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term == nil {
		switch q.Op {
		case gojq.OpPipe, gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
			for _, p := range q.Patterns {
				if p.Name == "" {
					return false
				}
			}
			return single(q.Left) && single(q.Right)
		}
		return false
	}
	t := q.Term
	for _, s := range t.SuffixList {
		if s.Iter || s.Optional || !singleIndex(s.Index) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber,
		gojq.TermTypeString, gojq.TermTypeArray:
		return true
	case gojq.TermTypeIndex:
		return singleIndex(t.Index)
	case gojq.TermTypeUnary:
		return single(&gojq.Query{Term: t.Unary.Term})
	case gojq.TermTypeQuery:
		return single(t.Query)
	case gojq.TermTypeFunc:
		return singleCall(t.Func)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			if !single(kv.KeyQuery) || !single(kv.Val) || kv.KeyString != nil && kv.KeyString.Queries != nil {
				return false
			}
		}
		return true
	case gojq.TermTypeIf:
		for _, e := range t.If.Elif {
			if !single(e.Cond) || !single(e.Then) {
				return false
			}
		}
		return single(t.If.Cond) && single(t.If.Then) && single(t.If.Else)
	}
	return false
}

func singleIndex(x *gojq.Index) bool { return x != nil && single(x.Start) && single(x.End) }

// singleCall knows variables and natives.
func singleCall(f *gojq.Func) bool {
	if !strings.HasPrefix(f.Name, "$") && !strings.HasPrefix(f.Name, nativePrefix) {
		return false
	}
	for _, arg := range f.Args {
		if !single(arg) {
			return false
		}
	}
	return true
}

// apart reports whether a rewritten query takes nothing from its input, so that what it gives shares no part with it.
func apart(q *gojq.Query) bool {
	if q == nil {
		return true
	}
	if len(q.FuncDefs) > 0 {
		return false
	}
	if q.Term == nil {
		if q.Op == gojq.OpPipe && len(q.Patterns) == 0 {
			return apart(q.Left)
		}
		return false
	}
	t := q.Term
	for _, s := range t.SuffixList {
		if s.Index != nil && !(apart(s.Index.Start) && apart(s.Index.End)) {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber, gojq.TermTypeString:
		return true
	case gojq.TermTypeQuery:
		return apart(t.Query)
	case gojq.TermTypeArray:
		return apart(t.Array.Query)
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			named := kv.Val == nil && !strings.HasPrefix(kv.Key, "$")
			if named || kv.KeyString != nil && kv.KeyString.Queries != nil || !apart(kv.KeyQuery) || !apart(kv.Val) {
				return false
			}
		}
		return true
	case gojq.TermTypeFunc:
		if strings.HasPrefix(t.Func.Name, "$") {
			return true
		}
		if !isOperator[t.Func.Name] {
			return false
		}
		for _, arg := range t.Func.Args {
			if !apart(arg) {
				return false
			}
		}
		return true
	}
	return false
}

// isOperator holds the names of natives that look at nothing but their arguments.
var isOperator = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range operatorNatives {
		names[nativeName(name, 2)] = true
	}
	return names
}()
