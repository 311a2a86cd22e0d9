package delegate

import (
	"slices"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// httpTask is an agent's answer in the HTTP task form (spec: activities, 10.3).
type httpTask struct {
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

// decodeAnswer reads the JSON of an answer, and rejects it if a value that becomes output would be recorded as another one.
// Such values are below a field with the name.
func decodeAnswer(body []byte, outputs string) (any, error) {
	value, losses, err := jsonvalue.DecodeExact(body)
	switch {
	case err != nil:
		return nil, activities.Fail(problem.A2AProviderError, "the agent's answer is not JSON: %s", problem.ClipRunes(string(body), 200))
	}
	for _, loss := range losses {
		path := jsonvalue.PointerTokens(loss.Pointer)
		if slices.Contains(path, outputs) && !slices.Contains(path, "history") {
			failure := activities.Fail(problem.A2AProviderError, "the agent's answer cannot be kept: %q: %s", loss.Pointer, loss.Message)
			failure.Retryable = activities.RetryPointless
			return nil, failure
		}
	}
	return value, nil
}

// parseTask reads an answer's body.
func parseTask(body []byte) (httpTask, error) {
	value, err := decodeAnswer(body, "output")
	if err != nil {
		return httpTask{}, err
	}
	object, ok := value.(map[string]any)
	if !ok {
		return httpTask{}, activities.Fail(problem.A2AProviderError, "the agent's answer is not a JSON object")
	}
	var t httpTask
	t.id, _ = object["id"].(string)
	t.status, _ = object["status"].(string)
	t.output, _ = object["output"].(map[string]any)
	t.failure, _ = object["error"].(string)
	t.id, t.status = strings.TrimSpace(t.id), strings.TrimSpace(t.status)
	if t.id == "" {
		return httpTask{}, activities.Fail(problem.A2AProviderError, "the agent's answer has no task id")
	}
	switch t.status {
	case taskSubmitted, taskWorking, taskInputRequired, taskCompleted, taskFailed:
		return t, nil
	}
	return httpTask{}, activities.Fail(problem.A2AProviderError, "task %q has the unknown status %q", t.id, problem.ClipRunes(t.status, 80))
}

// task is how the task stands, with the time until the next poll. Asking for input is final only in a poll: the answer
// to a submit is always followed by one.
func (t httpTask) task(polled bool, next time.Duration) (activities.Task, error) {
	switch {
	case t.status == taskCompleted && t.output == nil:
		t.output = map[string]any{"delegate_status": "completed"}
		fallthrough
	case t.status == taskCompleted:
		return activities.Task{State: activities.TaskCompleted, ID: t.id, Output: t.output}, nil
	case t.status == taskFailed && t.failure == "":
		return activities.Task{}, activities.Fail(problem.A2ATaskFailed, "task %q failed without a reason", t.id)
	case t.status == taskFailed:
		return activities.Task{}, activities.Fail(problem.A2ATaskFailed, "%s", t.failure)
	case t.status == taskInputRequired && polled:
		return activities.Task{}, activities.Fail(problem.A2AProviderError,
			"task %q asks for input, which an in-process delegation cannot give; start the run in mode \"host_mediated\" and let the host talk to the agent", t.id)
	}
	return activities.Task{ID: t.id, PollAfter: next, Status: t.status}, nil
}
