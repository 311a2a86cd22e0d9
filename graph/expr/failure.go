package expr

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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

// reason describes the failure of an evaluation.
func (p *Program) reason(err error) string {
	if err == errPanic {
		return err.Error()
	}
	if e, ok := errors.AsType[gojq.ValueError](err); ok {
		v := e.Value()
		if text, ok := v.(string); ok && (p.strings[text] || ofLibrary[text]) {
			return "error: " + problem.Clip(text, maxQuote)
		}
		if text := p.literal(v, "message"); text != "" {
			return "error: " + problem.Clip(text, maxQuote)
		}
		return fmt.Sprintf("it raised an error with a value of type %s", typeName(v))
	}
	return withoutValues(err)
}

// ofLibrary are the error texts of functions of the interpreter.
var ofLibrary = map[string]bool{
	"limit doesn't support negative count": true, "skip doesn't support negative count": true, "nth doesn't support negative index": true,
}

// literal returns a text of an object if it is a literal of the program, else "".
func (p *Program) literal(v any, member string) string {
	object, _ := v.(map[string]any)
	if text, _ := object[member].(string); p.strings[text] {
		return text
	}
	return ""
}

// maxRaised bounds a raised value, as JSON, that a failure carries.
const maxRaised = 64 << 10

// raised adds to the error of an evaluation the value that the program raised: as data, and the code and the message that it has by literals.
func (p *Program) raised(e *problem.Error, err error) {
	ve, ok := errors.AsType[gojq.ValueError](err)
	if !ok {
		return
	}
	v := ve.Value()
	if code := p.literal(v, "code"); problem.AuthorsCode(code) {
		e.Code, e.Hint = problem.Code(code), ""
		if text := p.literal(v, "message"); text != "" {
			e.Message = problem.Clip(text, problem.MaxText)
		}
	}
	n := measurement{limit: maxRaised}
	if n.value(v, 0); !n.deep && !n.foreign && n.size <= n.limit {
		v, _ = normalized(v)
		e.Data = map[string]any{"raised": v}
	}
}

// withoutValues returns the interpreter's error text without its previews of values, which follow a parenthesis, a
// quote, "applied to" or a colon. It keeps only their types and known phrases.
func withoutValues(err error) string {
	switch err.(type) {
	case *fault, *limitError:
		return err.Error()
	case gojq.ValueError:
		return "an error was raised"
	}
	text := errorText(err)
	switch {
	case strings.HasPrefix(text, "expected \"start\" and \"end\" for slicing but got: "):
		_, tail, _ := strings.Cut(text, ": ")
		return "expected start and end for slicing but got: " + leadingType(tail)
	case strings.HasPrefix(text, "cannot divide "):
		return "cannot divide by zero"
	case strings.HasPrefix(text, "cannot modulo "):
		return "cannot modulo by zero"
	}
	if name, value, ok := strings.Cut(text, applied); ok && isName(name) {
		if kind, ok := strings.CutPrefix(value, ": "); ok {
			return name + applied + ": " + leadingType(kind)
		}
		return name + applied + " " + refusedValue(name, strings.TrimPrefix(value, " "), text)
	}
	if head, rest, ok := strings.Cut(text, "("); ok && isName(head) {
		argument := previewType(rest)
		_, value, ok := strings.Cut(rest, ")"+applied)
		if argument == "" || !ok {
			return head + " cannot be applied here"
		}
		name := head + "(" + argument + ")" + applied
		if kind, ok := strings.CutPrefix(value, ": "); ok {
			return name + ": " + leadingType(kind)
		}
		return name + " " + refusedValue(head, strings.TrimPrefix(value, " "), text)
	}
	head, tail, _ := strings.Cut(text, ": ")
	if i := strings.IndexAny(head, `("`); i >= 0 {
		return strings.TrimRight(head[:i], " :") + " cannot be applied here"
	}
	if kind := typeAtStart(tail); kind != "" {
		return head + ": " + kind
	}
	return head
}

const applied = " cannot be applied to"

// isName reports whether a text is the name of a function or a format.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || i == 0 && c == '@') {
			return false
		}
	}
	return text != ""
}

// types are the interpreter's names of the types of values.
var types = []string{"null", "boolean", "number", "string", "array", "object"}

// typeAtStart returns the type name at the start of a text, "" if there is no type name.
func typeAtStart(text string) string {
	kind, _, _ := strings.Cut(text, " ")
	if slices.Contains(types, kind) {
		return kind
	}
	return ""
}

func leadingType(text string) string { return cmp.Or(typeAtStart(text), "a value of another type") }

// previewType returns the type of a value whose preview a text begins with, "" if that cannot be told.
func previewType(text string) string {
	switch {
	case text == "":
		return ""
	case strings.HasPrefix(text, "null"):
		return "null"
	case strings.HasPrefix(text, "nan"):
		return "number"
	}
	switch c := text[0]; {
	case c == '"':
		return "string"
	case c == '[':
		return "array"
	case c == '{':
		return "object"
	case c == 't', c == 'f':
		return "boolean"
	case c == '-', c >= '0' && c <= '9':
		return "number"
	}
	return ""
}

// refusals describe a value that has the right type and that the function does not accept.
var refusals = map[string]string{
	"tonumber": "a string that is not a number", "toboolean": "a string that is neither true nor false", "@base64d": "a string that is not base64",
	"strptime": "a string that does not match the format",
}

// refusedValue describes a value that a function does not accept; text holds a preview of it.
func refusedValue(name, preview, text string) string {
	kind := cmp.Or(previewType(preview), "value")
	if refused := refusals[name]; refused != "" && kind == "string" {
		return refused
	}
	for _, why := range []string{"expected an array of 8 numbers", "number of seconds is out of range", "number is out of range"} {
		if strings.HasSuffix(text, ": "+why) {
			return article(kind) + ": " + why
		}
	}
	return "this " + kind
}

func article(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
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
