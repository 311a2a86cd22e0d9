package jsonschema

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// describe returns the message of one failed keyword of a schema, with its parameters in the protocol's form (spec:
// definition, 6.1). below is the keyword with the rest of its place; value is the instance there. Keywords about
// several properties return one violation for each of them.
func describe(s *lib.Schema, below []string, value any) []Violation {
	keyword := below[0]
	one := func(message string, params map[string]any) []Violation {
		return []Violation{{Keyword: keyword, Message: message, Params: params}}
	}
	limit := func(what, bound string, n int) []Violation {
		return one("must have a number of "+what+" of "+bound+" "+strconv.Itoa(n), map[string]any{"limit": float64(n)})
	}
	compare := func(sign string, bound *big.Rat) []Violation {
		f, _ := bound.Float64()
		return one("must be "+sign+" "+number(f), map[string]any{"comparison": sign, "limit": f})
	}
	switch keyword {
	case "type":
		return one("must be "+problem.OrList(s.Types)+", not "+jsonvalue.KindOf(value).String(), map[string]any{"type": typeParam(s.Types)})
	case "const":
		k := keywordsOf(s)
		params := map[string]any{"allowedBytes": float64(k.constantBytes)}
		if k.constantBytes <= shownBytes {
			params = map[string]any{"allowedValue": jsonvalue.Clone(k.constant[0])}
		}
		return one("must be "+short(k.constant[0])+", not "+short(value), params)
	case "enum":
		enum := keywordsOf(s).enum
		want := firstValues(enum)
		params := map[string]any{"allowedValues": want}
		if len(want) < len(enum) {
			params["allowedCount"] = float64(len(enum))
		}
		choice := "one of "
		if len(enum) == 1 {
			choice = ""
		}
		return one("must be "+choice+shortList(enum)+", not "+short(value), params)
	case "required":
		return describeRequired(s, value)
	case "additionalProperties":
		return describeAdditional(s, value)
	case "minProperties":
		return limit("members", "at least", s.MinProperties)
	case "maxProperties":
		return limit("members", "at most", s.MaxProperties)
	case "minItems":
		return limit("elements", "at least", s.MinItems)
	case "maxItems":
		return limit("elements", "at most", s.MaxItems)
	case "minLength":
		return limit("characters", "at least", s.MinLength)
	case "maxLength":
		return limit("characters", "at most", s.MaxLength)
	case "minimum":
		return compare(">=", s.Minimum)
	case "exclusiveMinimum":
		return compare(">", s.ExclusiveMinimum)
	case "maximum":
		return compare("<=", s.Maximum)
	case "exclusiveMaximum":
		return compare("<", s.ExclusiveMaximum)
	case "multipleOf":
		f, _ := s.MultipleOf.Float64()
		return one("must be a multiple of "+number(f), map[string]any{"multipleOf": f})
	case "pattern":
		return one("must match the pattern "+quote(patternOf(s)), map[string]any{"pattern": patternOf(s)})
	case "format":
		return one("must have the format "+quote(s.Format), map[string]any{"format": s.Format})
	case "additionalItems":
		prefix, _ := s.Items.([]*lib.Schema)
		return limit("elements", "at most", len(prefix))
	case "uniqueItems":
		list, _ := value.([]any)
		i, j, _ := equalItems(list)
		return one("must not hold equal elements: those at "+strconv.Itoa(i)+" and "+strconv.Itoa(j)+" are equal",
			map[string]any{"i": float64(i), "j": float64(j)})
	case "minContains", "maxContains":
		return describeContains(s, keyword)
	case "dependentRequired", "dependencies":
		if len(below) == 3 {
			return describeDependent(s, keyword, below[1], below[2])
		}
	case "anyOf":
		return one("must match at least one schema in \"anyOf\"", map[string]any{})
	case "oneOf":
		return describeOneOf(s, value)
	case "not":
		return one("must not match the schema in \"not\"", map[string]any{})
	}
	return one("breaks the keyword "+keyword, map[string]any{})
}

func describeRequired(s *lib.Schema, value any) []Violation {
	object, _ := value.(map[string]any)
	var out []Violation
	for _, name := range keywordsOf(s).required {
		if _, ok := object[name]; !ok && len(out) < MaxViolations {
			out = append(out, Violation{
				Keyword: "required", Message: "must have the member " + quoteName(name),
				Params: map[string]any{"missingProperty": name},
			})
		}
	}
	return out
}

