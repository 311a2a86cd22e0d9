// Package problem holds the one error type of the project and the closed list of its codes.
//
// Every rejection that a caller can act on is an *Error: a stable Code, a sentence for people, the Place of the problem and a
// Hint with the next step. Match by code, never by text:
//
//	if errors.Is(err, problem.SignalNotAwaiting) { … }
//	if e, ok := errors.AsType[*problem.Error](err); ok { use(e.At.Pointer) }
//
// The protocol has one code for several causes: a resume of an unknown run and one with an invalid payload are both
// INVALID_RESUME_PAYLOAD. Error.Reason tells them apart, and errors.Is matches it too: the table in package graph sorts them for HTTP.
//
//	call            Code of an unknown run       of a refusal
//	Status, Drive   EXECUTION_NOT_FOUND
//	SubmitActivity  ACTIVITY_SUBMIT_NOT_AWAITING ACTIVITY_SUBMIT_NOT_AWAITING, …_NODE_MISMATCH, …_PARALLEL_MISMATCH
//	Resume          INVALID_RESUME_PAYLOAD       INVALID_RESUME_PAYLOAD
//	Signal          EXECUTION_NOT_FOUND          SIGNAL_NOT_AWAITING, SIGNAL_NAME_MISMATCH
//	Cancel          EXECUTION_NOT_FOUND          CANCEL_NOT_ALLOWED
//
// Checking a definition returns many findings at once: see Finding and Findings.
package problem

import (
	"cmp"
	"fmt"
	"strings"
)

// Code identifies a kind of problem. Codes are printed, recorded in histories and matched by callers; they are never renamed.
// All codes are in codes.go.
type Code string

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

// Place is the location of a problem. All fields are optional.
type Place struct {
	// ExecutionID names the run.
	ExecutionID string
	// NodeID names the node of the definition.
	NodeID string
	// Pointer is a JSON pointer (RFC 6901) into the document, payload or argument; "" is the root.
	Pointer string
	// Line and Column are the position in the source text, from 1; 0 means unknown. Columns count characters.
	Line, Column int
}

// String describes the known parts of the place.
func (p Place) String() string {
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

// Error is a problem that ends a call.
type Error struct {
	Code Code
	// Reason is the finer code of an Error whose Code stands for several causes; it may be empty. Adapters of the protocol report
	// Code alone.
	Reason  Code
	Message string
	At      Place
	// Hint is the next step, in one sentence. It may be empty.
	Hint string
	// Details holds data for adapters, in plain JSON. It may be nil.
	Details map[string]any
	// Data holds facts about the failure for the state of a run, in plain JSON, such as the value that a program raised. Adapters do not print it:
	// their readers may not see the state.
	Data map[string]any
	// Findings holds every problem of a definition or payload that was rejected.
	Findings Findings
	// Err is the cause, if any.
	Err error
}

// DataViolations is the field of the Data of an INVALID_RESUME_PAYLOAD for the violations of the schema, as text.
const DataViolations = "violations"

// New returns an Error with the message of Format.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: Format(format, args...)}
}

// WithHint sets the hint and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithReason sets the finer code and returns e.
func (e *Error) WithReason(reason Code) *Error {
	e.Reason = reason
	return e
}

// Finest returns the finest code of e: Reason, or Code without one. A deletion is an exception: its Reason is the coarser code.
func (e *Error) Finest() Code {
	if e.Code == DeletionUnfinished {
		return e.Code
	}
	return cmp.Or(e.Reason, e.Code)
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

// Error returns the message and the cause. Adapters print the code and the hint in their own form.
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

// Says reports whether the message contains everything of a finding, which has no line and no hint. A list of the findings
// below the message leaves it out.
func (e *Error) Says(f Finding) bool {
	text := strings.TrimSpace(f.At.Pointer + " " + f.Message)
	return f.At.Line == 0 && f.Hint == "" && (strings.Contains(e.Error(), ": "+text) || strings.Contains(e.Error(), "; "+text))
}

// Is reports whether target is the code of e, or its finer code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c != "" && (c == e.Code || c == e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
