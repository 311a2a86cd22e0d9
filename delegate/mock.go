package delegate

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxMockTask is how much of the task a Mock repeats, in UTF-16 code units.
const maxMockTask = 120

// Mock pretends to be every agent and succeeds at once (spec: activities, 9). It is for demonstrations and tests, and
// is used only where somebody asked for it.
type Mock struct{}

// Delegate invents a result: for protocol a2a a "patch" that repeats the beginning of the input's task, for mcp and sdk
// the protocol's name.
func (Mock) Delegate(_ context.Context, req Request) (Result, error) {
	output := map[string]any{"delegate_status": "completed"}
	switch req.Protocol {
	case "a2a":
		output["patch"] = mockPatch(req.Input)
	case "mcp", "sdk":
		output["protocol"] = req.Protocol
	default:
		return Result{}, unknownProtocol(req.Protocol)
	}
	return Result{Output: output, ExternalTaskID: TaskID("a2a", req.CorrelationID)}, nil
}

// Immediate is always true.
func (Mock) Immediate(Request) bool { return true }

var _ Immediate = Mock{}

// TaskID is the external task id of a delegation whose agent has none to offer: "<prefix>-task-" and the correlation
// id with "-" for every ":" (spec: activities, 8). The prefixes are "a2a" (the mock, for all protocols), "mcp" and
// "sdk".
func TaskID(prefix, correlationID string) string {
	return prefix + "-task-" + strings.ReplaceAll(correlationID, ":", "-")
}

func mockPatch(input map[string]any) string {
	task, _ := input["task"].(string)
	if task == "" {
		return "// invented patch; no task was given"
	}
	return "// invented patch for: " + jsonvalue.FirstUnits(task, maxMockTask)
}
