package jsonschema

import (
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// membersKeyword replaces the library's patternProperties, its additionalProperties, which depends on them, and its
// propertyNames. It stops at an object with many errors.
type membersKeyword struct {
	schema     *lib.Schema
	names      *lib.Schema
	patterns   []memberPattern
	additional any
	budget     *budget
}

type memberPattern struct {
	expression
	token  string
	schema *lib.Schema
}

// installMembers moves these keywords of a schema into an extension. It reports whether the other engine runs a pattern of theirs.
func installMembers(s *lib.Schema, b *budget) (other bool, err error) {
	if _, isSchema := s.AdditionalProperties.(*lib.Schema); !isSchema && len(s.PatternProperties) == 0 && s.PropertyNames == nil {
		return false, nil
	}
	k := &membersKeyword{schema: s, names: s.PropertyNames, additional: s.AdditionalProperties, budget: b}
	for re, sub := range s.PatternProperties {
		x := expression{source: re.String(), re: re}
		if source := sourceOf(x.source); source != x.source {
			if x, err = compileExpression(source); err != nil {
				return false, err
			}
			other = other || x.other != nil
		}
		k.patterns = append(k.patterns, memberPattern{x, url.PathEscape(jsonvalue.EscapePointer(re.String())), sub})
	}
	slices.SortFunc(k.patterns, func(a, b memberPattern) int { return strings.Compare(a.source, b.source) })
	s.PatternProperties, s.AdditionalProperties, s.PropertyNames = nil, nil, nil
	extend(s, membersName, k)
	return other, nil
}

// Validate checks the members in any order, and once more in their own if there are too many errors to keep all.
func (k *membersKeyword) Validate(ctx lib.ValidationContext, v any) error {
	object, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	c := k.check(ctx, object, maps.Keys(object))
	if c.full() {
		c = k.check(ctx, object, slices.Values(jsonvalue.Keys(object)))
		for name := range object {
			ctx.EvaluatedProp(name)
		}
	}
	return c.err(ctx)
}

func (k *membersKeyword) check(ctx lib.ValidationContext, object map[string]any, names iter.Seq[string]) (c collected) {
	refused := false
	for name := range names {
		if c.full() {
			break
		}
		if k.names != nil {
			c.add(checkMember(ctx, k.names, "propertyNames", name, name))
		}
		value, known := object[name], k.schema.Properties[name] != nil
		for i := range k.patterns {
			if p := &k.patterns[i]; p.matches(name, k.budget) {
				known = true
				ctx.EvaluatedProp(name)
				c.add(checkMember(ctx, p.schema, "patternProperties/"+p.token, name, value))
			}
		}
		if known || k.additional == nil {
			continue
		}
		ctx.EvaluatedProp(name)
		if s, ok := k.additional.(*lib.Schema); ok {
			c.add(checkMember(ctx, s, "additionalProperties", name, value))
		} else {
			refused = refused || k.additional == false
		}
	}
	if refused {
		c.add(ctx.Error("additionalProperties", "not allowed"))
	}
	return c
}

// checkMember checks the value of a member, or its name. The library's context takes a place without a name for the object itself.
func checkMember(ctx lib.ValidationContext, s *lib.Schema, place, name string, value any) error {
	if name != "" {
		return ctx.Validate(s, place, value, url.PathEscape(jsonvalue.EscapePointer(name)))
	}
	switch err := s.Validate(value).(type) {
	case nil:
		return nil
	case *lib.ValidationError:
		moveBelow(err, ctx.Error(place, ""))
		err.Message = ""
		return err
	default:
		panic(err)
	}
}

// moveBelow completes the places of errors about the member without a name.
func moveBelow(e, object *lib.ValidationError) {
	e.KeywordLocation = object.KeywordLocation + e.KeywordLocation
	e.InstanceLocation = object.InstanceLocation + "/" + e.InstanceLocation
	for _, c := range e.Causes {
		moveBelow(c, object)
	}
}
