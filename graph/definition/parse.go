package definition

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Parse reads a JSON definition strictly: UTF-8, one value, no duplicate members, no __proto__, no lone surrogates,
// numbers within a double, depth up to MaxDepth, size up to MaxBytes and up to MaxValues values. The error is a *problem.Error with code
// VALIDATION_ERROR and all Findings of the text.
func Parse(src []byte) (*Document, error) {
	if at, found := tooManyValues(src, false); found && len(src) <= MaxBytes {
		return nil, refuseText(problem.Findings{refuseValues(at)})
	}
	root, faults := jsonvalue.Parse(src, MaxDepth, MaxBytes, "precision") // of which checkNumbers warns
	if len(faults) == 0 {
		return newDocument(root), nil
	}
	if f, found := fence(src); found {
		return nil, refuseText(problem.Findings{f})
	}
	findings := make(problem.Findings, len(faults))
	for i, f := range faults {
		findings[i] = textFinding(cmp.Or(textFaults[f.Kind].code, problem.DefinitionSyntax),
			problem.Place{Pointer: f.Pointer, Line: f.Line, Column: f.Column}, f.Message, textHint(f.Kind))
	}
	return nil, refuseText(findings)
}

var tooDeep = fmt.Sprintf("the document is nested deeper than %d levels", MaxDepth)

// FromValue makes a document of a decoded value, for instance an MCP argument; Go's number types, structs and typed
// maps are turned into plain JSON first. Its findings have pointers but no lines. The error is like that of Parse.
func FromValue(v any) (*Document, error) {
	plain, err := jsonvalue.Normalize(v)
	if err != nil {
		finding := textFinding(problem.DefinitionSyntax, problem.Place{}, "the value is not plain JSON", "")
		if e, ok := problem.As(err); ok {
			finding.At, finding.Message = e.At, e.Message
		}
		if errors.Is(err, jsonvalue.ErrTooDeep) {
			finding = textFinding(problem.DefinitionTooDeep, problem.Place{}, tooDeep, "")
		}
		return nil, refuseText(problem.Findings{finding})
	}
	w := valueWalk{}
	w.check(plain, "", MaxDepth)
	if len(w.findings) > 0 {
		return nil, refuseText(w.findings)
	}
	return newDocument(jsonvalue.FromValue(plain)), nil
}

// valueWalk checks a value as Parse checks a text, as far as a value still shows it.
type valueWalk struct {
	findings      problem.Findings
	bytes, values int
}

func (w *valueWalk) report(code problem.Code, pointer, message, hint string) {
	w.findings = append(w.findings, textFinding(code, problem.Place{Pointer: pointer}, message, hint))
}

// check reports whether the walk may continue.
func (w *valueWalk) check(v any, pointer string, depth int) bool {
	w.bytes += 2 // every value and every name takes at least two bytes of text, or one and a separator
	if s, ok := v.(string); ok {
		w.bytes += len(s)
		if !utf8.ValidString(s) {
			w.report(problem.DefinitionEncoding, pointer, "the text is not valid UTF-8", "")
		}
	}
	if w.values++; w.values > 2*MaxValues { // names count too
		w.findings = append(w.findings, refuseValues(problem.Place{Pointer: pointer}))
		return false
	}
	if w.bytes > MaxBytes {
		w.report(problem.DefinitionTooLarge, "", fmt.Sprintf("the document exceeds %d bytes", MaxBytes), textHint("size"))
		return false
	}
	list, isList := v.([]any)
	object, isObject := v.(map[string]any)
	if (isList || isObject) && depth == 0 {
		w.report(problem.DefinitionTooDeep, "", tooDeep, "")
		return false
	}
	for i, e := range list {
		if !w.check(e, pointer+"/"+strconv.Itoa(i), depth-1) {
			return false
		}
	}
	for _, name := range jsonvalue.Keys(object) {
		at := pointer + "/" + jsonvalue.EscapePointer(name)
		if name == "__proto__" {
			w.report(problem.DefinitionReserved, at, "a field must not be named __proto__", textHint("proto"))
		}
		if !w.check(name, at, depth) || !w.check(object[name], at, depth-1) {
			return false
		}
	}
	return true
}

// textFaults are the codes and hints of the kinds of text problems; every other kind is DefinitionSyntax.
var textFaults = map[string]struct {
	code problem.Code
	hint string
}{
	"duplicate": {problem.DefinitionDuplicate, "remove one of the two fields"},
	"proto":     {problem.DefinitionReserved, "rename the field; the definition hash would not cover it"},
	"surrogate": {problem.DefinitionEncoding, ""},
	"utf8":      {problem.DefinitionEncoding, ""},
	"number":    {problem.DefinitionNumber, "write the number as a text if its exact value matters"},
	"depth":     {problem.DefinitionTooDeep, ""},
	"size":      {problem.DefinitionTooLarge, "split the workflow into subworkflows"},
}

func textHint(kind string) string { return textFaults[kind].hint }

func textFinding(code problem.Code, at problem.Place, message, hint string) problem.Finding {
	return problem.Finding{Code: code, Severity: problem.SeverityError, At: at, Message: message, Hint: hint}
}

// fence finds the line that begins or ends a code block of Markdown, as models put it around their output. Neither JSON nor YAML
// has such a line outside of a text.
func fence(src []byte) (f problem.Finding, found bool) {
	line := 1
	for text := range bytes.Lines(src) {
		if bytes.HasPrefix(text, []byte("```")) {
			return textFinding(problem.DefinitionSyntax, problem.Place{Line: line, Column: 1},
				"the line ``` of a code block is not part of a definition", "leave the lines with ``` out"), true
		}
		line++
	}
	return f, false
}

// refuseText returns the error for a text that is not a definition.
func refuseText(findings problem.Findings) error {
	findings.Sort()
	first := findings[0]
	e := problem.New(problem.ValidationError, "%s", first.Message).WithPlace(first.At)
	if first.At.Line > 0 {
		e.Message = fmt.Sprintf("line %d, column %d: %s", first.At.Line, first.At.Column, first.Message)
	}
	if more := len(findings) - 1; more > 0 {
		e.Message += fmt.Sprintf("; and %d more", more)
	}
	e.Hint, e.Findings = first.Hint, findings
	return e
}
