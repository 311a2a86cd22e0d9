// Package calls holds the calls of the engine as JSON: the schemas of their arguments and answers, and the strict reader of
// the arguments. MCP tools and the HTTP API share them.
package calls

import (
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Members is a JSON object of an answer or a schema.
type Members = jsonvalue.Ordered

// Property is a field of the arguments or of the answer of a call.
type Property struct {
	Name     string
	Required bool
	Schema   Members
}

// Required and Optional return a property with a schema.
func Required(name string, schema Members) Property { return Property{name, true, schema} }
func Optional(name string, schema Members) Property { return Property{name, false, schema} }

// Describe makes a schema of one type; more are further fields in pairs of name and value.
func Describe(kind, description string, more ...any) Members {
	s := Members{{"type", kind}}
	for i := 0; i+1 < len(more); i += 2 {
		s.Put(more[i].(string), more[i+1])
	}
	s.Put("description", description)
	return s
}

// Text is the schema of a non-empty string argument, Str that of a string in an answer, Obj that of an object.
func Text(description string) Members { return Describe("string", description, "minLength", 1.0) }
func Str(description string) Members  { return Describe("string", description) }
func Obj(description string) Members  { return Describe("object", description) }

// OneOf is the schema of a string with some values.
func OneOf(description string, values ...string) Members {
	return append(Choice(values...), Describe("string", description)[1:]...)
}

// Choice is OneOf without a description.
func Choice(values ...string) Members {
	names := make([]any, len(values))
	for i, v := range values {
		names[i] = v
	}
	return Members{{"type", "string"}, {"enum", names}}
}

// ListOf is the schema of an array.
func ListOf(items Members, description string) Members {
	return Describe("array", description, "items", items)
}

// Object makes the schema of an object with these properties. A closed object has no others.
func Object(properties []Property, closed bool) Members {
	s := Members{{"type", "object"}}
	var fields Members
	var names []any
	for _, p := range properties {
		fields.Put(p.Name, p.Schema)
		if p.Required {
			names = append(names, p.Name)
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

// Described is Object with a description.
func Described(description string, properties []Property, closed bool) Members {
	s := Object(properties, closed)
	s.Put("description", description)
	return s
}

// MCP hosts send these schemas to their models in every conversation. So they name the fields that a caller acts upon; the
// answers explain the rest, and workflow_status describes pending once.

// Fields that the answers of several tools have.
var (
	ExecutionIDProperty = Required("execution_id", Str("Run."))
	StateProperty       = Optional("state", Obj("State of the open run; large parts are references."))
	UnchangedProperty   = Optional("unchanged", Describe("array", "Left out of the state: as since_seq had it."))
	FinalProperty       = Optional("final_state", Obj("State at the end, unless equal to result."))
	ResultProperty      = Optional("result", Members{{"description", "Output of the completed run; may be null."}})
	ReasonProperty      = Optional("reason", Str("Why it was cancelled."))
	SeqProperty         = Optional("seq", Describe("integer", "Rises with every change."))
	NextProperty        = Optional("next", Obj("The call to make next: tool, arguments (fill in each <…>), note."))
)

// PendingProperties are the fields of a wait of a run.
var PendingProperties = []Property{
	Required("kind", Str("activity, delegate, interrupt, signal, timer, backoff or child.")),
	Required("node_id", Str("Node.")),
	Optional("brief", Describe("boolean", "Cut short: ask with node_id.")),
	Optional("execution_id", Str("Subworkflow that waits; answer the run.")),
	Optional("performed_by", Str(`"engine": do not submit it.`)),
	Optional("limit", Obj("Full limit.")),
	Optional("attempt", Describe("integer", "Which of max_attempts.")),
	Optional("last_error", Str("Failure of the attempt before.")),
	Optional("config", Obj("The task, from the definition.")),
	Optional("output_schema", Members{{"description", "Of the result."}}),
	Optional("state", Obj("State it sees: differences from the run's.")),
	Optional("delegate_input", Obj("Task.")),
	Optional("prompt", Members{{"description", "What to ask the person, with shown."}}),
	Optional("resume_schema", Obj("Of resume_payload.")),
	Optional("signal_name", Str("Signal to deliver.")),
	Optional("idempotency_key", Str("Names this attempt.")),
	Optional("deadline", Str("When it fails with TIMEOUT.")),
	Optional("due_at", Str("When it is due.")),
}

// RunAnswer are the fields that a call that drives a run answers with.
func RunAnswer(more ...Property) []Property {
	return append([]Property{
		ExecutionIDProperty,
		Required("status", Str("completed, cancelled, or its wait.")),
		ResultProperty, StateProperty,
		Optional("pending", Describe("array", "What it waits for; see workflow_status.")),
		NextProperty,
	}, more...)
}

// RepeatedProperty is for calls that may be repeated, WarningsProperty for those that are judged.
var (
	RepeatedProperty = Optional("repeated", Describe("boolean", "Repeated call; nothing changed."))
	WarningsProperty = Optional("warnings", Describe("array", "Doubts about definition or call."))
)

// StatusAnswer are the fields of a run as a call reads it.
func StatusAnswer() []Property {
	return []Property{
		ExecutionIDProperty,
		Required("phase", OneOf("The phase of the run.", Phases...)),
		Optional("current_node_id", Str("Node that waits, or stopped it.")),
		Optional("last_error", Str("Why it failed or was cancelled.")),
		Optional("code", Str("Code of the failure.")),
		Optional("error_data", Obj("Value that the program raised.")),
		FinalProperty, ResultProperty, StateProperty, UnchangedProperty,
		Optional("values", Describe("array", "Of read: at, value or error.")),
		Optional("selected", Members{{"description", "Of select."}}),
		ReasonProperty,
		Optional("definition_name", Str("What runs.")),
		SeqProperty,
		Optional("warnings", Describe("array", "Limits from 80 % on; a run that can only fail.")),
		Optional("pending", ListOf(Object(PendingProperties, false), "What it waits for, in branch order.")),
		Optional("pending_total", Describe("integer", "How many, if some are brief or left out.")),
		NextProperty,
	}
}
