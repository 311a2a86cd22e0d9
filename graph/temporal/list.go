package temporal

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	common "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	visibility "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	"github.com/workflows-engine/workflows-engine/graph/internal/admit"
	"github.com/workflows-engine/workflows-engine/history"
)

// ofRuns selects the workflows that are runs, once each: not the parts before they continued as new.
const ofRuns = "WorkflowType = '" + WorkflowType + "' AND ExecutionStatus != 'ContinuedAsNew'"

// quoted returns a text as a literal of visibility queries.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, `\`, `\\`), "'", `\'`) + "'"
}

// visibilityQuery returns a query of the service for a list.
func visibilityQuery(q history.ListQuery) (string, error) {
	switch {
	case !q.UpdatedAfter.IsZero() || !q.UpdatedBefore.IsZero():
		return "", unsupported("lists on Temporal have no filter by the time of the last change")
	case q.Oldest:
		return "", unsupported("lists on Temporal are newest first")
	case q.Unhandled || q.Ready:
		return "", unsupported("Temporal keeps no marks of handled and ready runs")
	}
	parts := []string{ofRuns}
	if phases := q.Selected(); len(phases) < len(history.Phases()) {
		var any []string
		for _, p := range phases {
			any = append(any, quoted(string(p)))
		}
		in := fmt.Sprintf("%s IN (%s)", attrPhase.GetName(), strings.Join(any, ", "))
		// Temporal has ended some runs without changing their phase.
		ended := "ExecutionStatus IN ('Terminated', 'TimedOut', 'Failed', 'Canceled')"
		if slices.Contains(phases, history.PhaseFailed) {
			in = "(" + in + " OR " + ended + ")"
		} else {
			in += " AND ExecutionStatus NOT IN ('Terminated', 'TimedOut', 'Failed', 'Canceled')"
		}
		parts = append(parts, in)
	}
	if q.DefinitionName != "" {
		parts = append(parts, fmt.Sprintf("%s = %s", attrDefinition.GetName(), quoted(q.DefinitionName)))
	}
	if q.Below != "" {
		parts = append(parts, "WorkflowId STARTS_WITH "+quoted(q.Below+history.ChildMark))
	}
	if q.Roots {
		parts = append(parts, attrParent.GetName()+" IS NULL")
	}
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		value := q.Labels[name]
		if value == "" {
			return "", unsupported("lists on Temporal select labels by value, and %q lacks one", name)
		}
		parts = append(parts, fmt.Sprintf("%s = %s", attrLabels.GetName(), quoted(name+"="+value)))
	}
	return strings.Join(parts, " AND "), nil
}

// List returns a page of runs, last started first. Its rows have the fields that visibility keeps: id, phase, definition, title, labels, parent and times.
// Cursors are those of the service. Filters by time, Oldest and Unhandled are UNSUPPORTED_BY_BACKEND.
func (e *Engine) List(ctx context.Context, q history.ListQuery) (history.ListPage, error) {
	if err := e.enter(ctx); err != nil {
		return history.ListPage{}, err
	}
	if err := admit.List(q); err != nil {
		return history.ListPage{}, err
	}
	size, err := q.PageSize()
	if err != nil {
		return history.ListPage{}, err
	}
	query, err := visibilityQuery(q)
	if err != nil {
		return history.ListPage{}, err
	}
	token, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return history.ListPage{}, history.InvalidCursor(q.Cursor)
	}
	p, err := e.b.list(ctx, query, size, token)
	if err != nil {
		if len(token) > 0 && strings.Contains(err.Error(), "token") {
			return history.ListPage{}, history.InvalidCursor(q.Cursor)
		}
		return history.ListPage{}, failureOf(ctx, err, e.o.Address, "")
	}
	page := history.ListPage{NextCursor: base64.RawURLEncoding.EncodeToString(p.next)}
	for _, info := range p.runs {
		page.Executions = append(page.Executions, rowOf(e.o.Converter, info))
	}
	return page, nil
}

// Count returns how many runs a query selects; see graph.Counter.
func (e *Engine) Count(ctx context.Context, q history.ListQuery, most int) (int, error) {
	if err := e.enter(ctx); err != nil {
		return 0, err
	}
	q.Limit, q.Cursor = 0, ""
	if err := admit.List(q); err != nil {
		return 0, err
	}
	if err := history.CheckCount(most); err != nil {
		return 0, err
	}
	q.Oldest = false
	query, err := visibilityQuery(q)
	if err != nil {
		return 0, err
	}
	n, err := e.b.count(ctx, query)
	if err != nil {
		return 0, failureOf(ctx, err, e.o.Address, "")
	}
	return int(min(n, int64(most))), nil
}

// rowOf returns the row of a run from its entry in visibility.
func rowOf(memos converter.DataConverter, info *visibility.WorkflowExecutionInfo) history.Execution {
	attributes, memo := info.GetSearchAttributes().GetIndexedFields(), info.GetMemo().GetFields()
	text := func(payloads map[string]*common.Payload, name string) (s string) {
		if p := payloads[name]; p != nil {
			_ = memos.FromPayload(p, &s)
		}
		return s
	}
	e := history.Execution{
		ID: info.GetExecution().GetWorkflowId(), Phase: history.Phase(text(attributes, attrPhase.GetName())), DefinitionName: text(attributes, attrDefinition.GetName()),
		DefinitionHash: text(attributes, attrHash.GetName()), Parent: text(attributes, attrParent.GetName()), Title: text(memo, memoTitle), DefinitionVersion: text(memo, memoVersion),
	}
	if p := memo[memoLabels]; p != nil {
		_ = memos.FromPayload(p, &e.Labels)
	}
	if t := info.GetStartTime(); t != nil {
		e.CreatedAt, e.UpdatedAt = t.AsTime(), t.AsTime()
	}
	if t := info.GetCloseTime(); t != nil {
		e.UpdatedAt = t.AsTime()
	}
	switch info.GetStatus() {
	case enums.WORKFLOW_EXECUTION_STATUS_TERMINATED, enums.WORKFLOW_EXECUTION_STATUS_TIMED_OUT, enums.WORKFLOW_EXECUTION_STATUS_FAILED, enums.WORKFLOW_EXECUTION_STATUS_CANCELED:
		e.Phase, e.LastError = history.PhaseFailed, terminatedText
	}
	if e.Phase == "" {
		e.Phase = history.PhaseRunning
	}
	return e
}
