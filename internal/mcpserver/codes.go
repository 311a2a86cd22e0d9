package mcpserver

import (
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// wireCodes are the codes that a host may meet in structuredContent.error.code: the protocol's closed list (spec:
// mcp-tools, 12). A finer code of the engine goes into details.engineCode.
var wireCodes = map[problem.Code]bool{
	problem.ValidationError: true, problem.ExecutionNotFound: true, problem.DuplicateExecutionID: true,
	problem.InvalidResumePayload: true, problem.SubmitNotAwaiting: true, problem.SubmitNodeMismatch: true,
	problem.SubmitParallelMismatch: true, problem.SubmitValidationError: true, problem.SignalNotAwaiting: true,
	problem.SignalNameMismatch: true, problem.SignalValidationError: true, problem.CancelNotAllowed: true,
	problem.CancelValidationError: true, problem.EngineFailure: true, problem.Internal: true,
}

// wireCode is the protocol's code for a refusal of the engine. invalid is the code that the tool has for arguments that
// do not belong to the run.
func wireCode(code, invalid problem.Code) problem.Code {
	if wireCodes[code] {
		return code
	}
	switch code {
	case problem.InterruptInParallelBranch, problem.InvalidListCursor, problem.InputInvalid, problem.WebhookTargetUnknown:
		return problem.ValidationError
	case problem.DeletionUnfinished:
		return problem.ExecutionNotFound
	case problem.DefinitionNotFound, problem.WorkflowNotFound:
		return invalid
	case problem.RecordLimitExceeded, problem.ByteLimitExceeded, problem.SignalLimitExceeded, problem.RunComputing, problem.PersonRequired,
		problem.AgentBudgetSpent, problem.RetryRepeatsEffects, problem.AlreadyRetried:
		return invalid // a call that was refused; a run that has failed at its limit is no refusal
	case problem.HistoryNewer, problem.HistoryConflict, problem.HistoryCorrupt, problem.RunnerClosed, problem.UsageError, problem.MemoryBudgetExceeded,
		problem.StoreLocked, problem.StoreFull, problem.StoreReadOnly, problem.StoreUnavailable, problem.StoreOutcomeUnknown, problem.StoreReplaced,
		problem.CallCancelled, problem.ImportRequired:
		return problem.Internal
	default:
		return problem.EngineFailure
	}
}

// nextStep is what to do after a refusal that does not say it itself. code is the protocol's, cause the engine's.
func (s toolset) nextStep(code, cause problem.Code) string {
	if cause == problem.UsageError { // of a setting
		return "Tell the user: this setting has to be corrected and the server started again; until then no call succeeds."
	}
	switch code {
	case problem.ValidationError:
		return "Correct the arguments and call again; nothing was changed."
	case problem.ExecutionNotFound:
		return s.sentences(sentence{"", "Check the id."}, sentence{"workflow_list", "workflow_list shows the runs."})
	case problem.DuplicateExecutionID:
		return "Ask workflow_status where that run stands, or start with another execution_id."
	case problem.InvalidResumePayload, problem.SubmitNotAwaiting, problem.SubmitNodeMismatch,
		problem.SubmitParallelMismatch, problem.SubmitValidationError, problem.SignalNotAwaiting,
		problem.SignalNameMismatch, problem.SignalValidationError:
		return "Nothing was changed; workflow_status shows what the run waits for and the call to make."
	case problem.CancelNotAllowed:
		return "The run has ended; workflow_status shows how."
	case problem.Internal:
		return "Try again; if it persists, the server's log has more."
	default:
		return ""
	}
}
