package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/shellword"
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
		if a.database != "" && errors.Is(err, problem.ExecutionNotFound) {
			fmt.Fprintf(a.stderr, "  searched: %s\n", a.database)
		}
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
	return hinted.WithHint("Did you mean --db %s?", shellword.Quote(file))
}

// writeProblem prints a problem. store are the flags with which the commands of its hint reach the same runs.
func writeProblem(w io.Writer, paint palette, e *problem.Error, store []string) {
	label := "error:"
	if e.Code != problem.UsageError {
		label = "error " + string(e.Code) + ":"
	}
	fmt.Fprintf(w, "%s %s\n", paint.bad(label), e.Error())
	if at := plainCell(e.At.String()); at != "" && len(e.Findings) == 0 { // each finding has its own
		fmt.Fprintf(w, "  at: %s\n", at)
	}
	for _, f := range e.Findings {
		if !e.Says(f) {
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace(plainCell(f.At.String())+" "+f.Message))
		}
		if f.Hint != "" {
			fmt.Fprintf(w, "    hint: %s\n", f.Hint)
		}
	}
	if e.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", commandHint(e.Hint, e.At.ExecutionID, store...))
	}
}

// commandHint names commands and flags in the place of the library's calls and options. store are the flags that name the
// database, if the caller has them.
func commandHint(hint, id string, store ...string) string {
	return commandWords(id, store...).Translate(hint)
}

// commandWords are the names under which users of commands know what the library's hints speak of.
func commandWords(id string, store ...string) problem.Glossary {
	if id == "" {
		id = "ID"
	}
	database := ""
	if len(store) > 0 {
		database = " " + shellword.Line(store...)
	}
	about := func(command string, flags ...string) string {
		return shellword.Command([]string{program, command}, []string{id}, slices.Concat(store, flags)...)
	}
	g := problem.Glossary{
		"Runner.Status": about("status"), "Runner.List": program + " list" + database,
		"Runner.Drive":                about("recover", "--definition", "FILE"),
		"Runner.Prune":                program + " gc --older-than 30d" + database,
		"DatabaseOptions.Definitions": "--definition FILE",
		"Runner.Verify":               program + " verify --repair" + database,
		"StartRequest.AllowExisting":  about("recover"),
		"ForkRequest.Again":           "--again", "ForkRequest.RepeatEffects": "--anew with --repeat-effects",
		"ForkRequest.Anew": about("retry", "--anew"), "ForkRequest.CurrentAgentConfig": about("retry", currentConfig...),
		"StatusRequest.Wait": "--wait", "ExportOptions.Redact": "--redact",
	}
	maps.Copy(g, envname.Options)
	return g
}
