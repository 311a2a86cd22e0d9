package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// registerInput adds the flag --input of what is named.
func registerInput(set *pflag.FlagSet, input *[]string, of string) {
	set.StringArrayVarP(input, "input", "i", nil, "input of the "+of+": `KEY=VALUE`, which may be repeated; or a JSON object, @file, or - for standard input (default {})")
}

// readInput reads the arguments of --input: a JSON object, or members of it. A schema for the object tells a text from a number that is written
// alike; without one, a member is a text unless it is JSON.
func (a *app) readInput(arguments []string, schema any) (map[string]any, error) {
	const flag = "--input"
	if len(arguments) == 0 {
		return map[string]any{}, nil
	}
	if first := strings.TrimSpace(arguments[0]); first == "" || strings.ContainsAny(first[:1], `{@[`) || first == standardInput || !strings.Contains(first, "=") {
		if len(arguments) > 1 {
			return nil, usage("--input is given %d times, but is an object", len(arguments)).WithHint("Write one object, or --input KEY=VALUE for each member.")
		}
		return a.readObject(flag, arguments[0])
	}
	input := map[string]any{}
	for _, argument := range arguments {
		key, text, found := strings.Cut(argument, "=")
		if !found || key == "" {
			return nil, usage("--input %s is not KEY=VALUE", cut(argument, 40)).WithHint("Write --input KEY=VALUE for each member, or one JSON object.")
		}
		if _, twice := input[key]; twice {
			return nil, usage("--input names %q twice", key).WithHint("Write a list as JSON, as in --input '%s=[1,2]'.", key)
		}
		input[key] = inputValue(text, memberType(schema, key))
	}
	return input, nil
}

// inputValue is a member's value: JSON if it is JSON and need not be a text.
func inputValue(text, typ string) any {
	if typ != "string" {
		if node, faults := jsonvalue.Parse([]byte(text), 0, 0); len(faults) == 0 {
			return node.Value()
		}
	}
	return text
}

// memberType is the type that a schema gives to a member of its object; "" if it names none, or several.
func memberType(schema any, key string) string {
	object, _ := schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	member, _ := properties[key].(map[string]any)
	typ, _ := member["type"].(string)
	return typ
}

// stateSchema is the schema of the state of a definition.
func stateSchema(definition any) any {
	root, _ := definition.(map[string]any)
	return root["state_schema"]
}
