package delegate

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// task is an agent's answer in the HTTP task form (spec: activities, 10.3).
type task struct {
	id, status string
	output     map[string]any // nil unless an object
	failure    string
}

// The statuses of the form; every other one is an error.
const (
	taskSubmitted     = "submitted"
	taskWorking       = "working"
	taskInputRequired = "input-required"
	taskCompleted     = "completed"
	taskFailed        = "failed"
)

// parseTask reads an answer's body.
func parseTask(body []byte) (task, error) {
	value, err := jsonvalue.Decode(body)
	if err != nil {
		return task{}, activities.Fail(problem.A2AProviderError, "the agent's answer is not JSON: %s", firstRunes(string(body), 200))
	}
	object, ok := value.(map[string]any)
	if !ok {
		return task{}, activities.Fail(problem.A2AProviderError, "the agent's answer is not a JSON object")
	}
	var t task
	t.id, _ = object["id"].(string)
	t.status, _ = object["status"].(string)
	t.output, _ = object["output"].(map[string]any)
	t.failure, _ = object["error"].(string)
	t.id, t.status = strings.TrimSpace(t.id), strings.TrimSpace(t.status)
	if t.id == "" {
		return task{}, activities.Fail(problem.A2AProviderError, "the agent's answer has no task id")
	}
	switch t.status {
	case taskSubmitted, taskWorking, taskInputRequired, taskCompleted, taskFailed:
		return t, nil
	}
	return task{}, activities.Fail(problem.A2AProviderError, "task %q has the status %q, which is not known", t.id, firstRunes(t.status, 80))
}

// ended reports whether nothing more is to come, and the failure if that is how it ended. Asking for input is final
// only in a poll: the answer to a submit is always followed by one.
func (t task) ended(polled bool) (bool, error) {
	switch {
	case t.status == taskCompleted:
		return true, nil
	case t.status == taskFailed && t.failure == "":
		return true, activities.Fail(problem.A2ATaskFailed, "task %q failed without saying why", t.id)
	case t.status == taskFailed:
		return true, activities.Fail(problem.A2ATaskFailed, "%s", t.failure)
	case t.status == taskInputRequired && polled:
		return true, activities.Fail(problem.A2AProviderError,
			"task %q asks for input, which an in-process delegation cannot give; start the run with activity_execution_mode \"host_mediated\" and let the host talk to the agent", t.id)
	}
	return false, nil
}

// result is a completed task's output.
func (t task) result() map[string]any {
	if t.output == nil {
		return map[string]any{"delegate_status": "completed"}
	}
	return t.output
}
