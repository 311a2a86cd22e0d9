package problem

// Codes of the protocol (AWP 1.0.0). Their text is contract.
const (
	// ValidationError: a definition, argument or size was refused.
	ValidationError Code = "VALIDATION_ERROR"
	// InterruptInParallelBranch: an interrupt node can be reached inside a parallel branch.
	InterruptInParallelBranch Code = "INTERRUPT_IN_PARALLEL_BRANCH"
	// DuplicateExecutionID: the execution id given to start has been used.
	DuplicateExecutionID Code = "DUPLICATE_EXECUTION_ID"
	// ExecutionNotFound: no run has this id.
	ExecutionNotFound Code = "EXECUTION_NOT_FOUND"
	// InvalidListCursor: the cursor was not made by a list call. Adapters of the protocol report VALIDATION_ERROR.
	InvalidListCursor Code = "INVALID_LIST_CURSOR"
	// InvalidResumePayload: a resume was refused; the run is unchanged.
	InvalidResumePayload Code = "INVALID_RESUME_PAYLOAD"
	// SubmitNotAwaiting: the run does not wait for this activity.
	SubmitNotAwaiting Code = "ACTIVITY_SUBMIT_NOT_AWAITING"
	// SubmitNodeMismatch: the run waits for another activity.
	SubmitNodeMismatch Code = "ACTIVITY_SUBMIT_NODE_MISMATCH"
	// SubmitParallelMismatch: the parallel span is missing, wrong or not wanted.
	SubmitParallelMismatch Code = "ACTIVITY_SUBMIT_PARALLEL_MISMATCH"
	// SubmitValidationError: definition, input or correlation id of a submit do not belong to the run.
	SubmitValidationError Code = "SUBMIT_VALIDATION_ERROR"
	// SignalNotAwaiting: the run does not wait for a signal.
	SignalNotAwaiting Code = "SIGNAL_NOT_AWAITING"
	// SignalNameMismatch: the run waits for a signal of another name.
	SignalNameMismatch Code = "SIGNAL_NAME_MISMATCH"
	// SignalValidationError: arguments of a signal are wrong.
	SignalValidationError Code = "SIGNAL_VALIDATION_ERROR"
	// CancelNotAllowed: the run has completed or failed.
	CancelNotAllowed Code = "CANCEL_NOT_ALLOWED"
	// CancelValidationError: arguments of a cancel are wrong, or the run cannot be read.
	CancelValidationError Code = "CANCEL_VALIDATION_ERROR"
	// EngineFailure: the run failed, or met a rule that is found only at run time.
	EngineFailure Code = "ENGINE_FAILURE"
	// Internal: a fault of the engine or its surroundings, such as an unreadable database.
	Internal Code = "INTERNAL_ERROR"
	// Nondeterminism: the recorded history and the definition disagree.
	Nondeterminism Code = "NONDETERMINISM_DETECTED"
	// Timeout: an attempt did not end by its deadline.
	Timeout Code = "TIMEOUT"
	// OutputSchemaViolation: an activity's output breaks its output_schema.
	OutputSchemaViolation Code = "OUTPUT_SCHEMA_VIOLATION"
)

// Codes of executors and delegates (spec: activities, 15).
const (
	ExecutorNotConfigured       Code = "COMPOSITE_EXECUTOR_NOT_CONFIGURED"
	ExecutorUnsupportedNode     Code = "ACTIVITY_EXECUTOR_UNSUPPORTED_NODE"
	StepConfigInvalid           Code = "STEP_CONFIG_INVALID"
	HandlerNotFound             Code = "HANDLER_NOT_FOUND"
	HandlerError                Code = "HANDLER_ERROR"
	ActivityCancelled           Code = "ACTIVITY_CANCELLED"
	DelegateProtocolUnsupported Code = "DELEGATE_PROTOCOL_UNSUPPORTED"
	DelegateAgentNotFound       Code = "DELEGATE_AGENT_NOT_FOUND"
	DelegateProtocolError       Code = "DELEGATE_PROTOCOL_ERROR"
	A2AConfigInvalid            Code = "A2A_CONFIG_INVALID"
	A2ACredentialsMissing       Code = "A2A_CREDENTIALS_MISSING"
	A2AProviderError            Code = "A2A_PROVIDER_ERROR"
	A2ATaskFailed               Code = "A2A_TASK_FAILED"
	ActivityPortInvoked         Code = "CONFORMANCE_ACTIVITY_PORT_INVOKED"
	DelegatePortInvoked         Code = "CONFORMANCE_DELEGATE_PORT_INVOKED"
)

// Codes that this engine adds.
const (
	// ExecutorPanic: an executor panicked; the attempt counts as failed.
	ExecutorPanic Code = "ACTIVITY_EXECUTOR_PANIC"
	// ExecutorFailed: an executor failed without a code of its own.
	ExecutorFailed Code = "ACTIVITY_FAILED"
	// ActivityOutputInvalid: an output is not JSON, for instance because it holds NaN.
	ActivityOutputInvalid Code = "ACTIVITY_OUTPUT_INVALID"
	// ActivityOutputTooLarge: an output exceeds the size limit.
	ActivityOutputTooLarge Code = "ACTIVITY_OUTPUT_TOO_LARGE"
	// StepBudgetExceeded: a run visited more nodes than its limit allows.
	StepBudgetExceeded Code = "STEP_BUDGET_EXCEEDED"
	// StateInvalid: a state breaks the definition's state_schema.
	StateInvalid Code = "STATE_SCHEMA_VIOLATION"
	// InputInvalid: the input of a run breaks input_schema or state_schema.
	InputInvalid Code = "INPUT_INVALID"
	// ExpressionFailed: a jq program failed.
	ExpressionFailed Code = "EXPRESSION_FAILED"
	// ExpressionLimit: a jq program exceeded its time, output or size limit.
	ExpressionLimit Code = "EXPRESSION_LIMIT_EXCEEDED"
	// ExpressionInvalid: a jq program does not compile.
	ExpressionInvalid Code = "EXPRESSION_INVALID"
	// WorkflowNotFound: a workflow_ref or definition name is not known.
	WorkflowNotFound Code = "WORKFLOW_NOT_FOUND"
	// VersionPinMismatch: a subworkflow's definition hash is not the pinned one.
	VersionPinMismatch Code = "VERSION_PIN_MISMATCH"
	// SubworkflowDepthExceeded: subworkflows are nested too deeply.
	SubworkflowDepthExceeded Code = "SUBWORKFLOW_DEPTH_EXCEEDED"
	// HistoryConflict: another writer appended first.
	HistoryConflict Code = "HISTORY_CONFLICT"
	// HistoryNewer: rows or a database were written by a newer version.
	HistoryNewer Code = "HISTORY_VERSION_UNSUPPORTED"
	// HistoryCorrupt: stored rows cannot be read.
	HistoryCorrupt Code = "HISTORY_CORRUPT"
	// DefinitionNotFound: the run's definition was not stored and not sent.
	DefinitionNotFound Code = "DEFINITION_REQUIRED"
	// RunnerClosed: the engine is shutting down.
	RunnerClosed Code = "ENGINE_CLOSED"
	// UsageError: a command line or configuration is wrong.
	UsageError Code = "USAGE_ERROR"
)
