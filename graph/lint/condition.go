package lint

import (
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/expr"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// alwaysTrue warns of the first part of a condition that decides nothing because it is never false or null. A condition that is just
// true is a default, and no mistake.
func (l *linter) alwaysTrue(s definition.Source, condition *gojq.Query) {
	q := constantPart(condition)
	if q == nil {
		return
	}
	message, hint := fmt.Sprintf("the condition %s is always true", clip(q.String())), "write a comparison, such as .approved == true"
	switch {
	case q.Op == gojq.OpAssign || q.Op == gojq.OpModify:
		compared := &gojq.Query{Left: q.Left, Op: gojq.OpEq, Right: q.Right}
		message = fmt.Sprintf("the condition %s assigns with %s and is always true", clip(q.String()), q.Op)
		hint = fmt.Sprintf("did you mean == in %s?", clip(compared.String()))
	case q.Op != 0 && assigns(q.Op):
		message = fmt.Sprintf("the condition %s assigns with %s and is always true", clip(q.String()), q.Op)
		hint = "did you mean ==?"
	case q.Term != nil && q.Term.Type == gojq.TermTypeString:
		hint = fmt.Sprintf("compare a field with it: did you mean .FIELD == %s?", clip(q.String()))
	}
	l.warn(problem.ExpressionAlwaysTrue, s.Pointer, s.Node, message, hint)
}

// constantPart returns the first part of a condition that is never false or null, apart from a condition that is just true; nil without one.
func constantPart(q *gojq.Query) *gojq.Query {
	if q == nil || q.FuncDefs != nil {
		return nil
	}
	switch q.Op {
	case gojq.OpAnd, gojq.OpOr, gojq.OpAlt:
		part := constantPart(q.Left)
		if part == nil && (q.Op != gojq.OpAlt || neverFalse(q.Right)) {
			part = constantPart(q.Right)
		}
		return part
	case gojq.OpPipe:
		if q.Patterns == nil && isCall(q.Right, "not") {
			return constantPart(q.Left)
		}
	}
	if t := q.Term; t != nil && t.Type == gojq.TermTypeQuery && t.SuffixList == nil {
		return constantPart(t.Query)
	}
	if neverFalse(q) && !isTrue(q) {
		return q
	}
	return nil
}

func isTrue(q *gojq.Query) bool {
	return q.Op == 0 && q.Term != nil && q.Term.Type == gojq.TermTypeTrue
}

func isCall(q *gojq.Query, name string) bool {
	return q.Op == 0 && q.Term != nil && q.Term.Type == gojq.TermTypeFunc && q.Term.SuffixList == nil && q.Term.Func.Name == name
}

// assigns reports whether an operator is =, |=, or one such as +=.
func assigns(op gojq.Operator) bool {
	switch op {
	case gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
		return true
	}
	return false
}

// neverFalse reports whether a program obviously has an output that is neither false nor null, or fails.
func neverFalse(q *gojq.Query) bool {
	if q == nil || q.FuncDefs != nil {
		return false
	}
	switch {
	case assigns(q.Op):
		// Assigned to a field, the output is the object. The right side may have no output, and so has the assignment then.
		return isField(q.Left) && (q.Op == gojq.OpModify || yields(q.Right))
	case q.Op == gojq.OpPipe:
		return yields(q.Left) && neverFalse(q.Right)
	case q.Op != 0 || q.Term == nil:
		return false
	}
	t := q.Term
	if t.SuffixList != nil {
		return false
	}
	switch t.Type {
	case gojq.TermTypeTrue, gojq.TermTypeNumber, gojq.TermTypeUnary, gojq.TermTypeFormat, gojq.TermTypeArray:
		return yieldsTerm(t)
	case gojq.TermTypeString, gojq.TermTypeObject:
		return yieldsTerm(t)
	case gojq.TermTypeFunc:
		k, known := results[t.Func.Name+"/0"]
		return known && len(t.Func.Args) == 0 && k&(boolean|null) == 0
	case gojq.TermTypeQuery:
		return neverFalse(t.Query)
	case gojq.TermTypeIf:
		if !yields(t.If.Cond) || !neverFalse(t.If.Then) || !neverFalse(t.If.Else) {
			return false
		}
		for _, e := range t.If.Elif {
			if !yields(e.Cond) || !neverFalse(e.Then) {
				return false
			}
		}
		return true
	}
	return false
}

// isField reports whether the target of an assignment is obviously a field, and not the whole value, or is no path and fails.
func isField(q *gojq.Query) bool {
	switch t := q.Term; {
	case q.FuncDefs != nil:
		return false
	case t == nil && q.Op == gojq.OpPipe:
		return isField(q.Left) || isField(q.Right)
	case t == nil && q.Op == gojq.OpComma:
		return isField(q.Left) && isField(q.Right)
	case t == nil:
		return q.Op != 0 && q.Op != gojq.OpAlt && !assigns(q.Op)
	case t.Type == gojq.TermTypeQuery && t.SuffixList == nil:
		return isField(t.Query)
	}
	return q.Term.Type == gojq.TermTypeIndex || q.Term.Type == gojq.TermTypeIdentity && q.Term.SuffixList != nil
}

// yields reports whether a program obviously has an output, or fails.
func yields(q *gojq.Query) bool {
	switch {
	case q == nil || q.FuncDefs != nil || q.Patterns != nil:
		return false
	case q.Term != nil:
		return yieldsTerm(q.Term)
	}
	return yields(q.Left) && yields(q.Right)
}

func yieldsTerm(t *gojq.Term) bool {
	for _, s := range t.SuffixList {
		if s.Iter || s.Optional {
			return false
		}
	}
	switch t.Type {
	case gojq.TermTypeArray:
		return true
	case gojq.TermTypeFunc:
		_, known := results[t.Func.Name+"/0"]
		return len(t.Func.Args) == 0 && known
	case gojq.TermTypeTry, gojq.TermTypeReduce, gojq.TermTypeForeach, gojq.TermTypeLabel, gojq.TermTypeBreak:
		return false
	}
	for _, part := range expr.Parts(t) {
		if !yields(part.Query) {
			return false
		}
	}
	return true
}
