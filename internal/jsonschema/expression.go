package jsonschema

import (
	"regexp"
	"slices"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/backtrack"
)

// MaxSteps bounds the steps of package backtrack in one validation: some tenths of a second.
const MaxSteps = 1 << 26

// The library compiles patterns with Go's engine and cannot use another. So a pattern is compiled as one that never
// matches and carries the text of the pattern (placeholder); after compiling, an extension replaces it (install).

// never is the beginning of a placeholder: no character is outside of all characters.
const never = `[^\x00-\x{10FFFF}]`

func placeholder(pattern string) string { return never + regexp.QuoteMeta(pattern) }

// sourceOf returns the pattern behind a placeholder, and other patterns as they are.
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

// budget is the rest of MaxSteps.
type budget struct {
	steps int
	// spent is the pattern that needed more than the rest, nil before that.
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
	patternName  = "pattern"
	membersName  = "patternProperties"
	keywordsName = "keywords"
)

// install puts the extensions in the place of placeholders, and of keywords that are checked here. It returns the common budget of the
// patterns, nil if Go's engine runs every one.
func install(all locations) (*budget, error) {
	b, needed := &budget{}, false
	for _, s := range all {
		if isForeign(s) {
			continue
		}
		if s.Pattern != nil && strings.HasPrefix(s.Pattern.String(), never) {
			x, err := compileExpression(sourceOf(s.Pattern.String()))
			if err != nil {
				return nil, err
			}
			s.Pattern, needed = nil, needed || x.other != nil
			extend(s, patternName, &patternKeyword{x, b})
		}
		other, err := installMembers(s, b)
		if err != nil {
			return nil, err
		}
		needed = needed || other
		installKeywords(s)
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
