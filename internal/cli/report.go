package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
		var store []string
		if a.flags != nil {
			store = a.flags.GivenStore()
		}
		writeProblem(a.stderr, a.paint, a.fileAsID(e), store)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "interrupted")
	default:
		fmt.Fprintf(a.stderr, "%s %v\n", a.paint.bad("error:"), err)
	}
}

// fileAsID gives the error for an unknown run a better hint if a file has that name.
func (a *app) fileAsID(e *problem.Error) *problem.Error {
	file := e.At.ExecutionID
	if info, err := os.Stat(a.path(file)); e.Code != problem.ExecutionNotFound || file == "" || err != nil || info.IsDir() {
		return e
	}
	hinted := *e
	return hinted.WithHint("Did you mean --db %s?", shellQuote(file))
}

// writeProblem prints a problem. store are the flags with which the commands of its hint reach the same runs.
func writeProblem(w io.Writer, paint palette, e *problem.Error, store []string) {
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
		hint := commandHint(e.Hint, e.At.ExecutionID, store...)
		flags := ""
		if len(store) > 0 {
			flags = " " + commandLine(store...)
		}
		fmt.Fprintf(w, "  hint: %s\n", strings.Replace(hint, sameDatabase, flags, 1))
	}
}

// sameDatabase is what hints say behind a command whose flags they do not know.
const sameDatabase = ", with the --store-path of this database"

// placeText says where a problem is, "" if that is not known.
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

// commandHint names commands in the place of MCP tools, which the engine's hints speak of. store are the flags that name
// the database, if the caller has them.
func commandHint(hint, id string, store ...string) string {
	if id == "" {
		id = "ID"
	}
	id = shellQuote(id)
	if len(store) > 0 {
		id += " " + commandLine(store...)
	}
	return strings.NewReplacer(
		"workflow_submit_activity", program+" submit "+id,
		"workflow_status", program+" status "+id,
		"workflow_resume", program+" resume "+id,
		"workflow_signal", program+" signal "+id,
		"workflow_cancel", program+" cancel "+id,
		"workflow_start", program+" run",
		"workflow_list", strings.TrimSpace(program+" list "+commandLine(store...)),
		"allow_existing_execution_id", program+" recover "+id,
	).Replace(hint)
}
