package stepcommand

import (
	"bytes"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

const (
	// maxErrorText bounds the text of an error that a program reports.
	maxErrorText = problem.MaxText
	// maxRetryAfter bounds the pause that a program can ask for.
	maxRetryAfter = time.Hour
)

// maxCode bounds the length of a program's own code.
const maxCode = 64

// codePattern matches the characters of a program's own code. It does not count them: a counted repetition compiles to
// a copy for each.
var codePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.:-]*$`) })

// answer is the answer of a program: an output, or a failure.
type answer struct {
	output  any
	usage   map[string]any
	failure *activities.Failure
}

// parse reads a program's answer. The fault describes an invalid answer, "" if it is valid. Members that are not known
// are left alone, so that later versions can have more.
func parse(text []byte) (a answer, fault string) {
	if len(bytes.TrimSpace(text)) == 0 {
		return answer{output: map[string]any{}}, ""
	}
	node, faults := jsonvalue.Parse(text, 0, 0)
	if len(faults) > 0 {
		f := faults[0]
		fault = fmt.Sprintf("line %d, column %d: %s", f.Line, f.Column, f.Message)
		if f.Pointer != "" {
			fault += fmt.Sprintf(" (at %q)", f.Pointer)
		}
		return a, fault
	}
	members, ok := node.Value().(map[string]any)
	if !ok {
		return a, "it is not an object"
	}
	output, succeeded := members["output"]
	reported, failed := members["error"]
	switch ok, given := members["ok"].(bool); {
	case given && ok && failed:
		return a, "ok is true, and it has an error"
	case given && !ok && !failed:
		return a, "ok is false, and it has no error"
	}
	if usage, given := members["usage"]; given {
		if a.usage, ok = usage.(map[string]any); !ok {
			return a, "usage is not an object"
		}
	}
	switch {
	case succeeded && failed:
		return a, "it has an output and an error"
	case failed:
		if a.failure, fault = failureOf(reported, members); fault == "" {
			a.failure.Usage = a.usage
		}
		return a, fault
	case !succeeded:
		return a, "it has neither an output nor an error"
	}
	if a.output = output; output == nil {
		a.output = map[string]any{"value": nil} // JSON null is a value, unlike no answer
	}
	return a, ""
}

// failureOf returns the failure for an error that a program reports.
func failureOf(reported any, members map[string]any) (failure *activities.Failure, fault string) {
	text, ok := reported.(string)
	if !ok {
		return nil, "error is not a string"
	}
	failure = &activities.Failure{Code: string(problem.HandlerError), Message: text}
	if value, given := members["code"]; given {
		code, ok := value.(string)
		if !ok || len(code) > maxCode || !codePattern().MatchString(code) {
			return nil, "code is not of the form NO_IMAGE: a letter, then at most 63 letters, digits or _ . : -"
		}
		failure.Code, failure.Retryable = code, activities.RetrySense(code)
	}
	if value, given := members["retryable"]; given {
		again, ok := value.(bool)
		if !ok {
			return nil, "retryable is neither true nor false"
		}
		failure.Retryable = activities.RetryPointless
		if again {
			failure.Retryable = activities.RetrySensible
		}
	}
	if value, given := members["retry_after_ms"]; given {
		ms, ok := value.(float64)
		if !ok || ms < 0 {
			return nil, "retry_after_ms is not a number of milliseconds"
		}
		failure.RetryAfter = min(time.Duration(min(ms, float64(maxRetryAfter/time.Millisecond)))*time.Millisecond, maxRetryAfter)
	}
	return failure, ""
}
