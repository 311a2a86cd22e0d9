package mcpserver

// Hosts hand these schemas to their models whenever a conversation begins. So the answers of the calls that drive a run
// are described in short, and what waits is described once, by workflow_status, which repeats all that is needed to continue.

// Members that the answers of several tools have.
var (
	stateProperty   = optional("state", obj("State of the open run."))
	endProperties   = []property{optional("final_state", obj("State at the end.")), optional("result", members{{"description", "Output of the completed run; may be null."}})}
	firstProperties = []property{
		optional("parallel_span", obj("Branch of the first pending entry.")),
		optional("agent_id", str("Delegate: agent.")),
		optional("protocol", str("Delegate: protocol.")),
		optional("delegate_input", obj("Delegate: task.")),
		optional("delegate_correlation_id", str("Delegate: send it back.")),
		optional("signal_name", str("Signal waited for.")),
	}
	// repeatedProperty is for calls that may be repeated.
	repeatedProperty = optional("repeated", describe("boolean", "True if this call was taken before; it changed nothing."))
	reasonProperty   = optional("reason", str("Why it was cancelled."))
	modeProperty     = optional("activity_execution_mode", str("Who performs activities."))
	seqProperty      = optional("seq", describe("integer", "Rises with every change."))
	pendingShort     = optional("pending", describe("array", "All it waits for, in branch order; workflow_status describes entries."))
	pendingProperty  = optional("pending", listOf(object(pendingMembers, false), "All it waits for, in branch order."))
	totalProperty    = optional("pending_total", describe("integer", "Number of pending entries, if some are brief."))
	nextShort        = optional("next", obj("The call to make next: tool, arguments (fill in each <…>), note."))
	nextProperty     = optional("next", described("The call to make next.", []property{
		required("tool", str("Tool to call.")),
		required("arguments", obj("Its arguments; fill in each <…>.")),
		required("note", str("How.")),
	}, false))
	warningsProperty = optional("warnings", describe("array", "Doubts about definition or call: code, pointer, message, hint."))
)

// limitsProperty is what workflow_status says of a run that nears a limit.
var limitsProperty = optional("warnings", describe("array", "Limits from 80 % on: code, message, used, limit, hint."))

var pendingMembers = []property{
	required("kind", str("activity, delegate, interrupt, signal, timer, backoff (retry later) or child.")),
	required("node_id", str("Node.")),
	optional("brief", describe("boolean", "Cut short: ask with node_id.")),
	optional("node_type", str("Its type.")),
	optional("id", str("Names any other wait.")),
	optional("execution_id", str("Subworkflow that waits; answer the run.")),
	optional("performed_by", str(`"engine": do not submit it.`)),
	optional("queued", describe("boolean", "No turn yet.")),
	optional("attempt", describe("integer", "Which attempt.")),
	optional("max_attempts", describe("integer", "Attempts allowed.")),
	optional("last_error", str("Failure of the attempt before.")),
	optional("last_error_code", str("Its code.")),
	optional("parallel_span", obj("Its branch; copy it.")),
	optional("config", obj("What to do, as the definition says.")),
	optional("output_schema", members{{"description", "JSON Schema of the result."}}),
	optional("state", obj("State it sees, if not the run's.")),
	optional("agent_id", str("Agent.")),
	optional("protocol", str("Its protocol.")),
	optional("delegate_input", obj("Task; of the first entry above if large.")),
	optional("delegate_correlation_id", str("Send it back.")),
	optional("external_task_id", str("Task at the agent.")),
	optional("interrupt_id", str("Names this interrupt; copy it.")),
	optional("prompt", str("What to ask the person.")),
	optional("prompt_ref", str("Where the prompt is kept.")),
	optional("resume_schema", obj("JSON Schema of resume_payload.")),
	optional("signal_name", str("Signal to deliver.")),
	optional("child_execution_id", str("Subworkflow's run.")),
	optional("workflow_ref", str("What that runs.")),
	optional("idempotency_key", str("Names this attempt; copy it.")),
	optional("timeout_ms", describe("integer", "Time allowed.")),
	optional("deadline", str("When it fails with TIMEOUT.")),
	optional("block_deadline", str("When its parallel block fails.")),
	optional("due_at", str("When it is due.")),
}

// statuses of an answer: the protocol's without failed, which is an error answer, and those of a run whose wait is over.
var statuses = []string{
	"completed", "interrupted", "awaiting_activity", "awaiting_signal", "cancelled", "running", "awaiting_timer", "awaiting_child",
}

// runAnswer are the members that a call that drives a run answers with.
func runAnswer(more ...property) []property {
	list := []property{
		required("execution_id", str("Run.")),
		required("status", oneOf("Where it stands.", statuses...)),
	}
	list = append(list, endProperties...)
	list = append(list, optional("node_id", str("Node that waits.")), stateProperty)
	list = append(list, firstProperties...)
	list = append(list, reasonProperty, modeProperty, seqProperty, pendingShort, totalProperty, nextShort)
	return append(list, more...)
}

// statusAnswer are the members of workflow_status.
func statusAnswer() []property {
	list := []property{
		required("execution_id", str("Run.")),
		required("phase", oneOf("Where it stands.", phases...)),
		optional("current_node_id", str("Node that waits, or stopped it.")),
		optional("last_error", str("Why it failed or was cancelled.")),
		optional("child_execution_id", str("Newest subworkflow.")),
		optional("parent_execution_id", str("Run that started that.")),
		optional("forked_from", obj("Run that this one goes on from: execution_id, seq.")),
	}
	list = append(list, endProperties...)
	list = append(list, stateProperty)
	list = append(list, firstProperties...)
	return append(list,
		optional("values", describe("array", "Of read: at, value or error.")),
		optional("selected", members{{"description", "Of select."}}),
		optional("code", str("Code of the failure.")),
		optional("failed_node_id", str("Node that failed.")),
		reasonProperty, modeProperty,
		optional("definition_name", str("What runs.")),
		optional("definition_version", str("Its version.")),
		optional("definition_hash", str("Its hash.")),
		optional("created_at", str("When it began (UTC).")),
		optional("updated_at", str("When it last changed (UTC).")),
		seqProperty,
		limitsProperty, pendingProperty, totalProperty, nextProperty)
}
