package problem

// Codes of the protocol (AWP 1.0.0). Their text is contract.
const (
	// ValidationError: a definition, argument or size was rejected.
	ValidationError Code = "VALIDATION_ERROR"
	// InterruptInParallelBranch: an interrupt node can be reached inside a parallel branch.
	InterruptInParallelBranch Code = "INTERRUPT_IN_PARALLEL_BRANCH"
	// DuplicateExecutionID: a run with this execution id exists.
	DuplicateExecutionID Code = "DUPLICATE_EXECUTION_ID"
	// DuplicateWorkflowID: another definition is stored under the name and version of a definition.
	DuplicateWorkflowID Code = "DUPLICATE_WORKFLOW_ID"
	// ExecutionNotFound: no run has this id.
	ExecutionNotFound Code = "EXECUTION_NOT_FOUND"
	// InvalidListCursor: the cursor is not one that a list call returned. Adapters of the protocol report VALIDATION_ERROR.
	InvalidListCursor Code = "INVALID_LIST_CURSOR"
	// InvalidResumePayload: a resume was rejected; the run is unchanged.
	InvalidResumePayload Code = "INVALID_RESUME_PAYLOAD"
	// SubmitNotAwaiting: the activity is not pending.
	SubmitNotAwaiting Code = "ACTIVITY_SUBMIT_NOT_AWAITING"
	// SubmitNodeMismatch: an activity of another node is pending.
	SubmitNodeMismatch Code = "ACTIVITY_SUBMIT_NODE_MISMATCH"
	// SubmitParallelMismatch: the parallel span is missing, wrong or superfluous.
	SubmitParallelMismatch Code = "ACTIVITY_SUBMIT_PARALLEL_MISMATCH"
	// SubmitValidationError: the definition, the input or the correlation id of a submit is not that of the run, or its output
	// would break the state.
	SubmitValidationError Code = "SUBMIT_VALIDATION_ERROR"
	// SignalNotAwaiting: the run does not wait for a signal.
	SignalNotAwaiting Code = "SIGNAL_NOT_AWAITING"
	// SignalNameMismatch: the run waits for a signal of another name.
	SignalNameMismatch Code = "SIGNAL_NAME_MISMATCH"
	// SignalValidationError: the arguments of a signal are invalid.
	SignalValidationError Code = "SIGNAL_VALIDATION_ERROR"
	// CancelNotAllowed: the run has completed or failed.
	CancelNotAllowed Code = "CANCEL_NOT_ALLOWED"
	// CancelValidationError: the arguments of a cancel are invalid, or the run cannot be read.
	CancelValidationError Code = "CANCEL_VALIDATION_ERROR"
	// EngineFailure: the run failed, or broke a rule that can only be checked at run time.
	EngineFailure Code = "ENGINE_FAILURE"
	// Internal: a fault of the engine or its environment.
	Internal Code = "INTERNAL_ERROR"
	// Nondeterminism: the recorded history does not follow from the definition.
	Nondeterminism Code = "NONDETERMINISM_DETECTED"
	// Timeout: an attempt did not end by its deadline.
	Timeout Code = "TIMEOUT"
	// RunTimeout: the run did not end by its deadline.
	RunTimeout Code = "RUN_TIMEOUT"
	// HeartbeatTimeout: an attempt gave no sign of life for the heartbeat of its node.
	HeartbeatTimeout Code = "HEARTBEAT_TIMEOUT"
	// QueueTimeout: an attempt waited for its turn for the queue_timeout of its node.
	QueueTimeout Code = "QUEUE_TIMEOUT"
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

// Finer codes of rejections: see Error.Reason. EXECUTION_NOT_FOUND and DUPLICATE_EXECUTION_ID are used as such too.
const (
	// AnsweredDifferently: the same activity, interrupt or signal was already answered with another content.
	AnsweredDifferently Code = "ANSWERED_DIFFERENTLY"
	// NotAwaiting: the run continues, but does not wait, or no longer waits, for the input of the call.
	NotAwaiting Code = "NOT_AWAITING"
	// AnswerAmbiguous: an answer names no interrupt, and can mean more than one.
	AnswerAmbiguous Code = "ANSWER_AMBIGUOUS"
	// ExecutionEnded: the run has completed, failed or been cancelled.
	ExecutionEnded Code = "EXECUTION_ENDED"
)

// Codes that this engine adds.
const (
	// DefinitionKept warns that the run of a start exists and keeps another version of the definition.
	DefinitionKept Code = "DEFINITION_NOT_CHANGED"
	// ModeKept warns that a call asked for another mode and did not change the run's mode.
	ModeKept Code = "MODE_NOT_CHANGED"
	// CallCancelled: the caller has cancelled a call, or has disconnected.
	CallCancelled Code = "CALL_CANCELLED"
	// CancelGoesOn warns that not all subworkflows of a cancelled run are cancelled yet.
	CancelGoesOn Code = "CANCEL_GOES_ON"
	// RunWillFail warns that a required branch has failed while other branches continue.
	RunWillFail Code = "RUN_WILL_FAIL"
	// ExecutorPanic: an executor panicked or ended its goroutine; the attempt counts as failed.
	ExecutorPanic Code = "ACTIVITY_EXECUTOR_PANIC"
	// ExecutorFailed: an executor failed without a code.
	ExecutorFailed Code = "ACTIVITY_FAILED"
	// ActivityOutputInvalid: an output is not JSON, for instance because it holds NaN.
	ActivityOutputInvalid Code = "ACTIVITY_OUTPUT_INVALID"
	// ActivityOutputTooLarge: an output exceeds the size limit.
	ActivityOutputTooLarge Code = "ACTIVITY_OUTPUT_TOO_LARGE"
	// JournalInvalid: an executor recorded an invalid journal entry. The entries before it are recorded.
	JournalInvalid Code = "JOURNAL_INVALID"
	// LLMContextExceeded: a conversation exceeds the model's context. Package chat has the code too, as it imports nothing.
	LLMContextExceeded Code = "LLM_CONTEXT_EXCEEDED"
	// LLMQuotaExceeded: the provider's account has no credit left.
	LLMQuotaExceeded Code = "LLM_QUOTA_EXCEEDED"
	// LLMCredentialsRefused: the provider rejects the key.
	LLMCredentialsRefused Code = "LLM_CREDENTIALS_REFUSED"
	// AgentConfigInvalid: the configuration of an agent, its list of tools or its input is invalid.
	AgentConfigInvalid Code = "AGENT_CONFIG_INVALID"
	// AgentPartialAnswer: an agent has answered with a partial result when a budget ended; a warning.
	AgentPartialAnswer Code = "AGENT_PARTIAL_ANSWER"
	// AgentTurnsExceeded: an agent has used up its budget of turns.
	AgentTurnsExceeded Code = "AGENT_TURNS_EXCEEDED"
	// AgentToolCallsExceeded: an agent has used up its budget of tool calls.
	AgentToolCallsExceeded Code = "AGENT_TOOL_CALLS_EXCEEDED"
	// AgentTokensExceeded: an agent has used up its budget of tokens.
	AgentTokensExceeded Code = "AGENT_TOKENS_EXCEEDED"
	// AgentCostExceeded: an agent has used up its budget of money.
	AgentCostExceeded Code = "AGENT_COST_EXCEEDED"
	// AgentTimeExceeded: an agent has used up its budget of time.
	AgentTimeExceeded Code = "AGENT_TIME_EXCEEDED"
	// AgentLoopDetected: an agent repeats the same call, or its calls fail one after the other.
	AgentLoopDetected Code = "AGENT_LOOP_DETECTED"
	// AgentOutputParse: the answer of an agent is not JSON.
	AgentOutputParse Code = "AGENT_OUTPUT_PARSE"
	// AgentOutputSchema: the answer of an agent breaks its schema.
	AgentOutputSchema Code = "AGENT_OUTPUT_SCHEMA"
	// AgentOutputCut: the answer of an agent is too long.
	AgentOutputCut Code = "AGENT_OUTPUT_CUT"
	// AgentContextExceeded: the conversation of an agent exceeds the context of its models.
	AgentContextExceeded Code = "AGENT_CONTEXT_EXCEEDED"
	// AgentStopped: a person or a hook has stopped an agent.
	AgentStopped Code = "AGENT_STOPPED"
	// AgentBudgetSpent: a retry would continue an agent whose budget is used up.
	AgentBudgetSpent Code = "AGENT_BUDGET_SPENT"
	// RetryRepeatsEffects: a retry would repeat calls of an agent that had effects.
	RetryRepeatsEffects Code = "RETRY_REPEATS_EFFECTS"
	// AlreadyRetried: a retry of the run is open, or has completed.
	AlreadyRetried Code = "ALREADY_RETRIED"
	// AgentJournalInvalid: the journal of an agent is invalid, or from a newer release.
	AgentJournalInvalid Code = "AGENT_JOURNAL_INVALID"
	// KnowledgeRefInvalid: a reference names no section of a knowledge base that the agent has.
	KnowledgeRefInvalid Code = "KNOWLEDGE_REF_INVALID"
	// KnowledgeFormatUnsupported: a file of a knowledge base has an unsupported form or size.
	KnowledgeFormatUnsupported Code = "KNOWLEDGE_FORMAT_UNSUPPORTED"
	// SkillUnknown: the agent has no such skill, or the skill no such page.
	SkillUnknown Code = "SKILL_UNKNOWN"
	// APIServiceUnknown: the agent has no such service.
	APIServiceUnknown Code = "API_SERVICE_UNKNOWN"
	// APIPathForbidden: the path of a call is not allowed, or can be read in more than one way. Nothing was sent.
	APIPathForbidden Code = "API_PATH_FORBIDDEN"
	// APIMethodForbidden: the method of a call is not allowed. Nothing was sent.
	APIMethodForbidden Code = "API_METHOD_FORBIDDEN"
	// APIBodyTooLarge: the body of a call is too large. Nothing was sent.
	APIBodyTooLarge Code = "API_BODY_TOO_LARGE"
	// APIResponseTooLarge: the response to a call is too large. The call was made.
	APIResponseTooLarge Code = "API_RESPONSE_TOO_LARGE"
	// APIRawBodyNotText: a raw body is not a string. Nothing was sent.
	APIRawBodyNotText Code = "API_RAW_BODY_NOT_TEXT"
	// APICredentialsMissing: the credentials of a call cannot be read. Nothing was sent.
	APICredentialsMissing Code = "API_CREDENTIALS_MISSING"
	// APIUnreachable: a service did not respond.
	APIUnreachable Code = "API_UNREACHABLE"
	// MCPArgumentsInvalid: the arguments of a tool_call break the tool's input schema. The tool was not called.
	MCPArgumentsInvalid Code = "MCP_ARGUMENTS_INVALID"
	// StepCommandFailed: the program of a step exited with a status other than 0, or was killed.
	StepCommandFailed Code = "STEP_COMMAND_FAILED"
	// StepCommandNotStarted: the program of a step could not be started.
	StepCommandNotStarted Code = "STEP_COMMAND_NOT_STARTED"
	// StepBudgetExceeded: a run visited more nodes than its limit allows.
	StepBudgetExceeded Code = "STEP_BUDGET_EXCEEDED"
	// LoopLimitExceeded: a loop needs more rounds than its max.
	LoopLimitExceeded Code = "LOOP_LIMIT_EXCEEDED"
	// SignalLimitExceeded: a run has reached its limit of early signals.
	SignalLimitExceeded Code = "SIGNAL_LIMIT_EXCEEDED"
	// RecordLimitExceeded: a run has reached its limit of records.
	RecordLimitExceeded Code = "RECORD_LIMIT_EXCEEDED"
	// ByteLimitExceeded: the records of a run have reached its limit of bytes.
	ByteLimitExceeded Code = "BYTE_LIMIT_EXCEEDED"
	// PendingLimitExceeded: a run has reached its limit of pending activities.
	PendingLimitExceeded Code = "PENDING_LIMIT_EXCEEDED"
	// TreeLimitExceeded: the runs of a tree have together reached a limit of the tree.
	TreeLimitExceeded Code = "TREE_LIMIT_EXCEEDED"
	// HostFileInvalid: the configuration file of an MCP host cannot be read, or not be written. It was not changed.
	HostFileInvalid Code = "HOST_FILE_INVALID"
	// HostFileChanged: another program changed the configuration file of an MCP host while it was edited. It was left alone.
	HostFileChanged Code = "HOST_FILE_CHANGED"
	// MemoryBudgetExceeded: the process has no memory left for new work. Nothing was changed.
	MemoryBudgetExceeded Code = "MEMORY_BUDGET_EXCEEDED"
	// QueueFull: as many runs wait for a worker as may wait. Nothing was recorded.
	QueueFull Code = "QUEUE_FULL"
	// StateInvalid: a state breaks the definition's state_schema.
	StateInvalid Code = "STATE_SCHEMA_VIOLATION"
	// InputInvalid: the input of a run breaks input_schema or state_schema.
	InputInvalid Code = "INPUT_INVALID"
	// CompensationFailed: a compensation failed, so that a rollback ended. The message names the nodes that are not undone.
	CompensationFailed Code = "COMPENSATION_FAILED"
	// MapItemsInvalid: the items of a map are not an array, or too many.
	MapItemsInvalid Code = "MAP_ITEMS_INVALID"
	// SwitchNoMatch: no case of a switch is true, and it has no default.
	SwitchNoMatch Code = "SWITCH_NO_MATCH"
	// JoinNotReached: too few branches of a parallel node succeeded.
	JoinNotReached Code = "JOIN_NOT_REACHED"
	// SubworkflowCancelled: the run of a subworkflow was cancelled.
	SubworkflowCancelled Code = "SUBWORKFLOW_CANCELLED"
	// ExpressionFailed: a jq program failed.
	ExpressionFailed Code = "EXPRESSION_FAILED"
	// ExpressionLimit: a jq program exceeded its time, output or size limit.
	ExpressionLimit Code = "EXPRESSION_LIMIT_EXCEEDED"
	// ExpressionInvalid: a jq program does not compile.
	ExpressionInvalid Code = "EXPRESSION_INVALID"
	// WorkflowNotFound: no definition has this workflow_ref or name.
	WorkflowNotFound Code = "WORKFLOW_NOT_FOUND"
	// VersionPinMismatch: a subworkflow's definition hash is not the pinned one.
	VersionPinMismatch Code = "VERSION_PIN_MISMATCH"
	// SubworkflowDepthExceeded: subworkflows are nested too deeply.
	SubworkflowDepthExceeded Code = "SUBWORKFLOW_DEPTH_EXCEEDED"
	// HistoryConflict: another writer appended first.
	HistoryConflict Code = "HISTORY_CONFLICT"
	// LeaseHeld: another process drives the run.
	LeaseHeld Code = "LEASE_HELD"
	// RunComputing: the run is in the middle of a long computation.
	RunComputing Code = "RUN_COMPUTING"
	// HistoryNewer: a newer version wrote the rows or the database.
	HistoryNewer Code = "HISTORY_VERSION_UNSUPPORTED"
	// HistoryCorrupt: stored rows cannot be read.
	HistoryCorrupt Code = "HISTORY_CORRUPT"
	// StoreLocked: another process locked the database for longer than a call waits. Nothing was written.
	StoreLocked Code = "STORE_LOCKED"
	// StoreFull: the disk or the database is full. Nothing was written.
	StoreFull Code = "STORE_FULL"
	// StoreReadOnly: the database cannot be written to.
	StoreReadOnly Code = "STORE_READ_ONLY"
	// StoreUnavailable: the database cannot be opened, read or written.
	StoreUnavailable Code = "STORE_UNAVAILABLE"
	// StoreOutcomeUnknown: the disk failed during a commit. The write may be stored or not: read it before you continue.
	StoreOutcomeUnknown Code = "STORE_OUTCOME_UNKNOWN"
	// StoreReplaced: the database was deleted, moved or restored while the process used it. Nothing was written, and nothing
	// can be written until the process is restarted.
	StoreReplaced Code = "STORE_REPLACED"
	// PersonRequired: only a person can answer this, not the caller. Nothing was changed.
	PersonRequired Code = "PERSON_REQUIRED"
	// Unauthorized: the call has no valid token (HTTP API). Nothing was done.
	Unauthorized Code = "UNAUTHORIZED"
	// Forbidden: the token, the host name or the site of the call is not permitted (HTTP API). Nothing was done.
	Forbidden Code = "FORBIDDEN"
	// Unsupported: the engine or its store does not support the call. Nothing was done.
	Unsupported Code = "UNSUPPORTED_BY_BACKEND"
	// Terminated: the system that hosts the run, such as Temporal, has ended it.
	Terminated Code = "TERMINATED"
	// DefinitionNotFound: the run's definition is neither stored nor part of the call.
	DefinitionNotFound Code = "DEFINITION_REQUIRED"
	// RunnerClosed: the engine is shutting down.
	RunnerClosed Code = "ENGINE_CLOSED"
	// UsageError: a command line or configuration is invalid.
	UsageError Code = "USAGE_ERROR"
)

// Codes of findings in an operator manifest, besides CONFIG_BLANK and FIELD_IGNORED.
const (
	// ManifestSyntax: the text is not JSON.
	ManifestSyntax Code = "MANIFEST_SYNTAX"
	// ManifestInvalid: a value breaks the schema of manifests.
	ManifestInvalid Code = "MANIFEST_INVALID"
	// ManifestServerUnknown: a delegate agent names a server that is not in the manifest.
	ManifestServerUnknown Code = "MANIFEST_SERVER_UNKNOWN"
)

// Codes of tests of definitions.
const (
	// TestFileInvalid: a value breaks the schema of test files.
	TestFileInvalid Code = "TEST_FILE_INVALID"
	// TestStubMissing: a test has no stub for a node.
	TestStubMissing Code = "TEST_STUB_MISSING"
)

// Codes of findings in a definition's text.
const (
	// DefinitionSyntax: the text is neither JSON nor YAML.
	DefinitionSyntax Code = "DEFINITION_SYNTAX"
	// DefinitionEncoding: the text has bytes or escapes that are not Unicode characters.
	DefinitionEncoding Code = "DEFINITION_ENCODING"
	// DefinitionDuplicate: an object has a duplicate field.
	DefinitionDuplicate Code = "DEFINITION_DUPLICATE_MEMBER"
	// DefinitionReserved: a field is named __proto__, which the definition hash leaves out.
	DefinitionReserved Code = "DEFINITION_RESERVED_MEMBER"
	// DefinitionNumber: a number does not fit into a double.
	DefinitionNumber Code = "DEFINITION_NUMBER"
	// DefinitionTooDeep: the document is nested too deeply.
	DefinitionTooDeep Code = "DEFINITION_TOO_DEEP"
	// DefinitionTooLarge: the document exceeds the size limit.
	DefinitionTooLarge Code = "DEFINITION_TOO_LARGE"
	// YAMLUnsupported: the text uses a part of YAML that has no JSON equivalent, or that other readers read differently.
	YAMLUnsupported Code = "YAML_UNSUPPORTED"
)

// Codes of findings in a definition's structure and graph.
const (
	// DefinitionSchema: a value breaks the schema of workflow definitions.
	DefinitionSchema Code = "DEFINITION_SCHEMA"
	// ExtensionNotNamed: a field belongs to an extension that the document does not name in x-workflows-engine.
	ExtensionNotNamed Code = "EXTENSION_NOT_NAMED"
	// ExtensionUnused: a document names an extension and does not use it.
	ExtensionUnused Code = "EXTENSION_UNUSED"
	// ExtensionUsed: a document that is to be plain AWP names extensions.
	ExtensionUsed Code = "EXTENSION_USED"
	// DefinitionSignature: a signature block is malformed.
	DefinitionSignature Code = "DEFINITION_SIGNATURE"
	// CompensationInvalid: a compensation is not a separate node, or a rollback is configured without a compensation.
	CompensationInvalid Code = "COMPENSATION_INVALID"
	// DuplicateNodeID: two nodes have the same id.
	DuplicateNodeID Code = "DUPLICATE_NODE_ID"
	// ReservedNodeID: a node is named __start__.
	ReservedNodeID Code = "RESERVED_NODE_ID"
	// UnknownNode: an edge, switch target or branch entry names a node that does not exist.
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
	// GraphLoop: a loop has no way out.
	GraphLoop Code = "GRAPH_ENDLESS_LOOP"
	// GraphNoEnd: the end node cannot be reached.
	GraphNoEnd Code = "GRAPH_END_UNREACHABLE"
	// ParallelBranch: a branch does not lead to its join target.
	ParallelBranch Code = "PARALLEL_BRANCH_BROKEN"
	// ParallelCount: a parallel node requires more branches than it has.
	ParallelCount Code = "PARALLEL_BRANCH_COUNT"
	// ParallelName: two branches of a parallel node have the same name.
	ParallelName Code = "PARALLEL_BRANCH_NAME"
	// ParallelEmpty: a branch has no node.
	ParallelEmpty Code = "PARALLEL_BRANCH_EMPTY"
	// ParallelEntry: two branches of a parallel node begin at the same node.
	ParallelEntry Code = "PARALLEL_BRANCH_ENTRY"
	// SubworkflowStateLeaks: the state of a subworkflow, which is returned whole, overwrites the state of its parent.
	SubworkflowStateLeaks Code = "SUBWORKFLOW_STATE_LEAKS"
	// ParallelOverwrite: two branches of a parallel node set the same key of the state, which has no reducer.
	ParallelOverwrite Code = "PARALLEL_BRANCH_OVERWRITE"
	// SwitchDefault: a switch without default fails when no case matches.
	SwitchDefault Code = "SWITCH_WITHOUT_DEFAULT"
)

// Codes of findings in the parts of a definition, besides EXPRESSION_INVALID.
const (
	// StateSchemaInvalid: the state_schema does not compile.
	StateSchemaInvalid Code = "STATE_SCHEMA_INVALID"
	// SchemaInvalid: another schema of a definition does not compile.
	SchemaInvalid Code = "SCHEMA_INVALID"
	// SchemaPortability: engines read a schema differently.
	SchemaPortability Code = "SCHEMA_PORTABILITY"
	// ReducerCustom: the protocol rejects the reducer custom.
	ReducerCustom Code = "REDUCER_CUSTOM"
	// FormatUnchecked: a schema names a format that is not checked.
	FormatUnchecked Code = "FORMAT_UNCHECKED"
	// ReducerUnknown: a reducer is unknown.
	ReducerUnknown Code = "REDUCER_UNKNOWN"
	// ReducerType: a reducer produces values that the property's type forbids.
	ReducerType Code = "REDUCER_TYPE"
	// StateAssignment: a node assigns a value that the state_schema forbids.
	StateAssignment Code = "STATE_ASSIGNMENT"
	// CheckpointPolicyInvalid: the checkpointing block is invalid.
	CheckpointPolicyInvalid Code = "CHECKPOINT_POLICY_INVALID"
	// DurationInvalid: a string is not a duration.
	DurationInvalid Code = "DURATION_INVALID"
	// DurationZero: a timeout is 0.
	DurationZero Code = "DURATION_ZERO"
	// RetryPolicy: a retry policy does not have its apparent effect.
	RetryPolicy Code = "RETRY_POLICY"
	// InstantInvalid: a string is not an instant, or engines read it differently.
	InstantInvalid Code = "INSTANT_INVALID"
	// ConfigBlank: a required string is blank.
	ConfigBlank Code = "CONFIG_BLANK"
	// ConfigInvalid: the node cannot run with its config.
	ConfigInvalid Code = "CONFIG_INVALID"
	// DeadlineShort: a deadline passes before work that the definition allows for.
	DeadlineShort Code = "DEADLINE_SHORT"
	// FieldIgnored: a field has no effect.
	FieldIgnored Code = "FIELD_IGNORED"
	// NumberPrecision: a number loses precision as a double.
	NumberPrecision Code = "NUMBER_PRECISION"
	// ExpressionStateRoot: a program reads .state, but the state itself is the root.
	ExpressionStateRoot Code = "EXPRESSION_STATE_ROOT"
	// ExpressionOutputs: a condition may return several values, and is then always true.
	ExpressionOutputs Code = "EXPRESSION_SEVERAL_OUTPUTS"
	// ExpressionAlwaysTrue: a condition, or a part of it, is never false.
	ExpressionAlwaysTrue Code = "EXPRESSION_ALWAYS_TRUE"
	// ExpressionClock: a condition reads the clock.
	ExpressionClock Code = "EXPRESSION_READS_CLOCK"
	// TemplateLiteral: a string looks like a template or program, but is used literally.
	TemplateLiteral Code = "TEMPLATE_IS_LITERAL"
	// ExpressionRegex: a regular expression is invalid, or has another meaning in other engines.
	ExpressionRegex Code = "EXPRESSION_REGEX"
	// ExpressionPath: a program reads a field that no schema declares.
	ExpressionPath Code = "EXPRESSION_PATH_UNKNOWN"
	// ExpressionComparison: a comparison always has the same result.
	ExpressionComparison Code = "EXPRESSION_COMPARISON_CONSTANT"
	// SchemaKeyword: a keyword of a schema is misspelt, or requires a property that the schema does not have.
	SchemaKeyword Code = "SCHEMA_KEYWORD_UNKNOWN"
	// QuestionShowsNothing: an interrupt selects nothing of the state to show: the person sees all of it.
	QuestionShowsNothing Code = "QUESTION_SHOWS_NOTHING"
	// StateKeyUnused: nothing reads or writes a property of the state_schema.
	StateKeyUnused Code = "STATE_KEY_UNUSED"
)

// Codes of findings in a database and in files with runs, besides HISTORY_VERSION_UNSUPPORTED, DEFINITION_REQUIRED and
// NONDETERMINISM_DETECTED.
const (
	// DatabaseDamaged: the database file itself is damaged.
	DatabaseDamaged Code = "DATABASE_DAMAGED"
	// RecordGap: a record of a run is missing.
	RecordGap Code = "RECORD_GAP"
	// RecordUnreadable: a record cannot be read, or has an unknown kind or name.
	RecordUnreadable Code = "RECORD_UNREADABLE"
	// RecordAfterEnd: a record follows the one that ended the run.
	RecordAfterEnd Code = "RECORD_AFTER_END"
	// OutcomeTwice: the outcome of one attempt is recorded twice.
	OutcomeTwice Code = "OUTCOME_TWICE"
	// AgentStepsGap: a journal entry of an attempt is missing, or is recorded twice.
	AgentStepsGap Code = "AGENT_STEPS_GAP"
	// AgentStepsDiffer: a journal entry of an agent, or the outcome of its attempt, does not follow from the entries before it.
	AgentStepsDiffer Code = "AGENT_STEPS_DIFFER"
	// ProjectionDiffers: the projection of status and lists does not follow from the records.
	ProjectionDiffers Code = "PROJECTION_DIFFERS"
	// PositionUnusable: the stored position of a run is unusable. The run continues from its history.
	PositionUnusable Code = "POSITION_UNUSABLE"
	// TimersDiffer: the stored timers of a run differ from the open timers of its history.
	TimersDiffer Code = "TIMERS_DIFFER"
	// SubworkflowMissing: a subworkflow that completed under an open run is not stored.
	SubworkflowMissing Code = "SUBWORKFLOW_MISSING"
	// RowOrphaned: a row belongs to a run that does not exist.
	RowOrphaned Code = "ROW_ORPHANED"
	// DeletionUnfinished: the deletion of a run has not finished; the run counts as deleted. Calls about the run, and calls that
	// would begin another run with its id, are rejected with this code too.
	DeletionUnfinished Code = "DELETION_UNFINISHED"
	// BlobDamaged: a large value is missing from its side table, or does not match its hash.
	BlobDamaged Code = "BLOB_DAMAGED"
	// DefinitionHashMismatch: the text of a stored definition does not match its hash.
	DefinitionHashMismatch Code = "DEFINITION_HASH_MISMATCH"
	// DeliveryNotFound: no webhook delivery has this id.
	DeliveryNotFound Code = "DELIVERY_NOT_FOUND"
	// WebhookTargetUnknown: a call names a webhook target that is not configured.
	WebhookTargetUnknown Code = "WEBHOOK_TARGET_UNKNOWN"
	// WebhookConfigInvalid: the list of webhook targets is invalid.
	WebhookConfigInvalid Code = "WEBHOOK_CONFIG_INVALID"
	// ImportInvalid: a file is not a valid export.
	ImportInvalid Code = "IMPORT_INVALID"
	// ImportRequired: a database belongs to the npm engine and must be imported.
	ImportRequired Code = "IMPORT_REQUIRED"
)
