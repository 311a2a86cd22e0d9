package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// failing is an engine whose every call returns err.
type failing struct {
	graph.Engine
	err func() error
}

func (f failing) Start(context.Context, graph.StartRequest) (*view.Run, error) { return nil, f.err() }
func (f failing) Status(context.Context, graph.StatusRequest) (*view.Run, error) {
	return nil, f.err()
}
func (f failing) Resume(context.Context, graph.ResumeRequest) (*view.Run, error) {
	return nil, f.err()
}
func (f failing) SubmitActivity(context.Context, graph.SubmitRequest) (*view.Run, error) {
	return nil, f.err()
}
func (f failing) Signal(context.Context, graph.SignalRequest) (*view.Run, error) {
	return nil, f.err()
}
func (f failing) Cancel(context.Context, graph.CancelRequest) (*view.Run, error) {
	return nil, f.err()
}
func (f failing) List(context.Context, history.ListQuery) (history.ListPage, error) {
	return history.ListPage{}, f.err()
}

func (f failing) Fork(context.Context, graph.ForkRequest) (*view.Run, error) { return nil, f.err() }

// minimal are valid arguments of each tool.
var minimal = map[string]object{
	"workflow_start":           {"definition_ref": "d", "execution_id": "x"},
	"workflow_status":          {"execution_id": "x"},
	"workflow_resume":          {"execution_id": "x", "resume_payload": object{}},
	"workflow_submit_activity": {"execution_id": "x", "node_id": "n", "outcome": object{"ok": true}},
	"workflow_signal":          {"execution_id": "x", "signal_name": "s"},
	"workflow_cancel":          {"execution_id": "x"},
	"workflow_list":            {},
	"workflow_history":         {"execution_id": "x"},
	"workflow_fork":            {"execution_id": "x"},
}

// needsNoEngine are the tools that answer without the engine.
var needsNoEngine = []string{"workflow_guide", "workflow_validate"}

// TestCodes: answers have only the protocol's codes; the engine's code is in details.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want map[string]string // by tool; "" for all others
	}{
		{problem.New(problem.ExecutionNotFound, "m"), map[string]string{"": "EXECUTION_NOT_FOUND"}},
		{problem.New(problem.DeletionUnfinished, "m"), map[string]string{"": "EXECUTION_NOT_FOUND"}},
		{problem.New(problem.InvalidListCursor, "m"), map[string]string{"": "VALIDATION_ERROR"}},
		{problem.New(problem.WebhookTargetUnknown, "m"), map[string]string{"": "VALIDATION_ERROR"}},
		{problem.New(problem.InterruptInParallelBranch, "m"), map[string]string{"": "VALIDATION_ERROR"}},
		{problem.New(problem.WorkflowNotFound, "m"), map[string]string{
			"workflow_start": "VALIDATION_ERROR", "workflow_status": "VALIDATION_ERROR", "workflow_list": "VALIDATION_ERROR",
			"workflow_resume": "INVALID_RESUME_PAYLOAD", "workflow_submit_activity": "SUBMIT_VALIDATION_ERROR",
			"workflow_signal": "SIGNAL_VALIDATION_ERROR", "workflow_cancel": "CANCEL_VALIDATION_ERROR",
		}},
		{problem.New(problem.ByteLimitExceeded, "m"), map[string]string{
			"workflow_start": "VALIDATION_ERROR", "workflow_status": "VALIDATION_ERROR", "workflow_list": "VALIDATION_ERROR",
			"workflow_resume": "INVALID_RESUME_PAYLOAD", "workflow_submit_activity": "SUBMIT_VALIDATION_ERROR",
			"workflow_signal": "SIGNAL_VALIDATION_ERROR", "workflow_cancel": "CANCEL_VALIDATION_ERROR",
		}},
		{problem.New(problem.HistoryConflict, "m"), map[string]string{"": "INTERNAL_ERROR"}},
		{problem.New(problem.ExpressionFailed, "m"), map[string]string{"": "ENGINE_FAILURE"}},
		{problem.New("A_CODE_OF_A_HOST", "m"), map[string]string{"": "ENGINE_FAILURE"}},
		{errors.New("m"), map[string]string{"": "INTERNAL_ERROR"}},
		{fmt.Errorf("wrapped: %w", problem.New(problem.CancelNotAllowed, "m")), map[string]string{"": "CANCEL_NOT_ALLOWED"}},
	} {
		h := connectHost(t, failing{err: func() error { return tt.err }}, mcpserver.Options{})
		for _, tool := range order {
			if slices.Contains(needsNoEngine, tool) {
				continue
			}
			code := tt.want[tool]
			if code == "" && (tool == "workflow_history" || tool == "workflow_fork") {
				code = tt.want["workflow_status"]
			}
			if code == "" {
				code = tt.want[""]
			}
			r := h.refused(code, tool, minimal[tool])
			details := r.details()
			if e, ok := problem.As(tt.err); ok && string(e.Code) != code && details["engineCode"] != string(e.Code) {
				t.Errorf("%s: details %v", tool, details)
			}
			if tool != "workflow_list" && (details["execution_id"] != "x" || !strings.Contains(r.text, "execution_id: x")) {
				t.Errorf("%s: no execution_id in %v, %q", tool, details, r.text)
			}
			if (code == "INTERNAL_ERROR" || code == "ENGINE_FAILURE") && details["cause"] != "m" {
				t.Errorf("%s: cause %v", tool, details)
			}
		}
	}
}

