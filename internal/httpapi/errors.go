package httpapi

import (
	"net/http"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// statuses are the statuses of codes. Those of definitions, runs and activities are not among them: they are 400, or 422 with findings about a
// definition.
var statuses = map[problem.Code]int{
	problem.ValidationError: 0, problem.InvalidListCursor: 0, problem.InvalidResumePayload: 0, problem.SubmitValidationError: 0, // 0: see statusOf
	problem.SignalValidationError: 0, problem.CancelValidationError: 0, problem.InputInvalid: 0, problem.AnswerAmbiguous: 0,
	problem.WebhookTargetUnknown: 0, problem.ImportInvalid: 0,

	problem.ExecutionNotFound: http.StatusNotFound, problem.DeletionUnfinished: http.StatusNotFound, problem.DeliveryNotFound: http.StatusNotFound,
	problem.DefinitionNotFound: http.StatusNotFound, problem.WorkflowNotFound: http.StatusNotFound,

	problem.DuplicateExecutionID: http.StatusConflict, problem.DuplicateWorkflowID: http.StatusConflict,
	problem.SubmitNotAwaiting: http.StatusConflict, problem.SubmitNodeMismatch: http.StatusConflict, problem.SubmitParallelMismatch: http.StatusConflict,
	problem.SignalNotAwaiting: http.StatusConflict, problem.SignalNameMismatch: http.StatusConflict, problem.CancelNotAllowed: http.StatusConflict,
	problem.RunComputing: http.StatusConflict, problem.HistoryConflict: http.StatusConflict, problem.LeaseHeld: http.StatusConflict,
	problem.AlreadyRetried: http.StatusConflict, problem.RetryRepeatsEffects: http.StatusConflict, problem.AgentBudgetSpent: http.StatusConflict,
	problem.RecordLimitExceeded: http.StatusConflict, problem.ByteLimitExceeded: http.StatusConflict, problem.SignalLimitExceeded: http.StatusConflict,
	problem.PendingLimitExceeded: http.StatusConflict, problem.TreeLimitExceeded: http.StatusConflict, problem.VersionPinMismatch: http.StatusConflict,
	problem.AnsweredDifferently: http.StatusConflict, problem.NotAwaiting: http.StatusConflict, problem.ExecutionEnded: http.StatusConflict,

	problem.PersonRequired: http.StatusForbidden, problem.Forbidden: http.StatusForbidden, problem.Unauthorized: http.StatusUnauthorized,
	problem.MemoryBudgetExceeded: http.StatusTooManyRequests, problem.QueueFull: http.StatusTooManyRequests,
	problem.Unsupported: http.StatusNotImplemented,

	problem.StoreLocked: http.StatusServiceUnavailable, problem.StoreFull: http.StatusServiceUnavailable, problem.StoreReadOnly: http.StatusServiceUnavailable,
	problem.StoreUnavailable: http.StatusServiceUnavailable, problem.StoreOutcomeUnknown: http.StatusServiceUnavailable, problem.StoreReplaced: http.StatusServiceUnavailable,
	problem.RunnerClosed: http.StatusServiceUnavailable, problem.CallCancelled: http.StatusServiceUnavailable, problem.ImportRequired: http.StatusServiceUnavailable,
	problem.HistoryNewer: http.StatusServiceUnavailable,

	problem.Internal: http.StatusInternalServerError, problem.EngineFailure: http.StatusInternalServerError,
	problem.HistoryCorrupt: http.StatusInternalServerError, problem.Nondeterminism: http.StatusInternalServerError, problem.UsageError: http.StatusInternalServerError,
	problem.WebhookConfigInvalid: http.StatusInternalServerError,
	problem.DatabaseDamaged:      http.StatusInternalServerError, problem.RecordGap: http.StatusInternalServerError, problem.RecordUnreadable: http.StatusInternalServerError,
	problem.RecordAfterEnd: http.StatusInternalServerError, problem.OutcomeTwice: http.StatusInternalServerError, problem.AgentStepsGap: http.StatusInternalServerError,
	problem.AgentStepsDiffer: http.StatusInternalServerError, problem.ProjectionDiffers: http.StatusInternalServerError, problem.PositionUnusable: http.StatusInternalServerError,
	problem.TimersDiffer: http.StatusInternalServerError, problem.SubworkflowMissing: http.StatusInternalServerError, problem.RowOrphaned: http.StatusInternalServerError,
	problem.BlobDamaged: http.StatusInternalServerError, problem.DefinitionHashMismatch: http.StatusInternalServerError,
}

// statusOf returns the status of an answer with an error.
func statusOf(e *problem.Error) int {
	if e.Reason == problem.ExecutionNotFound {
		return http.StatusNotFound
	}
	if status := statuses[e.Code]; status != 0 {
		return status
	}
	switch e.Reason {
	case problem.NotAwaiting, problem.AnsweredDifferently, problem.ExecutionEnded, problem.DuplicateExecutionID:
		return http.StatusConflict
	}
	if e.Code != problem.InputInvalid && e.Findings.HasErrors() {
		return http.StatusUnprocessableEntity
	}
	return http.StatusBadRequest
}

// words maps the names of the Go library in hints to those of the API.
var words = calls.Words(problem.Glossary{
	"Runner.Status": "GET /v1/executions/{exec_id}", "Runner.List": "GET /v1/executions",
	"Runner.Drive":     "POST /v1/executions with definition and allow_existing_execution_id",
	"ForkRequest.Anew": ":retry with anew true", "ForkRequest.CurrentAgentConfig": ":retry with current_config true",
})

// maxFindings is how many findings an error lists.
const maxFindings = 20

// encodeError is the JSON form of an error.
func encodeError(e *problem.Error) jsonvalue.Ordered {
	details := jsonvalue.Ordered{}
	var list []jsonvalue.Ordered
	count := 0
	for _, f := range e.Findings {
		if f.Severity == problem.SeverityWarning {
			continue
		}
		if count++; count > maxFindings {
			continue
		}
		one := jsonvalue.Ordered{{"instancePath", f.At.Pointer}, {"message", f.Message}, {"code", string(f.Code)}}
		one.Text("hint", words.Translate(f.Hint))
		one.Text("node_id", f.At.NodeID)
		list = append(list, one)
	}
	if count > 0 {
		details.Put("errors", list)
		details.Put("errorCount", float64(count))
	}
	for _, name := range jsonvalue.Keys(e.Details) {
		details.Put(name, e.Details[name])
	}
	details.Text("reason", string(e.Reason))
	details.Text("execution_id", problem.Excerpt(e.At.ExecutionID, 1000))
	details.Text("node_id", e.At.NodeID)
	details.Text("hint", words.Translate(e.Hint))
	return jsonvalue.Ordered{{"code", string(e.Code)}, {"message", e.Error()}, {"details", details}}
}
