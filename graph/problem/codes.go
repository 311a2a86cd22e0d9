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
	LLMConfigInvalid            Code = "LLM_CONFIG_INVALID"
	LLMCredentialsMissing       Code = "LLM_CREDENTIALS_MISSING"
	LLMProviderError            Code = "LLM_PROVIDER_ERROR"
	LLMOutputInvalid            Code = "LLM_OUTPUT_VALIDATION_FAILED"
	DelegateProtocolUnsupported Code = "DELEGATE_PROTOCOL_UNSUPPORTED"
	DelegateAgentNotFound       Code = "DELEGATE_AGENT_NOT_FOUND"
	DelegateProtocolError       Code = "DELEGATE_PROTOCOL_ERROR"
	InvalidToolCallConfig       Code = "INVALID_TOOL_CALL_CONFIG"
	MCPServerNotConfigured      Code = "MCP_SERVER_NOT_CONFIGURED"
	MCPCommandNotAllowed        Code = "MCP_COMMAND_NOT_ALLOWED"
	MCPToolExecutionError       Code = "MCP_TOOL_EXECUTION_ERROR"
	MCPProtocolError            Code = "MCP_PROTOCOL_ERROR"
	MCPConnectionClosed         Code = "MCP_CONNECTION_CLOSED"
	MCPClientError              Code = "MCP_CLIENT_ERROR"
	ActivityTimeout             Code = "ACTIVITY_TIMEOUT"
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
	// MCPArgumentsInvalid: the arguments of a tool_call break the tool's input schema; nothing was called.
	MCPArgumentsInvalid Code = "MCP_ARGUMENTS_INVALID"
	// StepCommandFailed: the program of a step ended with another status than 0, or was killed.
	StepCommandFailed Code = "STEP_COMMAND_FAILED"
	// StepCommandNotStarted: the program of a step cannot be started.
	StepCommandNotStarted Code = "STEP_COMMAND_NOT_STARTED"
	// StepBudgetExceeded: a run visited more nodes than its limit allows.
	StepBudgetExceeded Code = "STEP_BUDGET_EXCEEDED"
	// RecordLimitExceeded: a run has more records than its limit allows.
	RecordLimitExceeded Code = "RECORD_LIMIT_EXCEEDED"
	// ByteLimitExceeded: a run's records take more than its limit allows.
	ByteLimitExceeded Code = "BYTE_LIMIT_EXCEEDED"
	// PendingLimitExceeded: a run awaits more activities at the same time than its limit allows.
	PendingLimitExceeded Code = "PENDING_LIMIT_EXCEEDED"
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
	// LeaseHeld: another process drives the run.
	LeaseHeld Code = "LEASE_HELD"
	// HistoryNewer: rows or a database were written by a newer version.
	HistoryNewer Code = "HISTORY_VERSION_UNSUPPORTED"
	// HistoryCorrupt: stored rows cannot be read.
	HistoryCorrupt Code = "HISTORY_CORRUPT"
	// StoreLocked: another process has kept the database locked for longer than a call waits. Nothing was written.
	StoreLocked Code = "STORE_LOCKED"
	// StoreFull: there is no room for what was to be written. Nothing was written.
	StoreFull Code = "STORE_FULL"
	// StoreReadOnly: the database cannot be written to.
	StoreReadOnly Code = "STORE_READ_ONLY"
	// StoreUnavailable: the database cannot be opened, or its disk does not read or write.
	StoreUnavailable Code = "STORE_UNAVAILABLE"
	// StoreReplaced: the database was deleted, moved or restored while the process used it. Nothing was written, and nothing
	// will be until the process is started again.
	StoreReplaced Code = "STORE_REPLACED"
	// Unsupported: the engine, or the store behind it, cannot do what was asked for. Nothing was done.
	Unsupported Code = "UNSUPPORTED_BY_BACKEND"
	// DefinitionNotFound: the run's definition was not stored and not sent.
	DefinitionNotFound Code = "DEFINITION_REQUIRED"
	// RunnerClosed: the engine is shutting down.
	RunnerClosed Code = "ENGINE_CLOSED"
	// UsageError: a command line or configuration is wrong.
	UsageError Code = "USAGE_ERROR"
)

// Codes of findings in an operator manifest. CONFIG_BLANK and FIELD_IGNORED are others.
const (
	// ManifestSyntax: the text is no JSON.
	ManifestSyntax Code = "MANIFEST_SYNTAX"
	// ManifestInvalid: a value breaks the manifest's form.
	ManifestInvalid Code = "MANIFEST_INVALID"
	// ManifestServerUnknown: a delegate agent names a server that the manifest does not have.
	ManifestServerUnknown Code = "MANIFEST_SERVER_UNKNOWN"
)

