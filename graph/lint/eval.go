package lint

import (
	"maps"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// walker evaluates one jq program over the shape of its input and returns the shape of its output; of several outputs, their union.
// It reports parts that cannot be meant. A part that it does not understand has the shape anything, and gets no report.
type walker struct {
	report func(code problem.Code, message, hint string)
	// budget is the work left, compared the number of names that may still be compared, both for the whole document.
	budget, compared *budget
	depth            int
	// quiet is above 0 where nothing is reported, lenient where a failure is caught or may be prevented.
	quiet, lenient int
	// asked is how often programs have asked for the kind of a value.
	asked int
	// variables are those that are bound, functions the names that the program defines itself.
	variables map[string]*shape
	functions map[string]bool
}

// Bounds of a lint: programs beyond them are not checked.
const (
	maxWork      = 2_000_000
	maxCompared  = 1_000_000
	maxTermDepth = 500
	// maxItems is how many members .[] goes through.
	maxItems = 100
)

// query returns the shape of a query's output.
func (w *walker) query(q *gojq.Query, in *shape) *shape {
	if q == nil || w.depth > maxTermDepth || !w.budget.take(1) {
		return anything
	}
	w.depth++
	defer func() { w.depth-- }()
	if len(q.FuncDefs) > 0 {
		defer func(before map[string]bool) { w.functions = before }(w.functions)
		w.functions = maps.Clone(w.functions)
		if w.functions == nil {
			w.functions = map[string]bool{}
		}
		for _, f := range q.FuncDefs {
			w.functions[f.Name] = true
		}
	}
	if q.Term != nil {
		return w.term(q.Term, in)
	}
	switch q.Op {
	case 0:
		return in // a program of nothing
	case gojq.OpPipe:
		left := w.query(q.Left, in)
		if q.Patterns == nil {
			return w.query(q.Right, left)
		}
		defer w.bind(q.Patterns, left)()
		return w.query(q.Right, in)
	case gojq.OpComma:
		return w.union(w.query(q.Left, in), w.query(q.Right, in))
	case gojq.OpAlt:
		w.lenient++
		left := w.query(q.Left, in)
		w.lenient--
		return w.union(left.limited(all&^null), w.query(q.Right, in))
	case gojq.OpAnd, gojq.OpOr:
		doubtful := w.condition(q.Left, in)
		w.guarded(doubtful, q.Right, in)
		return only(boolean)
	case gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		w.compare(q, w.query(q.Left, in), w.query(q.Right, in))
		return only(boolean)
	case gojq.OpAdd:
		return w.sum(w.query(q.Left, in), w.query(q.Right, in))
	case gojq.OpSub, gojq.OpMul, gojq.OpDiv, gojq.OpMod:
		left, right := w.query(q.Left, in), w.query(q.Right, in)
		if left.is(number) && right.is(number) {
			return only(number)
		}
		return anything
	}
	return w.assign(q, in)
}

// sum returns the shape of the sum of two values.
func (w *walker) sum(a, b *shape) *shape {
	switch {
	case a.is(null):
		return b
	case b.is(null):
		return a
	case a.is(number) && b.is(number):
		return only(number)
	case a.is(text) && b.is(text):
		return only(text)
	case a.is(array) && b.is(array):
		return listOf(w.union(a.items, b.items))
	}
	return anything
}

// assign returns the shape of an assignment's output. Its target need not exist.
func (w *walker) assign(q *gojq.Query, in *shape) *shape {
	w.quiet++
	w.query(q.Left, in)
	w.quiet--
	var value *shape
	if q.Op == gojq.OpModify {
		value = w.query(q.Right, anything)
	} else if value = w.query(q.Right, in); q.Op != gojq.OpAssign {
		value = anything
	}
	if q.Left.Term == nil || in.kinds&object == 0 {
		return anything
	}
	t := q.Left.Term
	if t.Type != gojq.TermTypeIndex || t.Index.Name == "" {
		return anything
	}
	if len(t.SuffixList) > 0 {
		value = anything
	}
	out := *in
	out.kinds &^= null
	out.members = maps.Clone(in.members)
	if out.members == nil {
		out.members = map[string]*shape{}
	}
	w.budget.take(len(out.members))
	out.members[t.Index.Name] = value
	return &out
}

// bind sets the variables of a binding, and returns a function that removes them.
func (w *walker) bind(patterns []*gojq.Pattern, value *shape) func() {
	before := w.variables
	w.variables = maps.Clone(before)
	if w.variables == nil {
		w.variables = map[string]*shape{}
	}
	w.budget.take(len(w.variables))
	if len(patterns) > 1 {
		value = anything // any of them may match
	}
	for _, p := range patterns {
		w.pattern(p, value)
	}
	return func() { w.variables = before }
}

func (w *walker) pattern(p *gojq.Pattern, value *shape) {
	if !w.budget.take(1) {
		return
	}
	if p.Name != "" {
		w.variables[p.Name] = value
	}
	for _, element := range p.Array {
		w.pattern(element, w.itemsOf(value).orNull())
	}
	for _, member := range p.Object {
		inner := anything
		if name := member.Key; name != "" {
			bare := name
			if name[0] == '$' {
				bare = name[1:]
			}
			inner = w.field(value, bare)
			if name[0] == '$' {
				w.variables[name] = inner
			}
		}
		if member.Val != nil {
			w.pattern(member.Val, inner)
		}
	}
}

// term returns the shape of a term's output.
func (w *walker) term(t *gojq.Term, in *shape) *shape {
	caught := t.Type == gojq.TermTypeTry
	for _, s := range t.SuffixList {
		caught = caught || s.Optional
	}
	if caught {
		w.asked++
		w.lenient++
		defer func() { w.lenient-- }()
	}
	out := w.head(t, in)
	for _, s := range t.SuffixList {
		switch {
		case s.Index != nil:
			out = w.index(s.Index, out, in)
		case s.Iter:
			w.failing(".[]", out, iterated)
			out = w.itemsOf(out)
		}
	}
	return out
}

// head is the shape of a term without its suffixes.
func (w *walker) head(t *gojq.Term, in *shape) *shape {
	switch t.Type {
	case gojq.TermTypeIdentity:
		return in
	case gojq.TermTypeNull:
		return only(null)
	case gojq.TermTypeTrue, gojq.TermTypeFalse:
		return only(boolean)
	case gojq.TermTypeNumber:
		return only(number)
	case gojq.TermTypeString:
		return w.str(t.Str, in)
	case gojq.TermTypeFormat:
		if t.Str != nil {
			return w.str(t.Str, in)
		}
		return only(text)
	case gojq.TermTypeIndex:
		return w.index(t.Index, in, in)
	case gojq.TermTypeFunc:
		return w.function(t.Func, in)
	case gojq.TermTypeObject:
		return w.construct(t.Object, in)
	case gojq.TermTypeArray:
		if t.Array.Query == nil {
			return listOf(anything)
		}
		return listOf(w.query(t.Array.Query, in))
	case gojq.TermTypeUnary:
		w.term(t.Unary.Term, in)
		return only(number)
	case gojq.TermTypeIf:
		return w.choice(t.If, in)
	case gojq.TermTypeTry:
		out := w.query(t.Try.Body, in)
		if t.Try.Catch == nil {
			return out
		}
		return w.union(out, w.query(t.Try.Catch, anything))
	case gojq.TermTypeReduce:
		w.query(t.Reduce.Start, in)
		defer w.bind(t.Reduce.Patterns, w.query(t.Reduce.Query, in))()
		w.query(t.Reduce.Update, anything)
		return anything
	case gojq.TermTypeForeach:
		w.query(t.Foreach.Start, in)
		defer w.bind(t.Foreach.Patterns, w.query(t.Foreach.Query, in))()
		w.query(t.Foreach.Update, anything)
		if t.Foreach.Extract != nil {
			w.query(t.Foreach.Extract, anything)
		}
		return anything
	case gojq.TermTypeLabel:
		return w.query(t.Label.Body, in)
	case gojq.TermTypeBreak:
		return &shape{}
	case gojq.TermTypeQuery:
		return w.query(t.Query, in)
	}
	return anything
}

func (w *walker) choice(t *gojq.If, in *shape) *shape {
	doubtful := w.condition(t.Cond, in)
	out := w.guarded(doubtful, t.Then, in)
	for _, e := range t.Elif {
		doubtful = w.condition(e.Cond, in) || doubtful
		out = w.union(out, w.guarded(doubtful, e.Then, in))
	}
	if t.Else == nil {
		return w.union(out, in)
	}
	return w.union(out, w.guarded(doubtful, t.Else, in))
}

// str is the shape of a text, perhaps with programs in it.
func (w *walker) str(s *gojq.String, in *shape) *shape {
	if s.Queries == nil {
		return oneOf(s.Str)
	}
	for _, q := range s.Queries {
		w.query(q, in)
	}
	return only(text)
}

// construct is the shape of an object that is written out.
func (w *walker) construct(o *gojq.Object, in *shape) *shape {
	out := record(make(map[string]*shape, len(o.KeyVals)))
	for _, kv := range o.KeyVals {
		name, known := kv.Key, kv.Key != ""
		switch {
		case kv.KeyQuery != nil:
			w.query(kv.KeyQuery, in)
		case kv.KeyString != nil && kv.KeyString.Queries == nil:
			name, known = kv.KeyString.Str, true
		case kv.KeyString != nil:
			w.str(kv.KeyString, in)
		}
		var value *shape
		switch {
		case kv.Val != nil:
			value = w.query(kv.Val, in)
		case known && name != "" && name[0] == '$':
			value = w.variable(name)
			name = name[1:]
		case known:
			if value = w.field(in, name); in.members[name] == nil {
				known = false // a name that has been reported is none to compare others with
			}
		}
		switch {
		case value == nil || !known:
			out.rest = anything
		case kv.Val != nil && name != "" && name[0] == '$' && kv.KeyString == nil:
			out.rest = anything // the value of the variable is the name
		default:
			out.members[name] = value
		}
	}
	return out
}

func (w *walker) variable(name string) *shape {
	if s := w.variables[name]; s != nil {
		return s
	}
	return anything
}

func (w *walker) union(a, b *shape) *shape { return union(a, b, w.budget, 0) }

// itemsOf returns the shape of the output of .[].
func (w *walker) itemsOf(s *shape) *shape {
	out := &shape{}
	if s.kinds&array != 0 {
		out = s.items
	}
	if s.kinds&object != 0 {
		if s.rest != nil {
			out = w.union(out, s.rest)
		}
		if len(s.members) > maxItems || !w.budget.take(len(s.members)) {
			return anything
		}
		for _, name := range s.names() {
			out = w.union(out, s.members[name])
		}
	}
	if s.unsure {
		out = out.doubted()
	}
	return out
}
