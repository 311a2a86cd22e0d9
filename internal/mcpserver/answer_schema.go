package mcpserver

// Members that the answers of several tools have.
var (
	stateProperty     = optional("state", obj("The workflow's state while the run goes on."))
	endProperties     = []property{optional("final_state", obj("The state at the end.")), optional("result", members{{"description", "Output of a completed run; may be null."}})}
	waitingProperties = []property{
		optional("parallel_span", spanSchema("The parallel branch of the first pending activity.")),
		optional("agent_id", str("Delegates: the agent to hand the task to.")),
		optional("protocol", str("Delegates: a2a, mcp or sdk.")),
		optional("delegate_input", obj("Delegates: the task's input.")),
		optional("delegate_correlation_id", str("Delegates: send it back with the outcome.")),
		optional("signal_name", str("The signal waited for.")),
	}
	// repeatedProperty is for calls that may be repeated.
	repeatedProperty = optional("repeated", describe("boolean", "True if this call had been taken before; it changed nothing now."))
	reasonProperty   = optional("reason", str("Why the run was cancelled."))
	modeProperty     = optional("activity_execution_mode", str("Who performs activities: in_process or host_mediated."))
	pendingProperty  = optional("pending", listOf(object(pendingMembers, false), "Everything the run waits for, in branch order."))
	totalProperty    = optional("pending_total", describe("integer", "How much the run waits for, where pending does not tell all in full."))
	nextProperty     = optional("next", described("The call that takes the run further.", []property{
		required("tool", str("The tool to call.")),
		required("arguments", obj("Its arguments; put the object that is asked for in place of each <…>.")),
		required("note", str("How to go about it.")),
	}, false))
)

// warningsProperty is what workflow_start says of a definition that is accepted.
var warningsProperty = optional("warnings", listOf(object([]property{
	required("code", str("Stable code.")),
	required("pointer", str("JSON pointer of the place in the definition.")),
	required("message", str("What is doubtful there.")),
	optional("hint", str("What to write instead.")),
}, false), "What is doubtful about the definition, up to 10."))

var pendingMembers = []property{
	required("kind", str("activity, delegate, interrupt, signal, timer, backoff (a retry that is due later) or child (a subworkflow).")),
	required("node_id", str("The node that waits.")),
	optional("brief", describe("boolean", "True where config and the like are left out: workflow_status with node_id gives them.")),
	optional("node_type", str("Its type, for instance llm_call.")),
	optional("id", str("Names this wait among all runs.")),
	optional("execution_id", str("The subworkflow's run that waits, if it is not the run itself. Answer to the run itself.")),
	optional("performed_by", str(`"engine" for an activity that this server is performing; do not submit it.`)),
	optional("attempt", describe("integer", "Which attempt this is.")),
	optional("max_attempts", describe("integer", "How many the retry policy allows.")),
	optional("last_error", str("Why the attempt before failed.")),
	optional("last_error_code", str("Its code.")),
	optional("parallel_span", spanSchema("The branch it is in.")),
	optional("config", obj("Activities: what to do, as the definition says: prompts, server, tool, arguments, handler.")),
	optional("output_schema", members{{"description", "JSON Schema that the result must satisfy."}}),
	optional("state", obj("The state this node sees, where it differs from state above.")),
	optional("agent_id", str("Delegates: the agent.")),
	optional("protocol", str("Delegates: its protocol.")),
	optional("delegate_input", obj("Delegates: the task. That of the first entry stands only above if it is large.")),
	optional("delegate_correlation_id", str("Delegates: send it back.")),
	optional("external_task_id", str("Delegates: the task at the agent that works on it or asks.")),
	optional("interrupt_id", str("Interrupts: names it in workflow_resume.")),
	optional("prompt", str("Interrupts: what to ask the person.")),
	optional("prompt_ref", str("Interrupts: where the prompt is kept, if it is not written out.")),
	optional("resume_schema", obj("Interrupts: JSON Schema of resume_payload.")),
	optional("signal_name", str("Signals: the name to deliver.")),
	optional("child_execution_id", str("Subworkflows: the child's run.")),
	optional("workflow_ref", str("Subworkflows: what it runs.")),
	optional("idempotency_key", str("Names this attempt; pass it on to what you call, and back in the submit.")),
	optional("timeout_ms", describe("integer", "How long the attempt may take.")),
	optional("deadline", str("When the attempt or interrupt fails with TIMEOUT (UTC).")),
	optional("block_deadline", str("When the parallel block around it fails with TIMEOUT (UTC).")),
	optional("due_at", str("When the timer fires or the retry is due (UTC).")),
}

// statuses of an answer: the protocol's without failed, which is an error answer, and those of a run whose wait is over.
var statuses = []string{
	"completed", "interrupted", "awaiting_activity", "awaiting_signal", "cancelled", "running", "awaiting_timer", "awaiting_child",
}

// runAnswer are the members that a call that drives a run answers with.
func runAnswer() []property {
	list := []property{
		required("execution_id", str("The run.")),
		required("status", oneOf("Where the run stands.", asAny(statuses)...)),
	}
	list = append(list, endProperties...)
	list = append(list, optional("node_id", str("The node that waits.")), stateProperty)
	list = append(list, waitingProperties...)
	return append(list, reasonProperty, modeProperty, pendingProperty, totalProperty, nextProperty)
}

// statusAnswer are the members of workflow_status.
func statusAnswer() []property {
	list := []property{
		required("execution_id", str("The run.")),
		required("phase", oneOf("Where the run stands.", asAny(phases)...)),
		optional("current_node_id", str("The node that waits, or at which the run stopped.")),
		optional("last_error", str("Why the run failed or was cancelled.")),
		optional("child_execution_id", str("The newest subworkflow.")),
		optional("parent_execution_id", str("The run that started that subworkflow.")),
	}
	list = append(list, endProperties...)
	list = append(list, stateProperty)
	list = append(list, waitingProperties...)
	return append(list,
		optional("code", str("Code of the failure.")),
		optional("failed_node_id", str("The node that failed.")),
		reasonProperty, modeProperty,
		optional("definition_name", str("What runs.")),
		optional("definition_version", str("Its version.")),
		optional("definition_hash", str("Its hash.")),
		optional("created_at", str("When the run began (UTC).")),
		optional("updated_at", str("When it last changed (UTC).")),
		optional("seq", describe("integer", "Number of its last record; rises with every change.")),
		pendingProperty, totalProperty, nextProperty)
}
