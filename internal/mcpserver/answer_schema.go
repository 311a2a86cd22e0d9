package mcpserver

// Hosts hand these schemas to their models whenever a conversation begins. So they name what a caller acts upon, and leave to the
// answers what explains itself there; what waits is described once, by workflow_status.

// Members that the answers of several tools have.
var (
	executionIDProperty = required("execution_id", str("Run."))
	stateProperty       = optional("state", obj("State of the open run; large parts are references."))
	unchangedProperty   = optional("unchanged", describe("array", "Left out of the state: as since_seq had it."))
	finalProperty       = optional("final_state", obj("State at the end, unless result is the same."))
	resultProperty      = optional("result", members{{"description", "Output of the completed run; may be null."}})
	reasonProperty      = optional("reason", str("Why it was cancelled."))
	seqProperty         = optional("seq", describe("integer", "Rises with every change."))
	nextProperty        = optional("next", obj("The call to make next: tool, arguments (fill in each <…>), note."))
)

var pendingMembers = []property{
	required("kind", str("activity, delegate, interrupt, signal, timer, backoff or child.")),
	required("node_id", str("Node.")),
	optional("brief", describe("boolean", "Cut short: ask with node_id.")),
	optional("execution_id", str("Subworkflow that waits; answer the run.")),
	optional("performed_by", str(`"engine": do not submit it.`)),
	optional("attempt", describe("integer", "Which of max_attempts.")),
	optional("last_error", str("Failure of the attempt before.")),
	optional("config", obj("What to do, as the definition says.")),
	optional("output_schema", members{{"description", "Of the result."}}),
	optional("state", obj("State it sees, if not the run's: what differs.")),
	optional("delegate_input", obj("Task.")),
	optional("prompt", members{{"description", "What to ask the person, with shown."}}),
	optional("resume_schema", obj("Of resume_payload.")),
	optional("signal_name", str("Signal to deliver.")),
	optional("idempotency_key", str("Names this attempt.")),
	optional("deadline", str("When it fails with TIMEOUT.")),
	optional("due_at", str("When it is due.")),
}

// runAnswer are the members that a call that drives a run answers with.
func runAnswer(more ...property) []property {
	return append([]property{
		executionIDProperty,
		required("status", str("completed, cancelled, or what it waits for.")),
		resultProperty, stateProperty,
		optional("pending", describe("array", "What it waits for; see workflow_status.")),
		nextProperty,
	}, more...)
}

// repeatedProperty is for calls that may be repeated, warningsProperty for those that are judged.
var (
	repeatedProperty = optional("repeated", describe("boolean", "Taken before; nothing changed."))
	warningsProperty = optional("warnings", describe("array", "Doubts about definition or call."))
)

// statusAnswer are the members of workflow_status.
func statusAnswer() []property {
	return []property{
		executionIDProperty,
		required("phase", oneOf("Where it stands.", phases...)),
		optional("current_node_id", str("Node that waits, or stopped it.")),
		optional("last_error", str("Why it failed or was cancelled.")),
		optional("code", str("Code of the failure.")),
		optional("error_data", obj("raised: what the program raised.")),
		finalProperty, resultProperty, stateProperty, unchangedProperty,
		optional("values", describe("array", "Of read: at, value or error.")),
		optional("selected", members{{"description", "Of select."}}),
		reasonProperty,
		optional("definition_name", str("What runs.")),
		seqProperty,
		optional("warnings", describe("array", "Limits from 80 % on; a run that can only fail.")),
		optional("pending", listOf(object(pendingMembers, false), "What it waits for, in branch order.")),
		optional("pending_total", describe("integer", "How many, if some are brief or left out.")),
		nextProperty,
	}
}
