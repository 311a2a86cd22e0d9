package mcpserver

import (
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A host sends the tools of all its servers to its model in one request, and the model's API rejects the request if it rejects one of
// them. So the schema of a workflow's input is shown in a form that all accept, in a bounded size. It may ask for less than the
// workflow does, never for more: the engine checks every input by the full schema.

// unfit lists the keywords that APIs of models reject at the root of a tool's schema, useless those that do not help a model.
var (
	unfit = []string{"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "enum", "const",
		"unevaluatedProperties"} // it depends on the others
	useless = []string{"$schema", "$comment", "$vocabulary"}
)

// argumentName matches the argument names that hosts accept.
var argumentName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) })

// inputSchema returns the schema of a workflow's input, which may be nil, as the schema of a tool's arguments in at most
// limit bytes. whole reports that no rule is missing.
func inputSchema(schema map[string]any, limit int) (shown map[string]any, whole bool) {
	anything := map[string]any{"type": "object"}
	if schema == nil {
		return anything, true
	}
	shown, whole = maps.Clone(schema), true
	for _, name := range useless {
		delete(shown, name)
	}
	for _, name := range unfit {
		if _, ok := shown[name]; ok {
			delete(shown, name)
			whole = false
		}
	}
	switch kind := shown["type"].(type) {
	case string:
		if kind != "object" {
			return anything, false
		}
	case []any:
		if !slices.Contains(kind, any("object")) {
			return anything, false
		}
	}
	shown["type"] = "object" // an input is an object, even if the schema allows other types
	properties, isObject := shown["properties"].(map[string]any)
	if _, present := shown["properties"]; present && !isObject {
		return anything, false
	}
	for name := range properties {
		if !argumentName().MatchString(name) {
			return anything, false
		}
	}
	if jsonvalue.Size(shown, 0) <= limit {
		return shown, whole
	}
	if shown = outlined(shown, properties); jsonvalue.Size(shown, 0) <= limit {
		return shown, false
	}
	return anything, false
}

// maxArgumentText limits an argument's description in an outline, in bytes.
const maxArgumentText = 100

// outlined returns a schema with only the names, types and descriptions of the arguments.
func outlined(schema, properties map[string]any) map[string]any {
	list := make(map[string]any, len(properties))
	for name, p := range properties {
		about, _ := p.(map[string]any)
		brief := map[string]any{}
		if kind, ok := about["type"]; ok {
			brief["type"] = kind
		}
		if text, ok := about["description"].(string); ok {
			brief["description"] = problem.Clip(text, maxArgumentText)
		}
		if values, ok := about["enum"].([]any); ok && jsonvalue.Size(values, 0) <= maxArgumentText {
			brief["enum"] = values
		}
		if brief["type"] == "array" {
			brief["items"] = map[string]any{} // some APIs require it
		}
		list[name] = brief
	}
	outline := map[string]any{"type": "object", "properties": list}
	if names, ok := schema["required"]; ok {
		outline["required"] = names
	}
	return outline
}
