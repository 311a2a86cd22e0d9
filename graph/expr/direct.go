package expr

import (
	"math"
	"strconv"

	"github.com/itchyny/gojq"
)

// direct evaluates a program over its input without the interpreter; ok is false where that would fail. Most programs
// of a workflow are paths and comparisons of paths with literals, and need no more.
type direct func(m *meter, in any) (v any, ok bool)

// compileDirect gives nil for a program that is not of the kinds known here: paths of names, literals, comparisons,
// and, or, and //. Each of these has exactly one output, unless it fails.
func compileDirect(q *gojq.Query) direct {
	if q == nil || q.Meta != nil || len(q.Imports) > 0 || len(q.FuncDefs) > 0 || len(q.Patterns) > 0 {
		return nil
	}
	if q.Term != nil {
		return directTerm(q.Term)
	}
	combine := directOperators[q.Op]
	if combine == nil {
		return nil
	}
	left, right := compileDirect(q.Left), compileDirect(q.Right)
	if left == nil || right == nil {
		return nil
	}
	return combine(left, right)
}

var directOperators = map[gojq.Operator]func(left, right direct) direct{
	gojq.OpEq:  directly(equals),
	gojq.OpNe:  directly(differs),
	gojq.OpLt:  directly(natives["_less/2"]),
	gojq.OpLe:  directly(natives["_lesseq/2"]),
	gojq.OpGt:  directly(natives["_greater/2"]),
	gojq.OpGe:  directly(natives["_greatereq/2"]),
	gojq.OpAnd: directAnd,
	gojq.OpOr:  directOr,
	gojq.OpAlt: directAlternative,
}

// directly applies an operator to what both sides give.
func directly(f native) func(left, right direct) direct {
	return func(left, right direct) direct {
		return func(m *meter, in any) (any, bool) {
			l, ok := left(m, in)
			if !ok {
				return nil, false
			}
			r, ok := right(m, in)
			if !ok {
				return nil, false
			}
			return f(m, nil, []any{l, r}), true
		}
	}
}

func directAnd(left, right direct) direct {
	return func(m *meter, in any) (any, bool) {
		l, ok := left(m, in)
		if !ok || !Truthy(l) {
			return false, ok
		}
		r, ok := right(m, in)
		return Truthy(r), ok
	}
}

func directOr(left, right direct) direct {
	return func(m *meter, in any) (any, bool) {
		l, ok := left(m, in)
		if !ok || Truthy(l) {
			return true, ok
		}
		r, ok := right(m, in)
		return Truthy(r), ok
	}
}

func directAlternative(left, right direct) direct {
	return func(m *meter, in any) (any, bool) {
		if l, ok := left(m, in); !ok || Truthy(l) {
			return l, ok
		}
		return right(m, in)
	}
}

func directTerm(t *gojq.Term) direct {
	switch t.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeIndex:
		return directPath(t)
	}
	if len(t.SuffixList) > 0 {
		return nil
	}
	switch t.Type {
	case gojq.TermTypeNull:
		return constantly(nil)
	case gojq.TermTypeTrue:
		return constantly(true)
	case gojq.TermTypeFalse:
		return constantly(false)
	case gojq.TermTypeString:
		if t.Str.Queries == nil {
			return constantly(t.Str.Str)
		}
	case gojq.TermTypeNumber:
		return directNumber(t.Number, 1)
	case gojq.TermTypeUnary:
		if u := t.Unary; u.Op == gojq.OpSub && u.Term.Type == gojq.TermTypeNumber && len(u.Term.SuffixList) == 0 {
			return directNumber(u.Term.Number, -1)
		}
	case gojq.TermTypeQuery:
		return compileDirect(t.Query)
	}
	return nil
}

func constantly(v any) direct { return func(*meter, any) (any, bool) { return v, true } }

func directNumber(text string, sign float64) direct {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil
	}
	return constantly(sign * f)
}

func directPath(t *gojq.Term) direct {
	var names []string
	if t.Type == gojq.TermTypeIndex {
		name, ok := literalName(t.Index)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	for _, s := range t.SuffixList {
		name, ok := literalName(s.Index)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return func(_ *meter, in any) (any, bool) {
		for _, name := range names {
			switch object := in.(type) {
			case map[string]any:
				in = object[name]
			case nil:
			default:
				return nil, false
			}
		}
		return in, true
	}
}

// literalName is the name in .name, ."name" and .["name"].
func literalName(x *gojq.Index) (string, bool) {
	switch {
	case x == nil || x.IsSlice:
		return "", false
	case x.Name != "":
		return x.Name, true
	case x.Str != nil:
		return x.Str.Str, x.Str.Queries == nil
	case x.Start == nil || x.Start.Term == nil || len(x.Start.FuncDefs) > 0:
		return "", false
	}
	key := x.Start.Term
	if key.Type != gojq.TermTypeString || len(key.SuffixList) > 0 || key.Str.Queries != nil {
		return "", false
	}
	return key.Str.Str, true
}
