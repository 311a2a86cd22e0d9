package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

func submitActivityTool() *tool {
	return &tool{
		name:  "workflow_submit_activity",
		title: "Submit host-mediated activity outcome",
		description: "Submits the outcome of a pending activity or delegate: {ok:true, result} or {ok:false, error, code}. " +
			"A failure is retried by the node's retry policy. A repeated submit counts once.",
		annotations: mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments:   append(calls.SubmitArguments(), calls.SinceArgument, answerBytesArgument),
		answer:      calls.RunAnswer(calls.RepeatedProperty, calls.WarningsProperty),
		inner:       calls.InOutcome,
		invalid:     problem.SubmitValidationError,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := a.Submit(s.ReadDefinition)
			req.Wait = a.waiting(req.Wait)
			if err := a.Problem(); err != nil {
				return nil, err
			}
			run, err := s.drive(ctx, a, func() (*view.Run, error) { return s.SubmitActivity(ctx, req) })
			if err != nil {
				return s.lateOutcome(ctx, a, req, err)
			}
			return s.ran(ctx, a, run, err, " after activity submit", nil)
		},
	}
}

const (
	// maxOutcomeAgain is the largest outcome, in bytes, that is repeated in the suggested call.
	maxOutcomeAgain = 2 << 10
	// maxLateRecords limits the search for the end of a block to a run's newest records.
	maxLateRecords = 2000
)

// lateOutcome explains a rejected submit. For an attempt that has ended while a later one waits, it returns an error with the call to make
// instead; for a branch whose block was joined without it, a successful answer, because nothing is left to do.
func (s *server) lateOutcome(ctx context.Context, a *arguments, req graph.SubmitRequest, refused error) (*answer, error) {
	e, ok := problem.As(refused)
	if ok && e.Reason == problem.AnsweredDifferently {
		return nil, s.guide(ctx, a, req.ExecutionID, refused)
	}
	if !ok || e.Code != problem.SubmitNotAwaiting && e.Code != problem.SubmitNodeMismatch && e.Code != problem.SubmitParallelMismatch {
		return nil, refused
	}
	run, err := s.Status(ctx, graph.StatusRequest{ExecutionID: req.ExecutionID})
	if err != nil {
		return nil, refused
	}
	visit, attempt, named := cutAttempt(req.IdempotencyKey)
	for i := range run.Pending {
		p := &run.Pending[i]
		if at, n, ok := cutAttempt(p.IdempotencyKey); named && ok && isActionable(p) && at == visit && n > attempt {
			return nil, laterAttempt(a, req, p, attempt, e)
		}
	}
	if run.Status == machine.Failed {
		return nil, refused
	}
	span, winners := s.joinedWithout(ctx, run, req, visit)
	if span == nil {
		return nil, s.guideSubmit(ctx, a, run, req, e)
	}
	names := make([]string, len(winners))
	for i, name := range winners {
		names[i] = strconv.Quote(name)
	}
	over := "failed in another branch"
	if len(names) > 0 {
		over = fmt.Sprintf("was joined by %s %s", plural(len(names), "branch", "branches"), strings.Join(names, ", "))
	}
	late := fmt.Sprintf("Block %q %s before the outcome of branch %q arrived. It is no longer needed: nothing was recorded, nothing is left to do.",
		span.ParallelNodeID, over, span.BranchName)
	content := runjson.Driven(run)
	content.Put("late", late)
	headline := fmt.Sprintf("Execution %s %s. %s", shownID(run.ExecutionID), run.Status, late)
	return s.answered(headline, content, s.view(ctx, a, run), a), nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// laterAttempt returns the error for an outcome of an attempt that has ended, while p waits for the outcome of a later one.
func laterAttempt(a *arguments, req graph.SubmitRequest, p *view.Pending, attempt int, refused *problem.Error) error {
	how := "has ended"
	switch {
	case p.Attempt != attempt+1 || p.LastCode == "":
	case p.LastCode == string(problem.Timeout):
		how = "timed out"
	default:
		how = "failed with " + p.LastCode
	}
	var outcome any = "<object: the outcome of this call>"
	if sent := calls.ReadObject(a.Get("outcome")); jsonvalue.Size(sent, maxOutcomeAgain) <= maxOutcomeAgain {
		outcome = sent
	}
	args := members{{"execution_id", req.ExecutionID}, {"node_id", p.NodeID}, {"idempotency_key", p.IdempotencyKey}, {"outcome", outcome}}
	e := problem.New(refused.Code, "attempt %d of node %q %s; attempt %d waits for this result", attempt, p.NodeID, how, p.Attempt).
		WithReason(refused.Reason).WithPlace(refused.At).
		WithHint("Do not do the work again: send the same outcome with idempotency_key %q.", p.IdempotencyKey)
	return &guided{error: e, next: call("workflow_submit_activity", args, "Send the same outcome for the pending attempt.")}
}

// cutAttempt divides the key of an attempt, "run:node#visit.attempt", at its end.
func cutAttempt(key string) (visit string, attempt int, ok bool) {
	dot := strings.LastIndexByte(key, '.')
	if dot < 0 {
		return "", 0, false
	}
	attempt, err := strconv.Atoi(key[dot+1:])
	return key[:dot], attempt, err == nil
}

// joinedWithout finds the block that was joined, or failed, without the branch of an outcome. It returns the branch and
// those that joined. visit begins the attempt's key, or "".
func (s *server) joinedWithout(ctx context.Context, run *view.Run, req graph.SubmitRequest, visit string) (span *history.ParallelSpan, winners []string) {
	id, number := req.ExecutionID, 0
	if before, n, ok := strings.Cut(visit, ":"+req.NodeID+"#"); ok {
		id = before
		number, _ = strconv.Atoi(n)
	}
	from := int64(1)
	if id == run.ExecutionID {
		from = max(1, run.Seq-maxLateRecords+1)
	}
	var branch *history.ParallelSpan
	left := false
	for r, err := range s.records(ctx, id, from, maxLateRecords) {
		if err != nil {
			return nil, nil
		}
		p := &r.Payload
		switch name := r.Name; {
		case name == history.ActivityRequested && p.NodeID == req.NodeID && p.Span != nil:
			if (number == 0 || max(p.Visit, 1) == number) && (req.Span == nil || *req.Span == *p.Span) {
				branch, left, span = p.Span, false, nil
			}
		case (name == history.ActivityCompleted || name == history.ActivityFailed && !p.WillRetry) && p.NodeID == req.NodeID && (number == 0 || max(p.Visit, 1) == number):
			branch = nil // it has an outcome
		case name == history.FailNode && branch != nil && p.CaughtBy == branch.ParallelNodeID:
			span, winners = branch, nil
		case branch == nil || p.NodeID != branch.ParallelNodeID:
		case name == history.ParallelBranchCancelled && p.BranchName == branch.BranchName:
			left = true
		case name == history.ParallelJoined && left:
			span, winners = branch, p.Winners
		}
	}
	return span, winners
}
