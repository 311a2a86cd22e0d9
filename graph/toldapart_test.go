package graph_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
)

// httpStatus is what an embedder's HTTP layer makes of an error, as the documentation of package graph says.
func httpStatus(err error) int {
	for _, class := range []struct {
		status int
		codes  []problem.Code
	}{
		{404, []problem.Code{problem.ExecutionNotFound, problem.WorkflowNotFound}},
		{409, []problem.Code{
			problem.AnsweredDifferently, problem.NotAwaiting, problem.ExecutionEnded, problem.DuplicateExecutionID,
		}},
		{422, []problem.Code{
			problem.ValidationError, problem.InterruptInParallelBranch, problem.SubmitValidationError, problem.InvalidResumePayload,
			problem.SignalValidationError, problem.CancelValidationError, problem.InvalidListCursor, problem.ExecutorNotConfigured,
		}},
	} {
		for _, code := range class.codes {
			if errors.Is(err, code) {
				return class.status
			}
		}
	}
	return 500
}

// TestEveryCallAboutAnUnknownRunSaysSo: the protocol has a code of its own for each call; errors.Is finds
// EXECUTION_NOT_FOUND in all of them.
func TestEveryCallAboutAnUnknownRunSaysSo(t *testing.T) {
	t.Parallel()
	r := newRunner(t, historymem.New(), graph.Options{})
	for name, c := range map[string]struct {
		code problem.Code
		call func(context.Context) error
	}{
		"Status": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Status(ctx, graph.StatusRequest{ExecutionID: "ghost"})
			return err
		}},
		"SubmitActivity": {problem.SubmitNotAwaiting, func(ctx context.Context) error {
			_, err := r.SubmitActivity(ctx, graph.SubmitRequest{ExecutionID: "ghost", NodeID: "a", OK: true})
			return err
		}},
		"Resume": {problem.InvalidResumePayload, func(ctx context.Context) error {
			_, err := r.Resume(ctx, graph.ResumeRequest{ExecutionID: "ghost"})
			return err
		}},
		"Signal": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Signal(ctx, graph.SignalRequest{ExecutionID: "ghost", Name: "go"})
			return err
		}},
		"Cancel": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Cancel(ctx, graph.CancelRequest{ExecutionID: "ghost"})
			return err
		}},
		"Drive": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Drive(ctx, graph.DriveRequest{ExecutionID: "ghost"})
			return err
		}},
		"Fork": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Fork(ctx, graph.ForkRequest{ExecutionID: "ghost", Seq: 1})
			return err
		}},
		"History": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.History(ctx, graph.HistoryRequest{ExecutionID: "ghost"})
			return err
		}},
		"Export": {problem.ExecutionNotFound, func(ctx context.Context) error {
			return r.Export(ctx, "ghost", graph.ExportOptions{}, io.Discard)
		}},
		"Verify": {problem.ExecutionNotFound, func(ctx context.Context) error {
			_, err := r.Verify(ctx, "ghost", false, func(history.Finding) {})
			return err
		}},
	} {
		err := c.call(t.Context())
		if p, ok := problem.As(err); !ok || p.Code != c.code || !errors.Is(err, problem.ExecutionNotFound) || httpStatus(err) != 404 {
			t.Errorf("%s: %#v, want the code %s and EXECUTION_NOT_FOUND", name, err, c.code)
		}
	}
}

// TestRefusalsOfAnAnswerCanBeToldApart: answered differently before, not awaited, ended and invalid.
func TestRefusalsOfAnAnswerCanBeToldApart(t *testing.T) {
	t.Parallel()
	r, _ := host(t, graph.Options{})
	check := func(name string, err error, code, reason problem.Code, status int) {
		t.Helper()
		p, ok := problem.As(err)
		if !ok || p.Code != code || p.Reason != reason || reason != "" && !errors.Is(err, reason) || httpStatus(err) != status {
			t.Errorf("%s: %#v, want %s, %s, HTTP %d", name, err, code, reason, status)
		}
	}
	submit := func(id, node, key string, result map[string]any) error {
		_, err := r.SubmitActivity(t.Context(), graph.SubmitRequest{ExecutionID: id, NodeID: node, OK: true, Result: result, IdempotencyKey: key})
		return err
	}
	d := workflow(t, "apart", []string{startNode(), tool("a"), interrupt("i"), signalWait("w", "go"), endNode()}, "s a", "a i", "i w", "w e")
	resume := func(id string, payload map[string]any) error {
		_, err := r.Resume(t.Context(), graph.ResumeRequest{ExecutionID: "r", InterruptID: id, Payload: payload})
		return err
	}
	signal := func(name, key string, payload map[string]any) error {
		_, err := r.Signal(t.Context(), graph.SignalRequest{ExecutionID: "r", Name: name, Payload: payload, IdempotencyKey: key})
		return err
	}
	mustNot := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	yes, no := map[string]any{"ok": true}, map[string]any{"ok": false}
	key := start(t, r, "r", d, map[string]any{}).Pending[0].IdempotencyKey
	check("resume of a run at an activity", resume("", yes), problem.InvalidResumePayload, problem.NotAwaiting, 409)
	check("submit for another node", submit("r", "i", "", nil), problem.SubmitNodeMismatch, problem.NotAwaiting, 409)
	mustNot(submit("r", "a", key, yes))
	check("submit with another result", submit("r", "a", key, no), problem.SubmitNotAwaiting, problem.AnsweredDifferently, 409)
	check("submit of what is not pending", submit("r", "a", "", no), problem.SubmitNotAwaiting, problem.NotAwaiting, 409)
	check("resume with an invalid payload", resume("", map[string]any{"ok": 1}), problem.InvalidResumePayload, "", 422)
	mustNot(resume("r:i#1", yes))
	check("resume with another answer", resume("r:i#1", no), problem.InvalidResumePayload, problem.AnsweredDifferently, 409)
	check("resume of what is not open", resume("r:i#2", no), problem.InvalidResumePayload, problem.NotAwaiting, 409)
	check("signal of another name", signal("stop", "", nil), problem.SignalNameMismatch, problem.NotAwaiting, 409)
	check("signal without a name", signal(" ", "", nil), problem.SignalValidationError, "", 422)
	mustNot(signal("go", "k", yes))
	check("signal with another payload", signal("go", "k", no), problem.SignalValidationError, problem.AnsweredDifferently, 409)
	check("signal after the end", signal("go", "", yes), problem.SignalNotAwaiting, problem.ExecutionEnded, 409)
	check("resume after the end", resume("", yes), problem.InvalidResumePayload, problem.ExecutionEnded, 409)
	check("submit after the end", submit("r", "a", "", no), problem.SubmitNotAwaiting, problem.ExecutionEnded, 409)
	_, err := r.Cancel(t.Context(), graph.CancelRequest{ExecutionID: "r"})
	check("cancel after the end", err, problem.CancelNotAllowed, problem.ExecutionEnded, 409)
	_, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d})
	check("start of an existing id", err, problem.DuplicateExecutionID, "", 409)
	_, err = r.Start(t.Context(), graph.StartRequest{ExecutionID: "r", Definition: d, Input: yes, AllowExisting: true})
	check("start with another input", err, problem.SubmitValidationError, problem.DuplicateExecutionID, 409)
	_, err = r.Start(t.Context(), graph.StartRequest{DefinitionRef: "nowhere"})
	check("start of an unknown definition", err, problem.WorkflowNotFound, "", 404)
}
