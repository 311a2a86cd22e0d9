package problem

import "slices"

// Failures are the codes that the engine gives to failures of nodes and runs: those of runs and activities in docs/reference/codes.md. Executors, hosts and authors use other codes.
var Failures = []Code{
	EngineFailure, Terminated, Timeout, RunTimeout, QueueTimeout, HeartbeatTimeout, OutputSchemaViolation, StateInvalid, ExpressionFailed,
	ExpressionLimit, SwitchNoMatch, JoinNotReached, SubworkflowCancelled, MapItemsInvalid, LoopLimitExceeded, CompensationFailed, WorkflowNotFound,
	VersionPinMismatch, SubworkflowDepthExceeded, StepBudgetExceeded, RecordLimitExceeded,
	ByteLimitExceeded, PendingLimitExceeded, TreeLimitExceeded, Nondeterminism,
	ActivityPortInvoked, DelegatePortInvoked, ExecutorNotConfigured, ExecutorUnsupportedNode,
	ExecutorFailed, ExecutorPanic, ActivityOutputInvalid, ActivityOutputTooLarge, JournalInvalid,
	ActivityCancelled, ActivityTimeout, StepConfigInvalid, HandlerNotFound, HandlerError,
	StepCommandFailed, StepCommandNotStarted, LLMConfigInvalid, LLMCredentialsMissing,
	LLMProviderError, LLMCredentialsRefused, LLMQuotaExceeded, LLMOutputInvalid, LLMContextExceeded, InvalidToolCallConfig, MCPServerNotConfigured,
	MCPCommandNotAllowed, MCPArgumentsInvalid, MCPToolExecutionError, MCPProtocolError,
	MCPConnectionClosed, MCPClientError, DelegateProtocolUnsupported, DelegateAgentNotFound,
	DelegateProtocolError, AgentConfigInvalid, AgentTurnsExceeded, AgentToolCallsExceeded, AgentTokensExceeded,
	AgentCostExceeded, AgentTimeExceeded, AgentLoopDetected, AgentOutputParse, AgentOutputSchema,
	AgentOutputCut, AgentContextExceeded, AgentStopped, AgentJournalInvalid,
	KnowledgeRefInvalid, KnowledgeFormatUnsupported, SkillUnknown, APIServiceUnknown, APIPathForbidden,
	APIMethodForbidden, APIBodyTooLarge, APIResponseTooLarge, APIRawBodyNotText, APICredentialsMissing,
	APIUnreachable, A2AConfigInvalid, A2ACredentialsMissing, A2AProviderError,
	A2ATaskFailed,
}

// maxAuthorsCode bounds the length of an author's code.
const maxAuthorsCode = 64

// AuthorsCode reports whether authors of definitions may give failures a code: it has capital letters, digits and underscores, and is not
// in Failures, so that a caught code of the engine keeps its meaning.
func AuthorsCode(code string) bool {
	for i := range len(code) {
		c := code[i]
		if !(c >= 'A' && c <= 'Z' || i > 0 && (c == '_' || c >= '0' && c <= '9')) {
			return false
		}
	}
	return code != "" && len(code) <= maxAuthorsCode && !slices.Contains(Failures, Code(code))
}

// IsLimit reports whether a code is that of a limit of runs, after which a retry can continue with a higher limit.
func (c Code) IsLimit() bool {
	switch c {
	case StepBudgetExceeded, RecordLimitExceeded, ByteLimitExceeded, PendingLimitExceeded:
		return true
	}
	return false
}
