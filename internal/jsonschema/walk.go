package jsonschema

import (
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// over is where a check would go beyond MaxCheck or MaxCheckBytes.
type over struct {
	schema *lib.Schema
	memory bool
}

// check reports whether checking v would take too much, nil if not.
func (p *prices) check(root *lib.Schema, v any) *over {
	if most := p.most.steps; jsonvalue.Weigh(v, small/most+1) <= small/most {
		return nil
	}
	w := walk{prices: p, left: MaxCheck}
	w.visit(root, v, at{})
	return w.over
}

// walk follows schema and value.
type walk struct {
	*prices
	left int
	over *over
	// scope are the schemas that are being visited, the outermost first.
	scope []*lib.Schema
}

// at is the place of a visit.
type at struct {
	// same is how many schemas of the scope visit the same value.
	same int
	// location and path are the lengths of the pointers to the value and to the schema.
	location, path int
	// held is the memory of the visits of the scope.
	held int
}

func (a at) below(keyword, name int) at {
	return at{location: a.location + name + 1, path: a.path + keyword, held: a.held}
}

func (a at) inPlace(keyword int) at {
	a.same++
	a.path += keyword
	return a
}

// take counts steps of a schema.
func (w *walk) take(s *lib.Schema, steps int) {
	if w.left -= steps; w.left < 0 && w.over == nil {
		w.over = &over{schema: s}
	}
}

// hold checks memory that a visit of a schema would hold.
func (w *walk) hold(s *lib.Schema, bytes int) {
	if bytes > MaxCheckBytes && w.over == nil {
		w.over = &over{schema: s, memory: true}
	}
}

// keywordLength is the length of a step of the path to a schema that has no name: about that of a keyword.
const keywordLength = 12

// visit counts the check of v against s, and returns the memory that the errors may take: 0 if v is certainly valid.
func (w *walk) visit(s *lib.Schema, v any, a at) (errs int) {
	if s == nil || w.over != nil || slices.Contains(w.scope[len(w.scope)-a.same:], s) {
		return 0 // the library answers the last with an error at once
	}
	own := w.own[s]
	steps := visitSteps + len(w.scope)/4 + a.location/32
	switch v := v.(type) {
	case []any:
		steps += elementSteps * len(v)
		a.held += elementBytes * len(v)
	case map[string]any:
		steps += own.names + memberSteps*len(v)
		a.held += memberBytes * len(v)
	}
	w.take(s, steps)
	w.hold(s, a.held)
	one := errorBytes + 2*(a.path+a.location+len(s.Location))
	fail := func() {
		w.take(s, errorSteps+a.path*len(w.scope)/400+(a.path+a.location)/16)
		errs += one
	}
	switch {
	case s.Always != nil && *s.Always:
		return 0
	case s.Always != nil, len(s.Types) > 0 && !hasType(s.Types, v):
		fail()
		return errs
	}
	w.scope = append(w.scope, s)
	if w.mayDiffer(s, own.keywords, v) {
		fail()
	}
	switch v := v.(type) {
	case map[string]any:
		errs += w.object(s, own, v, a, fail)
	case []any:
		errs += w.list(s, own.keywords, v, a, fail)
	case string:
		if own.width > 0 {
			w.take(s, matchPrice(v, own.width))
			fail()
		}
		if s.Format != "" {
			w.take(s, formatPrice(v))
			fail()
		}
		if s.MinLength != -1 || s.MaxLength != -1 {
			w.take(s, len(v)/16)
			if n := utf8.RuneCountInString(v); n < s.MinLength || s.MaxLength != -1 && n > s.MaxLength {
				fail()
			}
		}
	case float64:
		w.number(s, own, v, fail)
	}
	if own.sameValue {
		errs += w.inPlace(s, v, a, fail)
	}
	if errs > one {
		fail() // the one that groups them
	}
	w.hold(s, a.held+errs)
	w.scope = w.scope[:len(w.scope)-1]
	return errs
}

// mayDiffer counts const and enum, and reports whether v may differ from all of their values.
func (w *walk) mayDiffer(s *lib.Schema, k *keywords, v any) (differs bool) {
	for _, set := range []*values{k.isConst, k.inEnum} {
		if set == nil {
			continue
		}
		w.take(s, lookupSteps)
		if !isScalar(v) && len(set.texts) > 0 {
			w.takeText(s, v)
			differs = true
		} else if _, found := set.find(v); !found {
			differs = true
		}
	}
	if n := len(s.Enum) + len(s.Constant); n > 0 {
		w.take(s, n*numberSteps)
		return true
	}
	return differs
}

// takeText counts the canonical text of a value.
func (w *walk) takeText(s *lib.Schema, v any) {
	w.take(s, matchSteps+jsonvalue.Weigh(v, max(w.left, 1)))
}

func (w *walk) number(s *lib.Schema, own *ownPrice, v float64, fail func()) {
	if own.numbers == 0 {
		return
	}
	steps := own.numbers
	if size := max(v, -v); size != 0 && (size > 1e40 || size < 1e-40) {
		steps *= 12
	}
	w.take(s, steps)
	if v < own.least || v > own.most || v <= own.above || v >= own.under || s.MultipleOf != nil {
		fail()
	}
}

func (w *walk) object(s *lib.Schema, own *ownPrice, object map[string]any, a at, fail func()) (errs int) {
	if len(object) < s.MinProperties || s.MaxProperties != -1 && len(object) > s.MaxProperties {
		fail()
	}
	for _, name := range own.keywords.required {
		w.take(s, lookupSteps)
		if _, found := object[name]; !found {
			fail()
			break
		}
	}
	for _, name := range s.Required { // of a meta-schema
		w.take(s, errorSteps+len(name))
	}
	for name, needed := range s.DependentRequired {
		errs += w.needs(s, object, name, needed, a)
	}
	for name, sub := range s.Dependencies {
		if needed, ok := sub.([]string); ok {
			errs += w.needs(s, object, name, needed, a)
		}
	}
	members := own.members
	listed, most := 0, 0
	member := func(sub *lib.Schema, name string, v any) {
		n := w.visit(sub, v, a.below(keywordLength+len(name), len(name)))
		if name == "" && n > 0 {
			n += errorBytes + 3*len(sub.Location) // one more (checkMember)
		}
		listed, most = listed+n, max(most, n)
	}
	stray := 0
	for name, v := range object {
		if w.over != nil {
			return errs
		}
		known := false
		if sub := s.Properties[name]; sub != nil {
			known = true
			errs += w.visit(sub, v, a.below(keywordLength+len(name), len(name)))
		}
		for i := range own.patterns {
			p := &own.patterns[i]
			w.take(s, matchPrice(name, p.width))
			if p.re == nil || p.re.MatchString(name) {
				known = known || p.re != nil
				member(p.schema, name, v)
			}
		}
		if s.PropertyNames != nil {
			member(s.PropertyNames, name, name)
		}
		additional := s.AdditionalProperties
		if members != nil {
			additional = members.additional
			member(members.names, name, name)
		}
		if known {
			continue
		}
		switch sub := additional.(type) {
		case *lib.Schema:
			member(sub, name, v)
		case bool:
			if !sub {
				stray += errorSteps/2 + len(name)
			}
		case nil:
			if s.UnevaluatedProperties != nil {
				errs += w.visit(s.UnevaluatedProperties, v, a.below(keywordLength, len(name)))
			}
		}
	}
	if stray > 0 {
		w.take(s, stray)
		fail()
		errs += stray
	}
	if members != nil {
		listed = min(listed, maxCollected+most)
	}
	return errs + listed
}

// needs counts the names that a member asks for beside it.
func (w *walk) needs(s *lib.Schema, object map[string]any, name string, needed []string, a at) (errs int) {
	if _, found := object[name]; !found {
		return 0
	}
	for _, other := range needed {
		w.take(s, lookupSteps)
		if _, found := object[other]; !found {
			w.take(s, errorSteps)
			errs += errorBytes + 2*(a.path+a.location+len(s.Location)+len(name)) + len(other)
		}
	}
	return errs
}

func (w *walk) list(s *lib.Schema, k *keywords, list []any, a at, fail func()) (errs int) {
	if len(list) < s.MinItems || s.MaxItems != -1 && len(list) > s.MaxItems {
		fail()
	}
	if k.unique || s.UniqueItems {
		fail()
		w.hold(s, a.held+itemBytes*len(list))
		for _, e := range list {
			if w.take(s, matchSteps); !isScalar(e) || s.UniqueItems {
				w.takeText(s, e)
			}
		}
	}
	prefix, rest, contains := s.PrefixItems, s.Items2020, s.Contains
	switch items := s.Items.(type) { // of older drafts
	case *lib.Schema:
		rest = items
	case []*lib.Schema:
		prefix = items
		rest, _ = s.AdditionalItems.(*lib.Schema)
	}
	if k.items != nil {
		rest = k.items
	}
	if k.contains != nil {
		contains = k.contains
	}
	listed, most := 0, 0
	for i, e := range list {
		if w.over != nil {
			return errs
		}
		below := a.below(keywordLength, 6)
		if i < len(prefix) {
			errs += w.visit(prefix[i], e, below)
		} else if rest != nil {
			n := w.visit(rest, e, below)
			listed, most = listed+n, max(most, n)
		} else if s.UnevaluatedItems != nil {
			errs += w.visit(s.UnevaluatedItems, e, below)
		}
		if n := w.visit(contains, e, below); k.contains == nil {
			errs += n
		}
	}
	if contains != nil {
		fail()
	}
	if k.items != nil {
		listed = min(listed, maxCollected+most)
	}
	return errs + listed
}

// inPlace counts the schemas that apply to the same value.
func (w *walk) inPlace(s *lib.Schema, v any, a at, fail func()) (errs int) {
	same := func(sub *lib.Schema, name int) int { return w.visit(sub, v, a.inPlace(keywordLength+name)) }
	errs += same(s.Ref, 0) + same(s.RecursiveRef, 0)
	if s.DynamicRef != nil {
		for _, target := range w.dynamic(s.DynamicRef) {
			errs += same(target, 0)
		}
	}
	if s.Not != nil {
		same(s.Not, 0)
		fail()
	}
	for _, sub := range s.AllOf {
		errs += same(sub, 0)
	}
	anyOf, oneOf, passes := 0, 0, len(s.AnyOf) == 0
	for _, sub := range s.AnyOf {
		n := same(sub, 0)
		anyOf, passes = anyOf+n, passes || n == 0
	}
	if !passes {
		errs += anyOf
	}
	for _, sub := range s.OneOf {
		oneOf += same(sub, 0)
	}
	if len(s.OneOf) > 0 {
		errs += oneOf
		fail()
	}
	if s.If != nil {
		same(s.If, 0)
		errs += max(same(s.Then, 0), same(s.Else, 0))
	}
	object, _ := v.(map[string]any)
	for name := range object {
		errs += same(s.DependentSchemas[name], len(name))
		if sub, ok := s.Dependencies[name].(*lib.Schema); ok {
			errs += same(sub, len(name))
		}
	}
	return errs
}

// dynamic returns the schemas that a $dynamicRef may lead to: those with its anchor in the outermost document of the scope that has one.
func (w *walk) dynamic(target *lib.Schema) []*lib.Schema {
	for _, s := range w.scope {
		if found := w.anchors[[2]string{document(s), target.DynamicAnchor}]; len(found) > 0 {
			return found
		}
	}
	return []*lib.Schema{target}
}

// hasType reports whether a value has one of these types. A value that is not JSON counts as a number.
func hasType(types []string, v any) bool {
	name := jsonvalue.KindOf(v).String()
	f, _ := v.(float64)
	for _, t := range types {
		if t == name || t == "integer" && name == "number" && f == math.Trunc(f) {
			return true
		}
	}
	return false
}

// violation names the part of the schema that is too expensive, and a fix.
func (o *over) violation() []Violation {
	what, limit := "steps", MaxCheck
	if o.memory {
		what, limit = "bytes of memory", MaxCheckBytes
	}
	vs := wholeValue("limit", "cannot be checked: the value is too large for this schema, whose part "+fragment(o.schema.Location)+
		" may take more than "+strconv.Itoa(limit)+" "+what+"; send fewer elements or members, or ask less of each in the schema")
	vs[0].SchemaPath, vs[0].Params = fragment(o.schema.Location), map[string]any{"limit": float64(limit)}
	return vs
}
