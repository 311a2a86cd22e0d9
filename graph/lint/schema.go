package lint

import (
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// reader makes shapes of the schemas of one document, whose references see only their own schema.
type reader struct {
	root any
	// refs are the references that have been followed; nil while one is.
	refs   map[string]*shape
	budget *budget
}

// maxSchemaWork bounds the work of reading one schema.
const maxSchemaWork = 200_000

// schemaShape is the shape of the values that a schema admits, or a wider one.
func schemaShape(schema any) *shape {
	r := &reader{root: schema, refs: map[string]*shape{}, budget: new(budget(maxSchemaWork))}
	return r.read(schema, 0)
}

var kindOfType = map[string]kinds{
	"null": null, "boolean": boolean, "number": number, "integer": number, "string": text, "array": array, "object": object,
}

func (r *reader) read(schema any, depth int) *shape {
	m, ok := schema.(map[string]any)
	if !ok || depth > maxDepth || !r.budget.take(1) || m["$dynamicRef"] != nil {
		return anything
	}
	out := only(typesOf(m))
	if out.kinds == all {
		out.unsure = len(m) == 0
	}
	r.values(m, out)
	r.object(m, out, depth)
	if items, ok := m["items"]; ok && m["prefixItems"] == nil {
		out.items = r.read(items, depth+1)
	}
	if ref, ok := m["$ref"].(string); ok {
		out = r.narrow(out, r.follow(ref, depth), depth)
	}
	if list, ok := m["allOf"].([]any); ok {
		for _, s := range list {
			out = r.narrow(out, r.read(s, depth+1), depth)
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		if list, ok := m[keyword].([]any); ok {
			either := &shape{}
			for _, s := range list {
				either = union(either, r.read(s, depth+1), r.budget, depth)
			}
			out = r.narrow(out, either, depth)
		}
	}
	for _, keyword := range []string{"then", "else"} {
		if s, ok := m[keyword]; ok {
			out = withNames(out, r.read(s, depth+1))
		}
	}
	if dependent, ok := m["dependentSchemas"].(map[string]any); ok {
		for _, name := range jsonvalue.Keys(dependent) {
			out = withNames(out, r.read(dependent[name], depth+1))
		}
	}
	return out
}

// typesOf returns the kinds that the keyword type admits.
func typesOf(m map[string]any) kinds {
	k := all
	switch t := m["type"].(type) {
	case string:
		k = kindOfType[t]
	case []any:
		k = nothing
		for _, e := range t {
			name, _ := e.(string)
			k |= kindOfType[name]
		}
	}
	if m["nullable"] == true {
		k |= null
	}
	if k == nothing {
		return all
	}
	return k
}

// values reads the keywords that list values.
func (r *reader) values(m map[string]any, out *shape) {
	list, ok := m["enum"].([]any)
	if constant, is := m["const"]; is {
		list, ok = []any{constant}, true
	}
	if !ok {
		return
	}
	k, texts := nothing, []string{}
	for _, v := range list {
		k |= kindOf(v)
		if s, isText := v.(string); isText && len(texts) <= maxTexts {
			texts = append(texts, s)
		}
	}
	out.kinds, out.unsure = out.kinds&k, false
	if len(texts) <= maxTexts {
		out.texts = texts
	}
}

// object reads the keywords about members.
func (r *reader) object(m map[string]any, out *shape, depth int) {
	properties, _ := m["properties"].(map[string]any)
	if len(properties) > 0 {
		out.members = make(map[string]*shape, len(properties))
		for _, name := range jsonvalue.Keys(properties) {
			out.members[name] = r.read(properties[name], depth+1)
		}
	}
	others, given := m["additionalProperties"]
	switch {
	case !given || m["patternProperties"] != nil:
	case others == false:
		out.rest = nil
	default:
		out.rest = r.read(others, depth+1)
	}
}

// follow reads the target of a reference, if it is in the same schema.
func (r *reader) follow(ref string, depth int) *shape {
	pointer, local := strings.CutPrefix(ref, "#")
	if !local || pointer != "" && pointer[0] != '/' || strings.Contains(pointer, "%") {
		return anything
	}
	if s, seen := r.refs[ref]; seen {
		if s == nil {
			return anything // a schema that contains itself
		}
		return s
	}
	target := r.root
	for _, token := range jsonvalue.PointerTokens(pointer) {
		switch v := target.(type) {
		case map[string]any:
			target = v[token]
		default:
			return anything
		}
	}
	r.refs[ref] = nil
	r.refs[ref] = r.read(target, depth+1)
	return r.refs[ref]
}

// narrow is a value that has both shapes. It may be wider: objects stay open unless only one of the shapes speaks of members.
func (r *reader) narrow(a, b *shape, depth int) *shape {
	switch {
	case a == b || b == anything:
		return a
	case a == anything:
		return b
	case depth > maxDepth || len(a.members)+len(b.members) > maxMembers, !r.budget.take(1 + len(a.members) + len(b.members)):
		return anything
	}
	out := &shape{kinds: a.kinds & b.kinds, unsure: a.unsure && b.unsure, rest: anything, items: a.items}
	if out.items == anything {
		out.items = b.items
	}
	switch {
	case a.texts == nil:
		out.texts = b.texts
	case b.texts == nil:
		out.texts = a.texts
	default:
		out.texts = slices.DeleteFunc(slices.Clone(a.texts), func(s string) bool { return !slices.Contains(b.texts, s) })
	}
	switch {
	case len(a.members) == 0 && a.rest == anything:
		out.members, out.rest = b.members, b.rest
	case len(b.members) == 0 && b.rest == anything:
		out.members, out.rest = a.members, a.rest
	default:
		out.members = maps.Clone(a.members)
		if out.members == nil {
			out.members = map[string]*shape{}
		}
		for name, s := range b.members {
			if first := out.members[name]; first != nil {
				s = r.narrow(first, s, depth+1)
			}
			out.members[name] = s
		}
	}
	return out
}

// withNames returns a shape with the names of another one and nothing else known about them.
func withNames(s, other *shape) *shape {
	if len(other.members) == 0 {
		return s
	}
	out := *s
	out.members = maps.Clone(s.members)
	if out.members == nil {
		out.members = map[string]*shape{}
	}
	for name := range other.members {
		if out.members[name] == nil {
			out.members[name] = anything
		}
	}
	return &out
}
