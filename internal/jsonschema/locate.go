package jsonschema

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// locations finds a compiled schema by its absolute place, so that a failed keyword can be described from the schema
// itself and not from the library's message.
type locations map[string]*lib.Schema

func locate(root *lib.Schema) locations {
	found := locations{}
	pending := []*lib.Schema{root}
	for len(pending) > 0 {
		s := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if s == nil || found[s.Location] != nil {
			continue
		}
		found[s.Location] = s
		pending = append(pending, s.Ref, s.RecursiveRef, s.DynamicRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames,
			s.UnevaluatedProperties, s.Items2020, s.Contains, s.UnevaluatedItems, s.ContentSchema)
		for _, list := range [][]*lib.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
			pending = append(pending, list...)
		}
		pending = slices.AppendSeq(pending, maps.Values(s.Properties))
		pending = slices.AppendSeq(pending, maps.Values(s.PatternProperties))
		pending = slices.AppendSeq(pending, maps.Values(s.DependentSchemas))
		for _, d := range s.Dependencies {
			if sub, ok := d.(*lib.Schema); ok {
				pending = append(pending, sub)
			}
		}
		for _, v := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
			switch v := v.(type) {
			case *lib.Schema:
				pending = append(pending, v)
			case []*lib.Schema:
				pending = append(pending, v...)
			}
		}
	}
	return found
}

// keyword splits the absolute place of a keyword into its schema and the segments below it: the keyword, and for some
// keywords a member or an index. An empty list means the schema itself, which is then the schema false.
func (l locations) keyword(absolute string) (*lib.Schema, []string) {
	if s := l[absolute]; s != nil && s.Always != nil {
		return s, nil
	}
	place, below := absolute, []string(nil)
	for range 3 {
		cut := strings.LastIndexByte(place, '/')
		if cut < 0 {
			break
		}
		below = append(below, unescapeToken(place[cut+1:]))
		place = place[:cut]
		if s := l[place]; s != nil {
			slices.Reverse(below)
			return s, below
		}
	}
	cut := strings.LastIndexByte(absolute, '/')
	return nil, []string{absolute[cut+1:]}
}

// fragment is the readable form of an absolute place: "#/properties/a/type" inside the schema itself.
func fragment(absolute string) string {
	tokens := strings.Split(plainPointer(strings.TrimPrefix(absolute, base)), "/")
	for i := range tokens {
		tokens[i] = sourceOf(tokens[i])
	}
	return strings.Join(tokens, "/")
}

// plainPointer undoes the percent-encoding that the library adds to JSON pointers.
func plainPointer(location string) string {
	if plain, err := url.PathUnescape(location); err == nil {
		return plain
	}
	return location
}

// unescapeToken returns the member name behind one segment of a location of the library.
func unescapeToken(token string) string { return jsonvalue.UnescapePointer(plainPointer(token)) }
