// Package problem holds the one error type of the project and the closed list of its codes.
//
// Every refusal that a caller can act on is an *Error: a stable Code, a sentence for people, the Place it speaks of
// and a Hint that says what to do next. Match by code, never by text:
//
//	if errors.Is(err, problem.NotAwaiting) { … }
//	if e, ok := errors.AsType[*problem.Error](err); ok { use(e.At.Pointer) }
//
// Checking a definition yields many findings at once: see Finding and Findings.
package problem

import (
	"fmt"
	"strings"
)

// Code is a stable identifier of one kind of problem. Codes are printed, recorded in histories and matched by
// callers; they are never renamed. All of them are listed in codes.go.
type Code string

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

// Place says where a problem is. Every member is optional.
type Place struct {
	// ExecutionID names the run.
	ExecutionID string
	// NodeID names the node of the definition.
	NodeID string
	// Pointer is a JSON pointer (RFC 6901) into the document, payload or argument; "" is the root.
	Pointer string
	// Line and Column are 1-based positions in the source text; 0 means unknown. Columns count characters.
	Line, Column int
}

// Error is a problem that ends a call.
type Error struct {
	Code    Code
	Message string
	At      Place
	// Hint says what to do next, in one sentence; "" when there is nothing sensible to say.
	Hint string
	// Details carries machine-readable facts for adapters; values are plain JSON. May be nil.
	Details map[string]any
	// Findings is filled when a definition or payload was refused: every problem found.
	Findings Findings
	// Err is the cause, if any.
	Err error
}

// New returns an Error with a message that Format makes.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: Format(format, args...)}
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithPlace sets the place and returns e.
func (e *Error) WithPlace(p Place) *Error {
	e.At = p
	return e
}

// WithCause sets the cause and returns e.
func (e *Error) WithCause(err error) *Error {
	e.Err = err
	return e
}

// Error gives the message without code and hint, which adapters print in their own form.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	if b.Len() == 0 {
		b.WriteString(string(e.Code))
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Says reports whether the message tells all of a finding: with its place, and no line or hint besides. Who lists the
// findings below the message leaves it out.
func (e *Error) Says(f Finding) bool {
	return f.At.Line == 0 && f.Hint == "" && strings.Contains(e.Error(), ": "+strings.TrimSpace(f.At.Pointer+" "+f.Message))
}

// Is reports whether target is the code of e.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }
