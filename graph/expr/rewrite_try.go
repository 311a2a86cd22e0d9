package expr

import "github.com/itchyny/gojq"

// The interpreter writes the text of an error before it knows whether anybody reads it, and reads the whole of the values
// that it quotes the beginning of. So each error that is caught is charged for.

// try lets what a try catches be charged for.
func (r *rewriter) try(t *gojq.Try) {
	r.query(t.Body)
	if t.Catch == nil {
		t.Catch = pipe(r.native("_caught"), call("empty"), "")
		return
	}
	r.query(t.Catch)
	t.Catch = pipe(r.native("_caught"), group(t.Catch), "")
}

// optional rewrites the last question mark of a term as the try that it is, around the suffix before it or the whole, and
// reports whether there was one. A member's name and an iteration cannot fail where there are members or parts: they need
// no try.
func (r *rewriter) optional(t *gojq.Term) bool {
	for i := len(t.SuffixList) - 1; i >= 0; i-- {
		if !t.SuffixList[i].Optional {
			continue
		}
		before, body := *t, *t
		before.SuffixList, body.SuffixList = t.SuffixList[:i:i], t.SuffixList[:i:i]
		alone := i == 0 || t.SuffixList[i-1].Optional
		if !alone {
			before.SuffixList = t.SuffixList[: i-1 : i-1]
			if last := t.SuffixList[i-1]; last.Index != nil {
				body = gojq.Term{Type: gojq.TermTypeIndex, Index: last.Index}
			} else {
				body = gojq.Term{Type: gojq.TermTypeIdentity, SuffixList: []*gojq.Suffix{last}}
			}
		}
		q := &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeTry, Try: &gojq.Try{Body: &gojq.Query{Term: &body}}}}
		if where := r.possible(&body); where != nil {
			q = &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeIf, If: &gojq.If{
				Cond: where, Then: &gojq.Query{Term: &body}, Else: call("empty"),
			}}}
		}
		if !alone {
			q = pipe(&gojq.Query{Term: &before}, q, "")
		}
		*t = gojq.Term{Type: gojq.TermTypeQuery, Query: q, SuffixList: t.SuffixList[i+1:]}
		r.term(t)
		return true
	}
	return false
}

// possible is a query that holds where a term cannot fail; nil is not known.
func (r *rewriter) possible(t *gojq.Term) *gojq.Query {
	switch {
	case t.Type == gojq.TermTypeIndex && len(t.SuffixList) == 0 && t.Index.Start == nil && !t.Index.IsSlice &&
		(t.Index.Str == nil || t.Index.Str.Queries == nil):
		return r.native("_members")
	case t.Type == gojq.TermTypeIdentity && len(t.SuffixList) == 1 && t.SuffixList[0].Iter:
		return r.native("_parts")
	}
	return nil
}
