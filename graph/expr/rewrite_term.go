package expr

import (
	"math"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

func (r *rewriter) term(t *gojq.Term) {
	if t == nil || r.optional(t) || r.touch(t) {
		return
	}
	r.suffixes(t.SuffixList)
	switch t.Type {
	case gojq.TermTypeIndex:
		r.index(t.Index)
	case gojq.TermTypeRecurse:
		t.Type, t.Func = gojq.TermTypeFunc, &gojq.Func{Name: "_recurse"}
		r.free["_recurse/0"] = true
	case gojq.TermTypeFunc:
		if r.call(t.Func); t.Func.Name == "path" && len(t.Func.Args) == 1 {
			*t = gojq.Term{Type: gojq.TermTypeQuery, Query: r.paths(t.Func.Args[0]), SuffixList: t.SuffixList}
		}
	case gojq.TermTypeObject:
		for _, kv := range t.Object.KeyVals {
			r.member(kv)
		}
		r.held(t)
	case gojq.TermTypeArray:
		r.list(t)
	case gojq.TermTypeNumber:
		t.Number = doubleText(t.Number)
	case gojq.TermTypeUnary:
		r.term(t.Unary.Term)
	case gojq.TermTypeFormat:
		r.format(t)
	case gojq.TermTypeString:
		r.string(t, "@text")
	case gojq.TermTypeIf:
		r.query(t.If.Cond)
		r.query(t.If.Then)
		for _, e := range t.If.Elif {
			r.query(e.Cond)
			r.query(e.Then)
		}
		r.query(t.If.Else)
	case gojq.TermTypeTry:
		r.try(t.Try)
	case gojq.TermTypeReduce:
		r.reduce(t)
	case gojq.TermTypeForeach:
		r.query(t.Foreach.Query)
		r.patterns(t.Foreach.Patterns)
		r.query(t.Foreach.Start)
		r.query(t.Foreach.Update)
		r.query(t.Foreach.Extract)
	case gojq.TermTypeLabel:
		r.query(t.Label.Body)
	case gojq.TermTypeQuery:
		r.query(t.Query)
	}
}

// list lets a list be counted: as a whole where the text tells how long it is, else element by element, since the
// interpreter has all of it in memory before it is complete.
func (r *rewriter) list(t *gojq.Term) {
	if r.query(t.Array.Query); enumerated(t.Array.Query) {
		r.held(t)
		return
	}
	t.Array.Query = pipe(group(t.Array.Query), r.native("_element"), "")
	r.counted(t, "_complete")
}

// held lets a list or an object that the interpreter makes be counted.
func (r *rewriter) held(t *gojq.Term) { r.counted(t, "_held") }

func (r *rewriter) counted(t *gojq.Term, native string) {
	made := *t
	made.SuffixList = nil
	*t = gojq.Term{Type: gojq.TermTypeQuery, Query: pipe(&gojq.Query{Term: &made}, r.native(native), ""), SuffixList: t.SuffixList}
}

// touch adds charges for iterations, slices and positions, and reports whether there was one: the term before the
// last of them becomes a group that touches its value, which is invisible to paths.
func (r *rewriter) touch(t *gojq.Term) bool {
	for i := len(t.SuffixList) - 1; i >= 0; i-- {
		s := t.SuffixList[i]
		native := "_touch"
		if !s.Iter && (s.Index == nil || !s.Index.IsSlice) {
			if s.Index == nil || !positional(s.Index) {
				continue
			}
			native = "_indexed"
		}
		inner := *t
		inner.SuffixList = t.SuffixList[:i:i]
		r.term(&inner)
		r.suffixes(t.SuffixList[i:])
		*t = gojq.Term{
			Type: gojq.TermTypeQuery, Query: pipe(&gojq.Query{Term: &inner}, r.native(native), ""),
			SuffixList: t.SuffixList[i:],
		}
		return true
	}
	if t.Type != gojq.TermTypeIndex || !t.Index.IsSlice && !positional(t.Index) {
		return false
	}
	native := "_touch"
	if !t.Index.IsSlice {
		native = "_indexed"
	}
	r.index(t.Index)
	r.suffixes(t.SuffixList)
	*t = gojq.Term{
		Type: gojq.TermTypeQuery, Query: r.native(native),
		SuffixList: append([]*gojq.Suffix{{Index: t.Index}}, t.SuffixList...),
	}
	return true
}

func (r *rewriter) suffixes(list []*gojq.Suffix) {
	for _, s := range list {
		if s.Index != nil {
			r.index(s.Index)
		}
	}
}

func (r *rewriter) index(x *gojq.Index) {
	if x.Str != nil {
		if q := r.text(x.Str, "@text"); q != nil {
			x.Str, x.Start = nil, q
		}
		return
	}
	literal := x.Start != nil && x.Start.Term != nil && x.Start.Term.Type == gojq.TermTypeNumber
	r.query(x.Start)
	r.query(x.End)
	if positional(x) && !literal {
		x.Start = pipe(group(x.Start), r.native("_key"), "")
	}
}

// positional reports whether an index may be other than a member's name.
func positional(x *gojq.Index) bool {
	return !x.IsSlice && x.Start != nil && (x.Start.Term == nil || x.Start.Term.Type != gojq.TermTypeString)
}

func (r *rewriter) call(f *gojq.Func) {
	for _, arg := range f.Args {
		r.query(arg)
	}
	if strings.HasPrefix(f.Name, "$") {
		return
	}
	key := signature(f.Name, len(f.Args))
	for s := r.scope; s != nil; s = s.outer {
		if s.name == key {
			if s.rename != "" {
				f.Name = s.rename
			}
			return
		}
	}
	if strings.HasPrefix(f.Name, "_") && !r.inPrelude {
		r.fail(f.Name, "function not defined: %s", key)
		return
	}
	if key == "getpath/1" { // paths know the interpreter's own
		f.Args[0] = pipe(group(f.Args[0]), r.native("_path"), "")
	}
	if native, ok := natives[key]; ok {
		r.natives[key] = native
		f.Name = nativeName(f.Name, len(f.Args))
		return
	}
	r.free[key] = true
}

func (r *rewriter) member(kv *gojq.ObjectKeyVal) {
	r.query(kv.KeyQuery)
	r.query(kv.Val)
	if kv.KeyString == nil {
		return
	}
	if kv.Val != nil {
		if q := r.text(kv.KeyString, "@text"); q != nil {
			kv.KeyString, kv.KeyQuery = nil, q
		}
		return
	}
	// {"…\(x)…"} takes the value from under the same name. Only the parts can be charged for here.
	for i, part := range kv.KeyString.Queries {
		if part.Term == nil || part.Term.Str == nil {
			r.query(part)
			kv.KeyString.Queries[i] = pipe(group(part), r.formatter("@text"), "")
			kv.KeyString.Queries[i] = group(kv.KeyString.Queries[i])
		}
	}
}

func (r *rewriter) patterns(list []*gojq.Pattern) {
	for _, p := range list {
		r.patterns(p.Array)
		for _, kv := range p.Object {
			if r.query(kv.KeyQuery); kv.KeyQuery != nil {
				kv.KeyQuery = group(pipe(group(kv.KeyQuery), r.native("_name"), ""))
			}
			if kv.KeyString != nil && kv.Val != nil {
				if q := r.text(kv.KeyString, "@text"); q != nil {
					kv.KeyString, kv.KeyQuery = nil, q
				}
			}
			if kv.Val != nil {
				r.patterns([]*gojq.Pattern{kv.Val})
			}
		}
	}
}

// format rewrites @name and @name "…\(x)…".
func (r *rewriter) format(t *gojq.Term) {
	if t.Str == nil {
		t.Type, t.Query, t.Format = gojq.TermTypeQuery, r.formatter(t.Format), ""
		return
	}
	format := t.Format
	t.Type, t.Format = gojq.TermTypeString, ""
	r.string(t, format)
}

func (r *rewriter) string(t *gojq.Term, format string) {
	if q := r.text(t.Str, format); q != nil {
		t.Type, t.Str, t.Query = gojq.TermTypeQuery, nil, q
	}
}

// text returns the sum of the parts of a string with interpolations, nil for one without.
func (r *rewriter) text(s *gojq.String, format string) *gojq.Query {
	if s.Queries == nil {
		r.strings[s.Str] = true
		return nil
	}
	var sum *gojq.Query
	for _, part := range s.Queries {
		if part.Term == nil || part.Term.Str == nil {
			r.query(part)
			part = pipe(group(part), r.formatter(format), "")
		}
		if sum == nil {
			sum = part
		} else {
			sum = r.native("_add", sum, part)
		}
	}
	return sum
}

// formatter is the function behind @name.
func (r *rewriter) formatter(format string) *gojq.Query {
	switch format {
	case "@text":
		return r.native("tostring")
	case "@json":
		return r.native("tojson")
	}
	return r.native("format", &gojq.Query{
		Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: strings.TrimPrefix(format, "@")}},
	})
}

// doubleText writes an integer beyond 2^53 so that the interpreter takes it for a double.
func doubleText(text string) string {
	if strings.ContainsAny(text, ".eE") {
		return text
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.Abs(f) < maxExactInt {
		return text
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

// The interpreter writes the text of each error, even of one that is not read, and reads the whole of the values
// whose beginning it quotes. So each caught error is charged for.

// try adds the charge for a caught error.
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
