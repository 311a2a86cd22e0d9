package mcpserver

import "github.com/workflows-engine/workflows-engine/internal/jsonvalue"

// members is a JSON object of an answer or a schema.
type members = jsonvalue.Ordered

// property is one member of a tool's arguments or answers.
type property struct {
	name     string
	required bool
	schema   members
}

func required(name string, schema members) property { return property{name, true, schema} }
func optional(name string, schema members) property { return property{name, false, schema} }

// describe makes a schema of one type; more are further members in pairs of name and value.
func describe(kind, description string, more ...any) members {
	s := members{{"type", kind}}
	for i := 0; i+1 < len(more); i += 2 {
		s.Put(more[i].(string), more[i+1])
	}
	s.Put("description", description)
	return s
}

// aText is a non-empty string argument, str a string in an answer.
func aText(description string) members { return describe("string", description, "minLength", 1.0) }
func str(description string) members   { return describe("string", description) }
func obj(description string) members   { return describe("object", description) }

func oneOf(description string, values ...string) members {
	return append(choice(values...), describe("string", description)[1:]...)
}

// choice is oneOf without a description.
func choice(values ...string) members {
	names := make([]any, len(values))
	for i, v := range values {
		names[i] = v
	}
	return members{{"type", "string"}, {"enum", names}}
}

func listOf(items members, description string) members {
	return describe("array", description, "items", items)
}

// object makes the schema of an object with these properties. A closed object has no others.
func object(properties []property, closed bool) members {
	s := members{{"type", "object"}}
	var fields members
	var names []any
	for _, p := range properties {
		fields.Put(p.name, p.schema)
		if p.required {
			names = append(names, p.name)
		}
	}
	s.Put("properties", fields)
	if len(names) > 0 {
		s.Put("required", names)
	}
	if closed {
		s.Put("additionalProperties", false)
	}
	return s
}

// described is object with a description.
func described(description string, properties []property, closed bool) members {
	s := object(properties, closed)
	s.Put("description", description)
	return s
}

// answerSchema is the output schema of a tool: what it answers, or an error.
func answerSchema(answer ...property) members {
	var names []any
	fields := make([]property, 0, len(answer)+1)
	for _, p := range answer {
		if p.required {
			names = append(names, p.name)
		}
		fields = append(fields, optional(p.name, p.schema))
	}
	s := object(append(fields, optional("error", errorSchema)), false)
	s.Put("anyOf", []members{{{"required", names}}, {{"required", []any{"error"}}}})
	return s
}

var errorSchema = obj("Alone, if refused or failed: code, message, details.")