// Codes of findings in a definition's text.
const (
	// DefinitionSyntax: the text is no JSON or YAML.
	DefinitionSyntax Code = "DEFINITION_SYNTAX"
	// DefinitionEncoding: the text holds bytes or escapes that are no Unicode characters.
	DefinitionEncoding Code = "DEFINITION_ENCODING"
	// DefinitionDuplicate: an object has two members of the same name.
	DefinitionDuplicate Code = "DEFINITION_DUPLICATE_MEMBER"
	// DefinitionReserved: a member is named __proto__, which the definition hash does not see.
	DefinitionReserved Code = "DEFINITION_RESERVED_MEMBER"
	// DefinitionNumber: a number does not fit into a double.
	DefinitionNumber Code = "DEFINITION_NUMBER"
	// DefinitionTooDeep: the document is nested too deeply.
	DefinitionTooDeep Code = "DEFINITION_TOO_DEEP"
	// DefinitionTooLarge: the document exceeds the size limit.
	DefinitionTooLarge Code = "DEFINITION_TOO_LARGE"
	// YAMLUnsupported: the text uses a part of YAML that has no JSON form, or that is read differently by other readers.
	YAMLUnsupported Code = "YAML_UNSUPPORTED"
)

// Codes of findings in a definition's structure and graph.
const (
	// DefinitionSchema: a value breaks the schema of workflow definitions.
	DefinitionSchema Code = "DEFINITION_SCHEMA"
	// DefinitionSignature: a signature block is malformed.
	DefinitionSignature Code = "DEFINITION_SIGNATURE"
	// DuplicateNodeID: two nodes have the same id.
	DuplicateNodeID Code = "DUPLICATE_NODE_ID"
	// ReservedNodeID: a node is named __start__.
	ReservedNodeID Code = "RESERVED_NODE_ID"
	// UnknownNode: an edge, switch target or branch entry names no node.
	UnknownNode Code = "UNKNOWN_NODE"
	// GraphEntry: there is not exactly one __start__ edge, or an edge leads into __start__.
	GraphEntry Code = "GRAPH_ENTRY"
	// GraphStart: there is not exactly one start node.
	GraphStart Code = "GRAPH_START_NODES"
	// GraphEnd: there is not exactly one end node.
	GraphEnd Code = "GRAPH_END_NODES"
	// GraphOutgoing: a node has the wrong number of outgoing edges.
	GraphOutgoing Code = "GRAPH_OUTGOING_EDGES"
	// GraphUnusedEdge: an edge is never followed.
	GraphUnusedEdge Code = "GRAPH_UNUSED_EDGE"
	// GraphUnreachable: no run can reach a node.
	GraphUnreachable Code = "GRAPH_UNREACHABLE_NODE"
	// GraphLoop: a run that enters a loop can never leave it.
	GraphLoop Code = "GRAPH_ENDLESS_LOOP"
	// GraphNoEnd: the end node cannot be reached.
	GraphNoEnd Code = "GRAPH_END_UNREACHABLE"
	// ParallelBranch: a branch does not lead to its join target.
	ParallelBranch Code = "PARALLEL_BRANCH_BROKEN"
	// ParallelCount: a parallel node wants more branches than it has.
	ParallelCount Code = "PARALLEL_BRANCH_COUNT"
	// ParallelName: two branches of a parallel node have the same name.
	ParallelName Code = "PARALLEL_BRANCH_NAME"
	// ParallelEmpty: a branch has no node.
	ParallelEmpty Code = "PARALLEL_BRANCH_EMPTY"
	// SwitchDefault: a switch without default fails when no case matches.
	SwitchDefault Code = "SWITCH_WITHOUT_DEFAULT"
)

