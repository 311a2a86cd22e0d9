package jsonschema

import (
	"maps"
	"math"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// The library cannot be stopped and keeps all errors until it ends. So the cost of a check is counted before it
// begins: the walk (walk.go) follows schema and value as the library does and adds up the steps of each visit of a
// value by a schema, and the memory that the library may hold at one time. It takes a small part of the time of the
// check. Where the outcome depends on the check (whether a pattern matches, which alternative applies), the walk
// assumes the dearer case.
//
// Multiplying the effort of a place by the size of the value cannot replace the walk: the product is larger for
// 500,000 integers, which pass in a second, than for 20,000 multiples of a tiny number, which take five, and it
// leaves out long paths, which take gigabytes.
const (
	// MaxCheck bounds the steps of one check. A step is 10 to 20 ns.
	MaxCheck = 60_000_000
	// MaxCheckBytes bounds the memory of one check at one time, errors included.
	MaxCheckBytes = 96 << 20
	// small is the number of steps below which nothing is counted: the effort of a place, times the size of the value.
	small = 8 << 20
)

// Measured steps of the library (BenchmarkPrice).
const (
	visitSteps   = 25 // one schema at one value
	elementSteps = 5  // noting that an element is not evaluated yet
	memberSteps  = 9  // the same of a member
	numberSteps  = 35 // a number made a fraction
	errorSteps   = 30 // one error
	lookupSteps  = 2  // one name of a schema, looked up in an object
	matchSteps   = 10 // one match of an empty text, or one value of a set
)

// Memory of the library while it visits a value.
const (
	elementBytes = 24
	memberBytes  = 48
	itemBytes    = 64 // of a list whose elements must be unique
)

// ownPrice is the price of one visit of a schema that does not depend on the value.
type ownPrice struct {
	// names is the price of the names of the schema, in the visit of an object; bound is the largest price of a
	// visit for each byte of a value.
	names, bound int
	// width of the pattern (patternWidth); 0 without one.
	width int
	// numbers is the price of keywords about numbers; the others are their bounds.
	numbers                   int
	least, most, above, under float64
	// patterns are those of members.
	patterns []pricedPattern
	keywords *keywords
	// members may be nil.
	members *membersKeyword
	// sameValue is set if other schemas apply to the same value.
	sameValue bool
}

type pricedPattern struct {
	// re is nil for a pattern that the other engine runs; it is taken to match.
	re     *regexp.Regexp
	width  int
	schema *lib.Schema
}

// prices are the prices of the subschemas of one schema.
type prices struct {
	own map[*lib.Schema]*ownPrice
	// anchors are the schemas with a $dynamicAnchor, by document and name.
	anchors map[[2]string][]*lib.Schema
	// most is the greatest effort of a place.
	most effort
}

func newPrices(all locations) *prices {
	p := &prices{own: make(map[*lib.Schema]*ownPrice, len(all)), anchors: map[[2]string][]*lib.Schema{}}
	for _, s := range all {
		p.own[s] = priceOf(s)
		if s.DynamicAnchor != "" {
			key := [2]string{document(s), s.DynamicAnchor}
			p.anchors[key] = append(p.anchors[key], s)
		}
	}
	p.most = p.effort(all)
	return p
}

// document is the address of the document of a schema.
func document(s *lib.Schema) string {
	doc, _, _ := strings.Cut(s.Location, "#")
	return doc
}

func priceOf(s *lib.Schema) *ownPrice {
	n := &ownPrice{names: lookupSteps * (len(s.Properties) + len(s.DependentRequired) + len(s.DependentSchemas) + len(s.Dependencies))}
	n.least, n.most = bound(s.Minimum, math.Inf(-1)), bound(s.Maximum, math.Inf(1))
	n.above, n.under = bound(s.ExclusiveMinimum, math.Inf(-1)), bound(s.ExclusiveMaximum, math.Inf(1))
	n.keywords = keywordsOf(s)
	n.members, _ = s.Extensions[membersName].(*membersKeyword)
	n.sameValue = s.Ref != nil || s.RecursiveRef != nil || s.DynamicRef != nil || s.Not != nil || s.If != nil ||
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.DependentSchemas)+len(s.Dependencies) > 0
	if s.Pattern != nil {
		n.width = max(1, patternWidth(s.Pattern.String()))
	} else if k, ok := s.Extensions[patternName].(*patternKeyword); ok {
		n.width = max(1, patternWidth(k.source))
	}
	for _, t := range s.Types {
		if t == "integer" {
			n.numbers += numberSteps
		}
	}
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil {
		n.numbers += numberSteps
	}
	if s.MultipleOf != nil {
		n.numbers += 2 * numberSteps
	}
	if k := n.members; k != nil {
		for i := range k.patterns {
			p := &k.patterns[i]
			n.patterns = append(n.patterns, pricedPattern{p.re, patternWidth(p.source), p.schema})
		}
	}
	for re, sub := range s.PatternProperties {
		n.patterns = append(n.patterns, pricedPattern{re, patternWidth(re.String()), sub})
	}
	patterns := 0
	for i := range n.patterns {
		patterns += matchSteps + n.patterns[i].width
	}
	dependent := 0
	for _, names := range s.DependentRequired {
		dependent += len(names)
	}
	for _, d := range s.Dependencies {
		names, _ := d.([]string)
		dependent += len(names)
	}
	names := n.names + lookupSteps*len(n.keywords.required) + errorSteps*dependent
	if s.Format != "" {
		patterns += formatPrice("") + 1
	}
	n.bound = visitSteps + names/2 + n.width + n.numbers + patterns + memberSteps + errorSteps + numberSteps*len(s.Enum) // {} has two bytes
	return n
}

