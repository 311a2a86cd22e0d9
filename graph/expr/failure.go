package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Messages of evaluations are stored in histories and printed in logs, for readers who may not see the state. They
// speak of types and names, and quote nothing but the program.

const (
	maxClip  = 40  // bytes of a name or format
	maxQuote = 200 // bytes of a program
	maxKeys  = 20  // members of the state
)

// reason says why an evaluation failed.
func (p *Program) reason(err error) string {
	if err == errPanic {
		return err.Error()
	}
	if e, ok := errors.AsType[gojq.ValueError](err); ok {
		if text, ok := e.Value().(string); ok && p.strings[text] {
			return "error: " + problem.Clip(text, maxQuote)
		}
		return fmt.Sprintf("it raised an error with a value of type %s", typeName(e.Value()))
	}
	return withoutValues(err)
}

// withoutValues returns the interpreter's words for an error without its previews of values. Those stand in brackets,
// in quotes or behind a colon; behind the colon there may be a type first, which stays.
func withoutValues(err error) string {
	switch err.(type) {
	case *fault, *limitError:
		return err.Error()
	case gojq.ValueError:
		return "an error was raised"
	}
	text := errorText(err)
	head, tail, _ := strings.Cut(text, ": ")
	if i := strings.IndexAny(head, `("`); i >= 0 {
		return strings.TrimRight(head[:i], " :") + " cannot be applied here"
	}
	kind, _, _ := strings.Cut(tail, " ")
	switch kind {
	case "null", "boolean", "number", "string", "array", "object":
		return head + ": " + kind
	}
	return head
}

// errorText is err.Error(), which panics for values that are of no type of the interpreter.
func errorText(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = "it met a value that is not JSON"
		}
	}()
	return err.Error()
}

func quoteProgram(src string) string { return "`" + problem.Clip(src, maxQuote) + "`" }

func describeKeys(state map[string]any) string {
	if len(state) == 0 {
		return "no members"
	}
	names := jsonvalue.Keys(state)
	more := len(names) - maxKeys
	if more > 0 {
		names = names[:maxKeys]
	}
	for i, name := range names {
		names[i] = strconv.Quote(problem.Clip(name, maxClip))
	}
	text := "the members " + strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