// Codes of findings in the parts of a definition. EXPRESSION_INVALID is another.
const (
	// StateSchemaInvalid: the state_schema does not compile.
	StateSchemaInvalid Code = "STATE_SCHEMA_INVALID"
	// SchemaInvalid: another schema of a definition does not compile.
	SchemaInvalid Code = "SCHEMA_INVALID"
	// SchemaPortability: a schema means the same only to some engines.
	SchemaPortability Code = "SCHEMA_PORTABILITY"
	// ReducerCustom: the reducer custom is refused by the protocol.
	ReducerCustom Code = "REDUCER_CUSTOM"
	// ReducerUnknown: a reducer has no meaning.
	ReducerUnknown Code = "REDUCER_UNKNOWN"
	// ReducerType: a reducer makes values that the property's type forbids.
	ReducerType Code = "REDUCER_TYPE"
	// StateAssignment: a node assigns what the state_schema forbids.
	StateAssignment Code = "STATE_ASSIGNMENT"
	// CheckpointPolicyInvalid: the checkpointing block is not understood.
	CheckpointPolicyInvalid Code = "CHECKPOINT_POLICY_INVALID"
	// DurationInvalid: a text is no duration.
	DurationInvalid Code = "DURATION_INVALID"
	// DurationZero: a timeout of no time at all.
	DurationZero Code = "DURATION_ZERO"
	// RetryPolicy: a retry policy does not do what it seems to say.
	RetryPolicy Code = "RETRY_POLICY"
	// InstantInvalid: a text is no instant, or one that engines read differently.
	InstantInvalid Code = "INSTANT_INVALID"
	// ConfigBlank: a text that a node needs is blank.
	ConfigBlank Code = "CONFIG_BLANK"
	// ConfigInvalid: a part of a config is such that the node cannot run.
	ConfigInvalid Code = "CONFIG_INVALID"
	// FieldIgnored: nothing reads a member.
	FieldIgnored Code = "FIELD_IGNORED"
	// NumberPrecision: a number is changed by becoming a double.
	NumberPrecision Code = "NUMBER_PRECISION"
	// ExpressionStateRoot: a program asks for .state, but the state itself is the root.
	ExpressionStateRoot Code = "EXPRESSION_STATE_ROOT"
	// ExpressionOutputs: a condition may put out several values, and is then always true.
	ExpressionOutputs Code = "EXPRESSION_SEVERAL_OUTPUTS"
	// ExpressionClock: a program reads the clock.
	ExpressionClock Code = "EXPRESSION_READS_CLOCK"
	// TemplateLiteral: a text looks like a template or program, but is passed on as it is.
	TemplateLiteral Code = "TEMPLATE_IS_LITERAL"
	// ExpressionRegex: a regular expression means something else, or nothing, to RE2.
	ExpressionRegex Code = "EXPRESSION_REGEX"
)

// Codes of findings in a database and in files with runs. HISTORY_VERSION_UNSUPPORTED, DEFINITION_REQUIRED and
// NONDETERMINISM_DETECTED are others.
const (
	// DatabaseDamaged: the database itself is damaged, whatever is in it.
	DatabaseDamaged Code = "DATABASE_DAMAGED"
	// RecordGap: a record of a run is missing.
	RecordGap Code = "RECORD_GAP"
	// RecordUnreadable: a record cannot be read, or is of a kind or name that there is not.
	RecordUnreadable Code = "RECORD_UNREADABLE"
	// RecordAfterEnd: a record follows the one that ended the run.
	RecordAfterEnd Code = "RECORD_AFTER_END"
	// OutcomeTwice: the outcome of one attempt is recorded twice.
	OutcomeTwice Code = "OUTCOME_TWICE"
	// ProjectionDiffers: what status and lists answer is not what the records say.
	ProjectionDiffers Code = "PROJECTION_DIFFERS"
	// PositionUnusable: the stored position of a run cannot be used; the history has everything.
	PositionUnusable Code = "POSITION_UNUSABLE"
	// TimersDiffer: the stored timers of a run are not those that its history has open.
	TimersDiffer Code = "TIMERS_DIFFER"
	// SubworkflowMissing: nothing is stored of a subworkflow that ended well under a run that is open.
	SubworkflowMissing Code = "SUBWORKFLOW_MISSING"
	// RowOrphaned: a row belongs to a run that does not exist.
	RowOrphaned Code = "ROW_ORPHANED"
	// DeletionUnfinished: a run is half deleted; it counts as not there. Calls about the run, and those that would begin
	// another one under its id, are refused with it too.
	DeletionUnfinished Code = "DELETION_UNFINISHED"
	// BlobDamaged: a large value that is kept by itself is missing, or not the one that its hash names.
	BlobDamaged Code = "BLOB_DAMAGED"
	// DefinitionHashMismatch: the text of a stored definition is not the one that its hash names.
	DefinitionHashMismatch Code = "DEFINITION_HASH_MISMATCH"
	// ImportInvalid: a file with a run is not what export writes.
	ImportInvalid Code = "IMPORT_INVALID"
)