// TestPanic: a panic in the engine fails one call and does not end the server.
func TestPanic(t *testing.T) {
	t.Parallel()
	h := connectHost(t, failing{err: func() error { panic("oops") }}, mcpserver.Options{})
	for _, tool := range order {
		if slices.Contains(needsNoEngine, tool) {
			continue
		}
		if r := h.refused("INTERNAL_ERROR", tool, minimal[tool]); !strings.Contains(r.text, "oops") {
			t.Errorf("%s: %s", tool, r.text)
		}
	}
}

// TestFindings: every finding has a line in the text and an object in details, up to a limit that the answer names.
func TestFindings(t *testing.T) {
	t.Parallel()
	e := problem.New(problem.ValidationError, "not valid").WithHint("general hint")
	for i := range 25 {
		e.Findings = append(e.Findings, problem.Finding{
			Code: problem.UnknownNode, Severity: problem.SeverityError, Message: "no such node", Hint: "name one",
			At: problem.Place{Pointer: fmt.Sprintf("/edges/%d/target", i), Line: 7, Column: 3}, Keyword: "profile", SchemaPath: "#/profile/x",
		})
	}
	e.Findings = append(e.Findings, problem.Finding{Code: problem.UnknownNode, Severity: problem.SeverityWarning, Message: "a warning"})
	h := connectHost(t, failing{err: func() error { return e }}, mcpserver.Options{})
	r := h.refused("VALIDATION_ERROR", "workflow_start", minimal["workflow_start"])
	for _, line := range []string{"- /edges/0/target (line 7, column 3): no such node; name one", "- /edges/19/", "- and 5 more"} {
		if !strings.Contains(r.text, line) {
			t.Errorf("no %q in\n%s", line, r.text)
		}
	}
	if strings.Contains(r.text, "/edges/20/") || strings.Contains(r.text, "a warning") {
		t.Errorf("too much in\n%s", r.text)
	}
	want(t, r.details(), object{"errorCount": 25})
	listed := r.details()["errors"].([]any)
	if len(listed) != 20 {
		t.Errorf("%d errors", len(listed))
	}
	want(t, listed[3].(map[string]any), object{
		"instancePath": "/edges/3/target", "schemaPath": "#/profile/x", "keyword": "profile", "params": object{"code": "UNKNOWN_NODE"},
		"message": "no such node", "hint": "name one", "line": 7, "column": 3,
	})
}

// TestSizes: a refusal of something too large has the protocol's facts (spec: mcp-tools, 2.2).
func TestSizes(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{MaxDocumentBytes: 2000})
	r := h.refused("VALIDATION_ERROR", "workflow_start", object{
		"definition": definitionFile(t, "step"), "input": object{"a": strings.Repeat("x", 2000)},
	})
	want(t, r.details(), object{"label": "input", "bytes": 2008, "maxBytes": 2000})
}

// The failure's code and cause are in details and in the text (spec: execution, 14.2).
func TestW35_CodeAndCauseAreTold(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	failed := h.refused("ENGINE_FAILURE", "workflow_start", object{"definition": definitionFile(t, "step"), "execution_id": "f"})
	details := failed.details()
	want(t, details, object{"code": "COMPOSITE_EXECUTOR_NOT_CONFIGURED", "node_id": "work", "execution_id": "f"})
	cause, _ := details["cause"].(string)
	if cause == "" || !strings.Contains(failed.text, cause) || !strings.Contains(failed.text, "COMPOSITE_EXECUTOR_NOT_CONFIGURED") {
		t.Errorf("cause %q is not in %q", cause, failed.text)
	}
}

// The error of a run that fails in its start has the id that the engine made (spec: execution, 14.2).
func TestW34_GeneratedIDIsNotLost(t *testing.T) {
	t.Parallel()
	h := newHost(t, graph.Options{})
	r := h.refused("ENGINE_FAILURE", "workflow_start", object{"definition": definitionFile(t, "step")})
	id, _ := r.details()["execution_id"].(string)
	want(t, h.ok("workflow_status", object{"execution_id": id}), object{"phase": "failed", "last_error": r.details()["cause"]})
}
