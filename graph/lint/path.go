package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// index returns the shape at the end of a path; in is the input of the path's term.
func (w *walker) index(i *gojq.Index, of, in *shape) *shape {
	switch {
	case i.Name != "":
		return w.field(of, i.Name)
	case i.Str != nil && i.Str.Queries == nil:
		return w.field(of, i.Str.Str)
	case i.Str != nil:
		w.str(i.Str, in)
		return anything
	}
	if i.IsSlice {
		w.query(i.Start, in)
		w.query(i.End, in)
		if of.is(array | null) {
			return of
		}
		return anything
	}
	if name, ok := literal(i.Start); ok {
		return w.field(of, name)
	}
	switch at := w.query(i.Start, in); {
	case at.is(number) && of.is(array|null):
		return w.itemsOf(of).orNull()
	case at.is(number) && of.unsure && of.kinds&array != 0:
		return of.items.doubted()
	}
	return anything
}

// literal returns the text of a query that is a text without programs in it.
func literal(q *gojq.Query) (string, bool) {
	if q == nil || q.Term == nil || q.Term.Type != gojq.TermTypeString || q.Term.Str.Queries != nil || len(q.Term.SuffixList) > 0 {
		return "", false
	}
	return q.Term.Str.Str, true
}

// field is the shape of a member. One that is not there is null; of one that has been reported nothing more is.
func (w *walker) field(of *shape, name string) *shape {
	if of.kinds&object == 0 {
		if of.kinds&^null != nothing && !of.unsure && w.lenient == 0 {
			w.say(problem.ExpressionPath, fmt.Sprintf("unknown field %q: the value is %s", clip(name), of.kinds), "")
			return anything
		}
		return only(null)
	}
	member := of.members[name]
	if member == nil {
		if w.missing(of, name) {
			return anything
		}
		if member = of.rest; member == nil {
			member = only(null)
		}
	}
	if of.unsure {
		return member.doubted()
	}
	return member.orNull()
}

// missing reports a member that nothing declares: where others may be there too, only if its name is like that of one that is
// declared. It reports whether it did.
func (w *walker) missing(of *shape, name string) bool {
	if w.quiet > 0 || len(of.members) == 0 || !w.compared.take(len(of.members)) {
		return false
	}
	names := of.names()
	near := suggest.Nearest(name, names)
	if near != "" && !misspelt(name, near) && (of.rest != nil || of.unsure) && !of.fixed {
		// Of a name that may be meant beside this one, another can be the misspelt form.
		near = suggest.Nearest(name, slices.DeleteFunc(slices.Clone(names), func(other string) bool { return !misspelt(name, other) }))
	}
	switch {
	case of.rest == nil && !of.unsure:
		hint := suggest.Hint(near)
		if hint == "" {
			hint = "use " + problem.OrList(names[:min(len(names), 10)])
		}
		w.say(problem.ExpressionPath, fmt.Sprintf("no value here has the field %q", clip(name)), hint)
	case near != "" && (of.fixed || misspelt(name, near)):
		w.say(problem.ExpressionPath, fmt.Sprintf("nothing declares the field %q", clip(name)), suggest.Hint(near))
	default:
		return false
	}
	return true
}

// misspelt reports whether one name is likely to stand for another that it is near to. Short names, unless a letter is doubled, those that
// are told apart by digits, and a singular beside its plural are often both meant.
func misspelt(name, near string) bool {
	a, b := strings.ToLower(name), strings.ToLower(near)
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, s)
	}
	plural := func(one, many string) bool {
		stem, hasY := strings.CutSuffix(one, "y")
		return many == one+"s" && !strings.HasSuffix(one, "s") || many == one+"es" || hasY && many == stem+"ies"
	}
	long := len(a) > 3 && len(b) > 3 || len(b) == 3 && doubled(b, a) || len(a) == 3 && doubled(a, b)
	return long && letters(a) != letters(b) && !plural(a, b) && !plural(b, a) && !related(a, b)
}

