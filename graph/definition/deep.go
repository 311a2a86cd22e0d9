package definition

import (
	"strconv"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// collect notes by pointer every part of v that may be a program or a literal: it becomes a member of one mapping, so
// that errors name the pointer.
func collect(v any, pointer string, parts map[string]any) {
	if _, ok := v.(string); ok || isExpression(v) {
		parts[pointer] = v
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			collect(member, pointer+"/"+jsonvalue.EscapePointer(name), parts)
		}
	case []any:
		for i, element := range v {
			collect(element, pointer+"/"+strconv.Itoa(i), parts)
		}
	}
}

func substitute(v any, pointer string, values map[string]any) any {
	if value, ok := values[pointer]; ok {
		return value
	}
	switch v := v.(type) {
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = substitute(member, pointer+"/"+jsonvalue.EscapePointer(name), values)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = substitute(element, pointer+"/"+strconv.Itoa(i), values)
		}
		return list
	}
	return v
}

// isExpression reports whether v is an object that stands for a value.
func isExpression(v any) bool {
	object, _ := v.(map[string]any)
	_, program := object["jq"]
	_, literal := object["literal"]
	return program || literal
}
