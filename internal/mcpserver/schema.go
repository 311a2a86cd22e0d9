package mcpserver

import (
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// members is a JSON object of an answer or a schema.
type members = jsonvalue.Ordered

// property is a field of a tool's arguments or answers.
type property = calls.Property

// Makers of schemas that many tools use.
var (
	required, optional = calls.Required, calls.Optional
	aText, str, obj    = calls.Text, calls.Str, calls.Obj
	describe, object   = calls.Describe, calls.Object
)

// answerSchema is the output schema of a tool: its answer, or an error.
func answerSchema(answer ...property) members {
	var names []any
	fields := make([]property, 0, len(answer)+1)
	for _, p := range answer {
		if p.Required {
			names = append(names, p.Name)
		}
		fields = append(fields, optional(p.Name, p.Schema))
	}
	s := object(append(fields, optional("error", errorSchema)), false)
	s.Put("anyOf", []members{{{"required", names}}, {{"required", []any{"error"}}}})
	return s
}

var errorSchema = obj("Alone, if rejected or failed: code, message, details.")
