package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// printError prints what ended a command, once and for all: code, message, place, and what to do next.
func (a *app) printError(err error) {
	if err == nil {
		return
	}
	if _, said := errors.AsType[silent](err); said {
		return
	}
	e, ok := errors.AsType[*problem.Error](err)
	switch {
	case ok:
		writeProblem(a.stderr, a.paint, e)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "interrupted")
	default:
		fmt.Fprintf(a.stderr, "%s %v\n", a.paint.bad("error:"), err)
	}
}

func writeProblem(w io.Writer, paint palette, e *problem.Error) {
	label := "error:"
	if e.Code != problem.UsageError {
		label = "error " + string(e.Code) + ":"
	}
	fmt.Fprintf(w, "%s %s\n", paint.bad(label), e.Error())
	if at := placeText(e.At); at != "" && len(e.Findings) == 0 { // each finding has its own
		fmt.Fprintf(w, "  at: %s\n", at)
	}
	for _, f := range e.Findings {
		if !e.Says(f) {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(placeText(f.At)+" "+f.Message))
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", commandHint(e.Hint, e.At.ExecutionID))
	}
}

// placeText says where a problem is, "" if nobody knows.
func placeText(p problem.Place) string {
	var parts []string
	if p.ExecutionID != "" {
		parts = append(parts, "run "+p.ExecutionID)
	}
	if p.NodeID != "" {
		parts = append(parts, "node "+p.NodeID)
	}
	if p.Line > 0 {
		parts = append(parts, fmt.Sprintf("line %d, column %d", p.Line, p.Column))
	}
	if p.Pointer != "" {
		parts = append(parts, p.Pointer)
	}
	return strings.Join(parts, ", ")
}

// commandHint names commands in the place of MCP tools, which the engine's hints speak of.
func commandHint(hint, id string) string {
	if id == "" {
		id = "ID"
	}
	id = shellQuote(id)
	return strings.NewReplacer(
		"workflow_submit_activity", program+" submit "+id,
		"workflow_status", program+" status "+id,
		"workflow_resume", program+" resume "+id,
		"workflow_signal", program+" signal "+id,
		"workflow_cancel", program+" cancel "+id,
		"workflow_start", program+" run",
		"workflow_list", program+" list",
		"allow_existing_execution_id", program+" recover "+id,
	).Replace(hint)
}