func describeAdditional(s *lib.Schema, value any) []Violation {
	object, _ := value.(map[string]any)
	var out []Violation
	for _, name := range jsonvalue.Keys(object) {
		if len(out) == MaxViolations {
			break
		}
		if describes(s, name) {
			continue
		}
		out = append(out, Violation{
			Keyword: "additionalProperties",
			Message: "must NOT have additional properties: " + quoteName(name) + " is not allowed here",
			Params:  map[string]any{"additionalProperty": name},
		})
	}
	return out
}

func describeContains(s *lib.Schema, keyword string) []Violation {
	v := Violation{
		Keyword: "contains", Params: map[string]any{"minContains": float64(s.MinContains)},
		Message: "must hold matching elements, at least " + strconv.Itoa(s.MinContains),
	}
	if s.MaxContains != -1 {
		v.Params["maxContains"] = float64(s.MaxContains)
	}
	if keyword == "maxContains" {
		v.Message = "must hold matching elements, at most " + strconv.Itoa(s.MaxContains)
	}
	return []Violation{v}
}

func describeDependent(s *lib.Schema, keyword, property, index string) []Violation {
	names := s.DependentRequired[property]
	if keyword == "dependencies" {
		names, _ = s.Dependencies[property].([]string)
	}
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(names) {
		return []Violation{{Keyword: keyword, Message: "lacks a member that others need", Params: map[string]any{}}}
	}
	return []Violation{{
		Keyword: keyword, Message: "must have the member " + quote(names[i]) + ", because it has " + quoteName(property),
		Params: map[string]any{
			"property": property, "missingProperty": names[i],
			"depsCount": float64(len(names)), "deps": problem.Excerpt(strings.Join(names[:min(len(names), listedValues)], ", "), shownBytes),
		},
	}}
}

// noAlternative is the violation of a value that matches no schema of a oneOf.
func noAlternative() Violation {
	return Violation{
		Keyword: "oneOf", Params: map[string]any{"passingSchemas": nil}, Message: "must match exactly one schema in \"oneOf\"",
	}
}

// describeOneOf describes a value that matches several.
func describeOneOf(s *lib.Schema, value any) []Violation {
	var passing []any
	for i, alternative := range s.OneOf {
		if len(passing) < 2 && alternative.Validate(value) == nil {
			passing = append(passing, float64(i))
		}
	}
	v := noAlternative()
	if len(passing) == 2 {
		v.Message += ", but matches several"
		v.Params["passingSchemas"] = passing
	}
	return []Violation{v}
}

func typeParam(types []string) any {
	if len(types) == 1 {
		return types[0]
	}
	out := make([]any, len(types))
	for i, t := range types {
		out[i] = t
	}
	return out
}

// plain turns a value of a compiled schema, which keeps numbers as text, into plain JSON.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

func quote(s string) string { return string(jsonvalue.AppendString(nil, s)) }

// quoteName quotes the name of a member, which may be as long as the value's writer likes.
func quoteName(s string) string { return quote(problem.Excerpt(s, problem.MaxQuoted)) }

func number(f float64) string { return string(jsonvalue.Canonical(f)) }

// Messages show values up to these lengths; longer ones are cut.
const (
	shownCharacters = 80
	shownValues     = 12
)

func short(v any) string {
	switch large := v.(type) {
	case string:
		v = large[:min(len(large), shownBytes)]
	case []any, map[string]any:
		if jsonvalue.Weigh(v, shownBytes) >= shownBytes {
			return "a large " + jsonvalue.KindOf(v).String()
		}
	}
	return problem.ClipRunes(string(jsonvalue.Canonical(v)), shownCharacters)
}

// Limits on the parts of an enum, a const and a list of names that a violation copies: a model reads it, and
// thousands of values may break the same enum.
const (
	listedValues = 100
	shownBytes   = 4 << 10
)

// firstValues are the first values of an enum.
func firstValues(enum []any) []any {
	var first []any
	size := 0
	for _, v := range enum[:min(len(enum), listedValues)] {
		if size += jsonvalue.Size(v, shownBytes); size > shownBytes {
			break
		}
		first = append(first, jsonvalue.Clone(v))
	}
	return first
}

func shortList(enum []any) string {
	var parts []string
	for _, v := range enum[:min(len(enum), shownValues)] {
		parts = append(parts, short(v))
	}
	if len(enum) > shownValues {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
}