func bound(r *big.Rat, none float64) float64 {
	if r == nil {
		return none
	}
	f, _ := r.Float64()
	return f
}

// formatPrice is the price of asserting a format of a text.
func formatPrice(text string) int { return matchSteps + len(text) }

// matchPrice is the price of matching a text with a pattern of some width.
func matchPrice(text string, width int) int { return matchSteps + len(text)*(width+1)/2 }

// MaxEffort bounds the subschemas that apply to one place of an instance. References let a short schema multiply:
// thirty definitions, each of which names the next one twice, make a billion.
const MaxEffort = 100_000

// effort is the cost of one place of an instance: subschemas, up to just above MaxEffort, and their steps, up to just
// above MaxSteps.
type effort struct{ subschemas, steps int }

// effortOf adds up the schemas that apply to the same place as s, each as often as it is reached.
func (p *prices) effortOf(s *lib.Schema, known map[*lib.Schema]effort) effort {
	if s == nil {
		return effort{}
	}
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = effort{1, 1} // stands for s while a $dynamicRef leads back to it
	n := effort{1, p.own[s].bound}
	add := func(subs ...*lib.Schema) {
		for _, sub := range subs {
			more := p.effortOf(sub, known)
			n = effort{min(n.subschemas+more.subschemas, MaxEffort+1), min(n.steps+more.steps, MaxCheck+1)}
		}
	}
	add(s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else)
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, name := range slices.Sorted(maps.Keys(s.DependentSchemas)) {
		add(s.DependentSchemas[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		if sub, ok := s.Dependencies[name].(*lib.Schema); ok {
			add(sub)
		}
	}
	known[s] = n
	return n
}

// effort returns the greatest effort of a place.
func (p *prices) effort(all locations) (most effort) {
	known := make(map[*lib.Schema]effort, len(all))
	for _, place := range slices.Sorted(maps.Keys(all)) {
		n := p.effortOf(all[place], known)
		most = effort{max(most.subschemas, n.subschemas), max(most.steps, n.steps)}
	}
	return most
}

// patternSize is about how many instructions Go's engine needs for a pattern. Package backtrack bounds those that the other engine runs.
func patternSize(pattern string) int {
	re, err := syntax.Parse(toGo(pattern), syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	return instructions(re)
}

func instructions(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n += len(re.Rune) / 16 // pairs of bounds, which copies share
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, MaxPatterns+1)
}

// patternWidth is about how many places of a pattern Go's engine, or the other, has to follow at once over a text.
func patternWidth(pattern string) int {
	re, err := syntax.Parse(toGo(pattern), syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	if re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpBeginText {
		n, _ := width(re)
		return n
	}
	return instructions(re)
}

// width is patternWidth for a part of an anchored pattern; fixed is set if its matches have one length, so that the
// next part begins at one place.
func width(re *syntax.Regexp) (n int, fixed bool) {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1, true
	case syntax.OpEmptyMatch, syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 0, true
	case syntax.OpCapture:
		return width(re.Sub[0])
	case syntax.OpRepeat:
		if n, fixed = width(re.Sub[0]); fixed && re.Min == re.Max {
			return n, true
		}
	case syntax.OpConcat:
		fixed = true
		for _, sub := range re.Sub {
			w, same := width(sub)
			if fixed {
				n = max(n, w)
			} else {
				n += instructions(sub)
			}
			fixed = fixed && same
		}
		return n, fixed
	}
	return instructions(re), false
}
