package jsonschema

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/backtrack"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// MaxSteps bounds what the patterns of a schema that Go's engine cannot run may take in one validation (package backtrack): some
// tenths of a second.
const MaxSteps = 1 << 26

// The library compiles patterns with Go's engine and has no place for another. So a pattern is compiled as one that never matches and
// carries the text of the pattern (placeholder), and when all is compiled, an extension takes its place (install).

// never is the beginning of a placeholder: no character is outside of all characters.
const never = `[^\x00-\x{10FFFF}]`

func placeholder(pattern string) string { return never + regexp.QuoteMeta(pattern) }

// sourceOf returns the pattern that a placeholder stands for, and others as they are.
func sourceOf(pattern string) string {
	quoted, found := strings.CutPrefix(pattern, never)
	if !found {
		return pattern
	}
	var b strings.Builder
	for i := 0; i < len(quoted); i++ {
		if quoted[i] == '\\' {
			i++
		}
		b.WriteByte(quoted[i])
	}
	return b.String()
}

// expression is a compiled pattern: Go's, or one that only the other engine can run.
type expression struct {
	source string
	re     *regexp.Regexp
	other  *backtrack.Pattern
}

// budget is what is left of MaxSteps.
type budget struct {
	steps int
	// spent is the pattern that needed more than was left, nil if none.
	spent *expression
}

func (x *expression) matches(text string, b *budget) bool {
	if x.re != nil {
		return x.re.MatchString(text)
	}
	runes := []rune(text)
	steps := x.other.Steps(runes, MaxSteps)
	if b.spent != nil || steps > b.steps {
		if b.spent == nil || steps > MaxSteps && x.source < b.spent.source {
			b.spent = x
		}
		return false
	}
	b.steps -= steps
	found, err := x.other.Match(runes)
	if err != nil {
		b.spent = x
	}
	return found
}

// patternKeyword takes the place of the library's pattern.
type patternKeyword struct {
	expression
	budget *budget
}

func (k *patternKeyword) Validate(ctx lib.ValidationContext, v any) error {
	if text, ok := v.(string); ok && !k.matches(text, k.budget) {
		return ctx.Error("pattern", "does not match the pattern")
	}
	return nil
}

// membersKeyword takes the place of the library's patternProperties, and of its additionalProperties, which needs to know what these
// match.
type membersKeyword struct {
	schema     *lib.Schema
	patterns   []memberPattern
	additional any
	budget     *budget
}

type memberPattern struct {
	expression
	token  string
	schema *lib.Schema
}

func (k *membersKeyword) Validate(ctx lib.ValidationContext, v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	var errs []error
	check := func(s *lib.Schema, place, name string, value any) {
		if name != "" {
			if err := ctx.Validate(s, place, value, url.PathEscape(jsonvalue.EscapePointer(name))); err != nil {
				errs = append(errs, err)
			}
		} else if s.Validate(value) != nil { // the library has no place for the member without a name
			errs = append(errs, ctx.Error(place, "member without a name"))
		}
	}
	refused := false
	for name, value := range object {
		known := k.schema.Properties[name] != nil
		for i := range k.patterns {
			if p := &k.patterns[i]; p.matches(name, k.budget) {
				known = true
				ctx.EvaluatedProp(name)
				check(p.schema, "patternProperties/"+p.token, name, value)
			}
		}
		if known || k.additional == nil {
			continue
		}
		ctx.EvaluatedProp(name)
		if s, ok := k.additional.(*lib.Schema); ok {
			check(s, "additionalProperties", name, value)
		} else {
			refused = refused || k.additional == false
		}
	}
	if refused {
		errs = append(errs, ctx.Error("additionalProperties", "not allowed"))
	}
	if len(errs) == 0 {
		return nil
	}
	return lib.ValidationError{}.Group(ctx.Error("", ""), errs...)
}

// describes reports whether a schema says something of a member by its name.
func describes(s *lib.Schema, name string) bool {
	if s.Properties[name] != nil {
		return true
	}
	for pattern := range s.PatternProperties {
		if pattern.MatchString(name) {
			return true
		}
	}
	if k, ok := s.Extensions[membersName].(*membersKeyword); ok {
		return slices.ContainsFunc(k.patterns, func(p memberPattern) bool { return p.matches(name, k.budget) })
	}
	return false
}

// patternOf is the pattern of a schema as its author wrote it.
func patternOf(s *lib.Schema) string {
	if k, ok := s.Extensions[patternName].(*patternKeyword); ok {
		return k.source
	}
	return s.Pattern.String()
}

// Names of the extensions.
const (
	patternName = "pattern"
	membersName = "patternProperties"
)

// install puts the extensions in the place of placeholders. It returns their common budget, nil if Go's engine runs every pattern.
func install(all locations) (*budget, error) {
	b, needed := &budget{}, false
	for _, s := range all {
		if s.Pattern != nil && strings.HasPrefix(s.Pattern.String(), never) {
			x, err := compileExpression(sourceOf(s.Pattern.String()))
			if err != nil {
				return nil, err
			}
			s.Pattern, needed = nil, needed || x.other != nil
			extend(s, patternName, &patternKeyword{x, b})
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(s.PatternProperties)), func(re *regexp.Regexp) bool { return strings.HasPrefix(re.String(), never) }) {
			continue
		}
		k := &membersKeyword{schema: s, additional: s.AdditionalProperties, budget: b}
		for re, sub := range s.PatternProperties {
			x := expression{source: re.String(), re: re}
			if source := sourceOf(x.source); source != x.source {
				var err error
				if x, err = compileExpression(source); err != nil {
					return nil, err
				}
				needed = needed || x.other != nil
			}
			k.patterns = append(k.patterns, memberPattern{x, url.PathEscape(jsonvalue.EscapePointer(re.String())), sub})
		}
		slices.SortFunc(k.patterns, func(a, b memberPattern) int { return strings.Compare(a.source, b.source) })
		s.PatternProperties, s.AdditionalProperties = nil, nil
		extend(s, membersName, k)
	}
	if !needed {
		return nil, nil
	}
	return b, nil
}

func extend(s *lib.Schema, name string, ext lib.ExtSchema) {
	if s.Extensions == nil {
		s.Extensions = map[string]lib.ExtSchema{}
	}
	s.Extensions[name] = ext
}

// compileExpression compiles a pattern, with Go's engine if that can run it.
func compileExpression(source string) (x expression, err error) {
	x.source = source
	if x.re, err = regexp.Compile(toGo(source)); err != nil {
		x.re = nil
		x.other, err = backtrack.Compile(source, backtrack.ECMAScript)
	}
	return x, err
}
