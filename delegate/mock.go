package delegate

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxMockTask is how much of the task a Mock repeats, in UTF-16 code units.
const maxMockTask = 120

// Mock pretends to be every agent and succeeds at once (spec: activities, 9). It is for demonstrations and tests, and
// is used only on request.
type Mock struct{}

// Execute invents a result: for protocol a2a a "patch" that repeats the beginning of the input's task, for mcp and sdk
// the protocol's name.
func (Mock) Execute(_ context.Context, req activities.Request) (activities.Result, error) {
	output := map[string]any{"delegate_status": "completed"}
	switch req.Protocol {
	case "a2a":
		output["patch"] = mockPatch(req.Input)
	case "mcp", "sdk":
		output["protocol"] = req.Protocol
	default:
		return activities.Result{}, activities.UnknownProtocol(req.Protocol)
	}
	return activities.Result{Output: output, ExternalTaskID: TaskID("a2a", req.CorrelationID)}, nil
}

// Capabilities reports that every delegation is answered at once.
func (Mock) Capabilities(activities.Node) activities.Capabilities {
	return activities.Capabilities{Immediate: true}
}

// TaskID is the external task id of a delegation whose agent has no task ids: "<prefix>-task-" and the correlation
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
