package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// propertySchema returns the schema of one field of an object, or nil.
func propertySchema(schema map[string]any, name string) map[string]any {
	properties, _ := schema["properties"].(map[string]any)
	property, _ := properties[name].(map[string]any)
	return property
}

// requiredNames lists the fields that a schema requires, in its order.
func requiredNames(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var names []string
	for _, e := range list {
		if name, ok := e.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// describeFields describes each field of an answer in a line: name, kind, whether it is required, description.
func describeFields(schema map[string]any) [][]string {
	properties, _ := schema["properties"].(map[string]any)
	required := requiredNames(schema)
	names := slices.Concat(required, jsonvalue.Keys(properties))
	var rows [][]string
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		property := propertySchema(schema, name)
		kind := kindText(property)
		if !slices.Contains(required, name) {
			kind += ", optional"
		}
		description, _ := property["description"].(string)
		if title, _ := property["title"].(string); title != "" {
			description = strings.TrimSuffix(title+": "+description, ": ")
		}
		rows = append(rows, []string{"  " + name, kind, description})
	}
	return rows
}

// kindText describes the values that a schema allows: a list, or a type.
func kindText(schema map[string]any) string {
	if constant, ok := schema["const"]; ok {
		return short(constant, 40)
	}
	if allowed, ok := schema["enum"].([]any); ok {
		words := make([]string, len(allowed))
		for i, e := range allowed {
			words[i] = short(e, 40)
		}
		return strings.Join(words, " | ")
	}
	switch kind := schema["type"].(type) {
	case string:
		return kind
	case []any:
		return strings.Trim(fmt.Sprint(kind), "[]")
	}
	return "any"
}
