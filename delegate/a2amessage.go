package delegate

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// The error codes of the protocol that matter here; those below -32600 mean that the request was wrong.
const (
	rpcInternal          = -32603
	rpcServer            = -32000
	rpcTaskNotFound      = -32001
	rpcTaskNotCancelable = -32002
)

// errNotRPC is the cause of a failure for an answer in another form.
var errNotRPC = errors.New("the agent's answer is not a JSON-RPC 2.0 object")

// rpcError is the cause of a failure that the agent answered as a JSON-RPC error.
type rpcError struct {
	code int
	text string
}

func (e *rpcError) Error() string { return e.text }

func rpcErrorOf(err error) *rpcError {
	rpc, _ := errors.AsType[*rpcError](err)
	return rpc
}

// parseRPC returns the result of a JSON-RPC answer.
func parseRPC(body []byte, id string) (map[string]any, error) {
	value, err := decodeAnswer(body, "parts")
	if err != nil {
		return nil, err
	}
	answer, ok := value.(map[string]any)
	if !ok || answer["jsonrpc"] != "2.0" {
		failure := activities.Fail(problem.A2AProviderError, "the agent uses another form")
		failure.Err = errNotRPC
		return nil, failure
	}
	if failed, ok := answer["error"].(map[string]any); ok {
		return nil, rpcFailure(failed)
	}
	if answer["id"] != id {
		return nil, activities.Fail(problem.A2AProviderError, "the agent's answer belongs to another request")
	}
	result, ok := answer["result"].(map[string]any)
	if !ok {
		return nil, activities.Fail(problem.A2AProviderError, "the agent's answer has no result")
	}
	return result, nil
}

func rpcFailure(failed map[string]any) error {
	code, _ := failed["code"].(float64)
	text, _ := failed["message"].(string)
	if more, ok := member[string](failed["data"], "error"); ok && more != text {
		text = more
	}
	rpc := &rpcError{int(code), fmt.Sprintf("%s (%d)", problem.ClipRunes(text, maxQuotedBody), int(code))}
	failure := activities.Fail(problem.A2AProviderError, "the agent answered with an error")
	switch rpc.code {
	case rpcTaskNotFound:
		// Another attempt is another task.
		failure = activities.Fail(problem.A2ATaskFailed, "the agent no longer knows the task")
		failure.Retryable = activities.RetryUnknown
	case rpcInternal, rpcServer:
		failure.Retryable = activities.RetrySensible
	default:
		failure.Retryable = activities.RetryPointless
	}
	failure.Err = rpc
	return failure
}

// partsOf makes the parts of a message.
func partsOf(content map[string]any) []any {
	if content == nil {
		content = map[string]any{}
	}
	var parts []any
	for _, name := range []string{"text", "task", "prompt", "message"} {
		if text, ok := content[name].(string); ok && strings.TrimSpace(text) != "" {
			parts = append(parts, map[string]any{"kind": "text", "text": text})
			if name == "text" && len(content) == 1 {
				return parts
			}
			break
		}
	}
	return append(parts, map[string]any{"kind": "data", "data": content})
}

// readTask reads a task, or a message if the agent has answered at once.
func (a *A2A) readTask(result map[string]any, req activities.Request, ref activities.TaskRef) (activities.Task, error) {
	if _, isTask := result["status"].(map[string]any); !isTask {
		if result["kind"] == "message" || result["parts"] != nil {
			output := newOutput()
			output.add(result["parts"])
			return activities.Task{State: activities.TaskCompleted, ID: TaskID("a2a", req.CorrelationID), Output: output.object()}, nil
		}
		return activities.Task{}, activities.Fail(problem.A2AProviderError, "the agent answered with neither a task nor a message")
	}
	task := activities.Task{PollAfter: a.config.pollAfter(ref.Polls)}
	task.ID, _ = result["id"].(string)
	task.ContextID, _ = result["contextId"].(string)
	if strings.TrimSpace(task.ID) == "" && ref.ID == "" {
		return activities.Task{}, activities.Fail(problem.A2AProviderError, "the agent's task has no id")
	}
	said := newOutput()
	parts, _ := member[any](result, "status", "message", "parts")
	said.add(parts)
	words := said.text()
	state, _ := member[string](result, "status", "state")
	task.Status = state
	switch state {
	case "submitted", "working", "unknown":
	case "input-required", "auth-required":
		task.State, task.Prompt, task.PollAfter = activities.TaskAsks, words, 0
		if words == "" && len(said.data) > 0 {
			task.Prompt = string(jsonvalue.Canonical(said.data))
		}
		if state == "auth-required" {
			task.Prompt = strings.TrimSpace("The agent needs a person to log in or to grant access. " + task.Prompt)
		}
	case "completed":
		task.State, task.Output = activities.TaskCompleted, outputOf(result, said)
	case "failed", "canceled", "rejected":
		text := fmt.Sprintf("task %q was %s by the agent", task.ID, state)
		if state == "failed" {
			text = fmt.Sprintf("task %q failed", task.ID)
		}
		if words != "" {
			text += ": " + problem.ClipRunes(words, maxQuotedBody)
		}
		return activities.Task{}, activities.Fail(problem.A2ATaskFailed, "%s", text)
	default:
		return activities.Task{}, activities.Fail(problem.A2AProviderError, "task %q has the unknown state %q", task.ID, problem.ClipRunes(state, 80))
	}
	return task, nil
}

// outputOf is a completed task's output: that of its artifacts, or else the agent's last message.
func outputOf(task map[string]any, said *output) map[string]any {
	out := newOutput()
	artifacts, _ := task["artifacts"].([]any)
	for _, artifact := range artifacts {
		parts, _ := member[any](artifact, "parts")
		out.add(parts)
	}
	if out.empty() {
		out = said
	}
	return out.object()
}

// output collects parts.
type output struct {
	data  map[string]any
	texts []string // of each artifact or message
	files []any
}

func newOutput() *output { return &output{data: map[string]any{}} }

// add takes the parts of one artifact or message. The texts of one are joined, since agents that stream
// split them.
func (o *output) add(parts any) {
	list, _ := parts.([]any)
	var text strings.Builder
	for _, entry := range list {
		part, _ := entry.(map[string]any)
		switch part["kind"] {
		case "data":
			data, _ := part["data"].(map[string]any)
			maps.Copy(o.data, data)
		case "text":
			words, _ := part["text"].(string)
			text.WriteString(words)
		case "file":
			o.files = append(o.files, part["file"])
		}
	}
	if text.Len() > 0 {
		o.texts = append(o.texts, text.String())
	}
}

func (o *output) empty() bool { return len(o.data)+len(o.texts)+len(o.files) == 0 }

func (o *output) text() string { return strings.TrimSpace(strings.Join(o.texts, "\n")) }

// object returns data, with text and files added if data has no fields of these names.
func (o *output) object() map[string]any {
	if o.empty() {
		return map[string]any{"delegate_status": "completed"}
	}
	if _, taken := o.data["text"]; !taken && len(o.texts) > 0 {
		o.data["text"] = strings.Join(o.texts, "\n")
	}
	if _, taken := o.data["files"]; !taken && len(o.files) > 0 {
		o.data["files"] = o.files
	}
	return o.data
}

// member walks down objects; ok is false if the last one has no such member of the type.
func member[T any](v any, path ...string) (out T, ok bool) {
	for _, name := range path {
		object, isObject := v.(map[string]any)
		if !isObject {
			return out, false
		}
		v = object[name]
	}
	out, ok = v.(T)
	return out, ok
}
