package mcpserver

import (
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// members is a JSON object of an answer or a schema.
type members = jsonvalue.Ordered

// property is one field of a tool's arguments or answers.
type property struct {
	name     string
	required bool
	schema   members
}

func required(name string, schema members) property { return property{name, true, schema} }
func optional(name string, schema members) property { return property{name, false, schema} }

// describe makes a schema of one type; more holds further keywords in pairs of name and value.
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

// answerSchema is the output schema of a tool: its answer, or an error.
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

var errorSchema = obj("Alone, if rejected or failed: code, message, details.")

// Hosts send these schemas to their models in every conversation. So they name the fields that a caller acts upon; the
// answers explain the rest, and workflow_status describes pending once.

// Fields in the answers of several tools.
var (
	executionIDProperty = required("execution_id", str("Run."))
	stateProperty       = optional("state", obj("State of the open run; large parts are references."))
	unchangedProperty   = optional("unchanged", describe("array", "Fields left out of the state: unchanged since since_seq."))
	finalProperty       = optional("final_state", obj("State at the end, unless equal to result."))
	resultProperty      = optional("result", members{{"description", "Output of the completed run; may be null."}})
	reasonProperty      = optional("reason", str("Why it was cancelled."))
	seqProperty         = optional("seq", describe("integer", "Rises with every change."))
	nextProperty        = optional("next", obj("The call to make next: tool, arguments (fill in each <…>), note."))
)

var pendingFields = []property{
	required("kind", str("activity, delegate, interrupt, signal, timer, backoff or child.")),
	required("node_id", str("Node.")),
	optional("brief", describe("boolean", "Cut short: ask with node_id.")),
	optional("execution_id", str("Subworkflow that waits; answer the run.")),
	optional("performed_by", str(`"engine": do not submit it.`)),
	optional("attempt", describe("integer", "Which of max_attempts.")),
	optional("last_error", str("Failure of the attempt before.")),
	optional("config", obj("The task, from the definition.")),
	optional("output_schema", members{{"description", "Of the result."}}),
	optional("state", obj("State it sees: differences from the run's.")),
	optional("delegate_input", obj("Task.")),
	optional("prompt", members{{"description", "What to ask the person, with shown."}}),
	optional("resume_schema", obj("Of resume_payload.")),
	optional("signal_name", str("Signal to deliver.")),
	optional("idempotency_key", str("Names this attempt.")),
	optional("deadline", str("When it fails with TIMEOUT.")),
	optional("due_at", str("When it is due.")),
}

// runAnswer returns the fields of the answer of a call that drives a run.
func runAnswer(more ...property) []property {
	return append([]property{
		executionIDProperty,
		required("status", str("completed, cancelled, or what it waits for.")),
		resultProperty, stateProperty,
		optional("pending", describe("array", "What it waits for; see workflow_status.")),
		nextProperty,
	}, more...)
}

// repeatedProperty is for calls that may be repeated, warningsProperty for calls with warnings.
var (
	repeatedProperty = optional("repeated", describe("boolean", "Repeated call; nothing changed."))
	warningsProperty = optional("warnings", describe("array", "Warnings about definition or call."))
)

// statusAnswer returns the fields of workflow_status.
func statusAnswer() []property {
	return []property{
		executionIDProperty,
		required("phase", oneOf("Phase of the run.", phases...)),
		optional("current_node_id", str("Node that waits, or stopped it.")),
		optional("last_error", str("Why it failed or was cancelled.")),
		optional("code", str("Code of the failure.")),
		optional("error_data", obj("Value that the program raised.")),
		finalProperty, resultProperty, stateProperty, unchangedProperty,
		optional("values", describe("array", "Of read: at, value or error.")),
		optional("selected", members{{"description", "Of select."}}),
		reasonProperty,
		optional("definition_name", str("What runs.")),
		seqProperty,
		optional("warnings", describe("array", "Limits from 80 % on; a run that can only fail.")),
		optional("pending", listOf(object(pendingFields, false), "What it waits for, in branch order.")),
		optional("pending_total", describe("integer", "How many, if some are brief or left out.")),
		nextProperty,
	}
}
