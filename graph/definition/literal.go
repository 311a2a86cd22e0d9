package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// LiteralCheck validates single values that a definition writes to the state. It asks only about the one key that is written: the keywords about the
// whole state are left out.
type LiteralCheck struct {
	schema   map[string]any
	rules    *StateRules
	compiled bool
	keys     *jsonschema.Schema
}

// NewLiteralCheck returns the check for a state_schema and the rules made of it.
func NewLiteralCheck(schema map[string]any, rules *StateRules) *LiteralCheck {
	return &LiteralCheck{schema: schema, rules: rules}
}

// wholeState are the keywords about the state as a whole.
var wholeState = []string{
	"required", "minProperties", "maxProperties", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
	"dependentRequired", "dependentSchemas", "dependencies", "propertyNames", "unevaluatedProperties", "$ref",
	"$dynamicRef", "type", "enum", "const",
}

// Objection returns the schema's objection to writing a value to a key, or "", and a hint.
func (l *LiteralCheck) Objection(key string, value any) (objection, hint string) {
	if !l.compiled {
		l.compiled = true
		part := maps.Clone(l.schema)
		for _, keyword := range wholeState {
			delete(part, keyword)
		}
		if rules, err := NewStateRules(part); err == nil {
			l.keys = rules.Schema
		}
	}
	if l.keys == nil {
		return "", ""
	}
	reducer := l.rules.Reducers[key]
	switch reducer {
	case ReducerAppend:
		if _, isList := value.([]any); !isList {
			value = []any{value}
		}
	case ReducerMerge:
		if _, isObject := value.(map[string]any); !isObject {
			return "merge ignores a value that is not an object", ""
		}
	}
	whole := map[string]any{key: value}
	return l.lasting(reducer, key, whole, l.keys.Validate(whole))
}

// lasting returns the first violation that holds whatever the key had before.
func (l *LiteralCheck) lasting(
	reducer Reducer, key string, whole map[string]any, violations []jsonschema.Violation,
) (objection, hint string) {
	place := "/" + jsonvalue.EscapePointer(key)
	if reducer == ReducerMerge && slices.ContainsFunc(violations, func(v jsonschema.Violation) bool { return composite[v.Keyword] }) {
		return "", "" // fields that are already there may decide between alternatives
	}
	for _, v := range violations {
		inside := strings.HasPrefix(v.InstancePath, place+"/")
		switch {
		case reducer == ReducerMerge && (v.Keyword == "required" || v.Keyword == "minProperties"):
		case reducer == ReducerAppend && v.InstancePath == place:
			// The list that comes out is longer than the one that is added.
		case v.InstancePath == "":
			return fmt.Sprintf("state_schema has no property %q", clip(key)), suggest.DidYouMean(key, l.names())
		case inside:
			return "state_schema forbids it: at " + strings.TrimPrefix(v.InstancePath, place) + " it " + v.Message, v.Suggestion(whole)
		default:
			return "state_schema forbids it: the value " + v.Message, v.Suggestion(whole)
		}
	}
	return "", ""
}

// names lists the properties of the state_schema.
func (l *LiteralCheck) names() []string {
	properties, _ := l.schema["properties"].(map[string]any)
	return jsonvalue.Keys(properties)
}

var composite = map[string]bool{"anyOf": true, "oneOf": true, "not": true, "if": true}