// doubled reports whether a name is another one with one of its letters twice.
func doubled(name, other string) bool {
	for i := range name {
		if name[:i+1]+name[i:] == other {
			return true
		}
	}
	return false
}

// related reports whether one name is the other and a word more, or they differ in a whole word: is_paid, paid; first_name, last_name.
func related(a, b string) bool {
	split := func(r rune) bool { return r == '_' || r == '-' || r == '.' }
	x, y := strings.FieldsFunc(a, split), strings.FieldsFunc(b, split)
	if len(x) != len(y) {
		return strings.Join(x, "") != strings.Join(y, "")
	}
	for i := range x {
		if x[i] != y[i] && suggest.Nearest(x[i], y[i:i+1]) == "" {
			return true
		}
		if x[i] != y[i] && min(len(x[i]), len(y[i])) <= 2 {
			return true
		}
	}
	return false
}

// compare reports a comparison that always comes out the same.
func (w *walker) compare(q *gojq.Query, left, right *shape) {
	if w.quiet > 0 {
		return
	}
	for _, s := range []*shape{left, right} {
		if s.kinds&^null == nothing {
			return // a comparison with null guards against what no schema speaks of
		}
	}
	if equality := q.Op == gojq.OpEq || q.Op == gojq.OpNe; !left.unsure && !right.unsure {
		message := ""
		switch {
		case equality && left.kinds&right.kinds == nothing:
			message = "they are never equal"
		case !equality && left.kinds&right.kinds&^null == nothing && (left.kinds|right.kinds)&(array|object) == nothing:
			message = "their order says nothing of the values"
		}
		if message != "" {
			w.say(problem.ExpressionComparison, fmt.Sprintf("%s compares %s with %s: %s",
				clip(q.String()), left.kinds&^null, right.kinds&^null, message), sameKind(left, right))
			return
		}
		if !equality {
			return
		}
	}
	w.foreign(q, left, right)
}

// sameKind returns a hint for writing a literal of the other kind.
func sameKind(left, right *shape) string {
	for _, pair := range [][2]*shape{{left, right}, {right, left}} {
		if list := pair[0].texts; pair[0].is(text) && len(list) == 1 {
			other, isNumber := pair[1].kinds&^null, list[0] != "" && strings.Trim(list[0], "0123456789.") == ""
			if other == number && isNumber || other == boolean && (list[0] == "true" || list[0] == "false") {
				return fmt.Sprintf("write %s without quotes", list[0])
			}
		}
	}
	return ""
}

// foreign reports a comparison with a text that is not among those that the other side can be.
func (w *walker) foreign(q *gojq.Query, left, right *shape) {
	for _, pair := range [][2]*shape{{left, right}, {right, left}} {
		known, given := pair[0], pair[1]
		if known.texts == nil || !given.is(text) || len(given.texts) != 1 || slices.Contains(known.texts, given.texts[0]) {
			continue
		}
		if known.is(text|null) && len(known.texts) == 1 && q.Op != gojq.OpEq && q.Op != gojq.OpNe {
			continue
		}
		near := suggest.Nearest(given.texts[0], known.texts)
		if known.unsure && (near == "" || !misspelt(given.texts[0], near)) || known.kinds&text == 0 {
			continue
		}
		hint := suggest.Hint(near)
		if hint == "" {
			hint = "the values are " + quoted(known.texts)
		}
		w.say(problem.ExpressionComparison, fmt.Sprintf("%s: the value is never %q", clip(q.String()), clip(given.texts[0])), hint)
		return
	}
}

func quoted(texts []string) string {
	var list []string
	for _, s := range texts[:min(len(texts), 10)] {
		list = append(list, fmt.Sprintf("%q", clip(s)))
	}
	return problem.AndList(list)
}

func (w *walker) say(code problem.Code, message, hint string) {
	if w.quiet == 0 {
		w.report(code, message, hint)
	}
}

// clip shortens a quotation in a message.
func clip(s string) string { return problem.ClipRunes(s, 60) }
