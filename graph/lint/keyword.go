package lint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// place is how the value of a keyword holds schemas.
type place uint8

const (
	none place = iota
	one
	list
	byName
)

// keywords are those of JSON Schema, of its drafts before 2020-12 and of OpenAPI, that schemas of definitions have.
var keywords = map[string]place{
	"$schema": none, "$id": none, "$ref": none, "$anchor": none, "$dynamicRef": none, "$dynamicAnchor": none,
	"$vocabulary": none, "$comment": none, "$defs": byName, "definitions": byName,
	"type": none, "enum": none, "const": none, "nullable": none, "reducer": none,
	"multipleOf": none, "maximum": none, "exclusiveMaximum": none, "minimum": none, "exclusiveMinimum": none,
	"maxLength": none, "minLength": none, "pattern": none, "format": none,
	"items": one, "prefixItems": list, "additionalItems": one, "unevaluatedItems": one, "contains": one,
	"maxItems": none, "minItems": none, "uniqueItems": none, "maxContains": none, "minContains": none,
	"properties": byName, "patternProperties": byName, "additionalProperties": one, "unevaluatedProperties": one,
	"propertyNames": one, "maxProperties": none, "minProperties": none, "required": none, "dependentRequired": none,
	"dependentSchemas": byName, "dependencies": none,
	"allOf": list, "anyOf": list, "oneOf": list, "not": one, "if": one, "then": one, "else": one,
	"title": none, "description": none, "default": none, "deprecated": none, "readOnly": none, "writeOnly": none, "examples": none,
	"example": none, "contentEncoding": none, "contentMediaType": none, "contentSchema": one, "discriminator": none, "enumNames": none,
	"id": none, "name": none, "label": none, "unit": none, "order": none, "hint": none, "note": none,
}

var keywordNames = jsonvalue.Keys(func() map[string]any {
	names := map[string]any{}
	for name := range keywords {
		names[name] = nil
	}
	return names
}())

// schemas checks the keywords of all schemas of the document.
func (l *linter) schemas() {
	document := l.program.Document.Value().(map[string]any)
	l.schema(document["state_schema"], "/state_schema", nil, 0)
	for _, n := range l.program.Nodes {
		if name := n.Type.Info().Schema; name != "" {
			l.schema(n.Config[name], nodePointer(n)+"/config/"+name, n, 0)
		}
	}
}

// schema warns of keywords that are like a known one, and of required members that cannot be there.
func (l *linter) schema(schema any, pointer string, n *definition.Node, depth int) {
	m, ok := schema.(map[string]any)
	if !ok || depth > definition.MaxDepth || !l.budget.take(1) {
		return
	}
	for _, name := range jsonvalue.Keys(m) {
		at := pointer + "/" + jsonvalue.EscapePointer(name)
		where, known := keywords[name]
		if !known {
			l.keyword(m, name, at, n)
			continue
		}
		switch v := m[name].(type) {
		case map[string]any:
			switch where {
			case one:
				l.schema(v, at, n, depth+1)
			case byName:
				for _, member := range jsonvalue.Keys(v) {
					l.schema(v[member], at+"/"+jsonvalue.EscapePointer(member), n, depth+1)
				}
			}
		case []any:
			if where == list {
				for i, s := range v {
					l.schema(s, at+"/"+strconv.Itoa(i), n, depth+1)
				}
			}
		}
	}
	l.required(m, pointer, n)
}

// keyword warns of a keyword that is probably misspelt.
func (l *linter) keyword(m map[string]any, name, at string, n *definition.Node) {
	if strings.HasPrefix(strings.ToLower(name), "x-") || !l.compared.take(len(keywordNames)) {
		return
	}
	near := suggest.Nearest(name, keywordNames)
	if _, there := m[near]; near == "" || there || len(name) < 3 {
		return
	}
	l.warn(problem.SchemaKeyword, at, n, fmt.Sprintf("JSON Schema has no keyword %q, so it has no effect", clip(name)), suggest.Hint(near))
}

// required warns of a required member that the schema does not have, if it can never be there or its name resembles another one.
func (l *linter) required(m map[string]any, pointer string, n *definition.Node) {
	properties, _ := m["properties"].(map[string]any)
	names, _ := m["required"].([]any)
	if len(properties) == 0 || m["patternProperties"] != nil {
		return
	}
	declared := jsonvalue.Keys(properties)
	for i, name := range names {
		name, ok := name.(string)
		if _, there := properties[name]; !ok || there || !l.compared.take(len(declared)) {
			continue
		}
		near := suggest.Nearest(name, declared)
		if near != "" && (!misspelt(name, near) || slices.Contains(names, any(near))) {
			near = ""
		}
		at := pointer + "/required/" + strconv.Itoa(i)
		message := ""
		switch {
		case m["additionalProperties"] == false:
			message = "%q is required, and no property: no value has it"
		case near != "":
			message = "%q is required, and no property is declared under this name"
		default:
			continue
		}
		l.warn(problem.SchemaKeyword, at, n, fmt.Sprintf(message, clip(name)), suggest.Hint(near))
	}
}
