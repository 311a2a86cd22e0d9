package jsonschema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Bounds of a schema. Beyond them compiling is refused rather than slow: the library's cost grows with the square of
// the number of subschemas.
const (
	// MaxDepth is the number of nested objects and arrays in a schema.
	MaxDepth = 512
	// MaxSubschemas is the number of objects and booleans at places of schemas.
	MaxSubschemas = 5000
)

// Bounds of a schema, or of several that are compiled together.
const (
	// MaxPatterns bounds the size of the patterns, in instructions of Go's engine; x{1000} has a thousand.
	MaxPatterns = 50_000
	// MaxSubschemasTogether is MaxSubschemas for all of them. Each subschema keeps more than a kilobyte.
	MaxSubschemasTogether = 15_000
)

// Together is the use of these bounds by schemas that are compiled together.
type Together struct{ patterns, subschemas int }

// Dialect is the default dialect, used without $schema.
const Dialect = "https://json-schema.org/draft/2020-12/schema"

// drafts are the dialects that a schema may name, without scheme and fragment.
var drafts = map[string]*lib.Draft{
	"json-schema.org/draft-04/schema":      lib.Draft4,
	"json-schema.org/draft-06/schema":      lib.Draft6,
	"json-schema.org/draft-07/schema":      lib.Draft7,
	"json-schema.org/draft/2019-09/schema": lib.Draft2019,
	"json-schema.org/draft/2020-12/schema": lib.Draft2020,
}

// draftOf returns the dialect that a $schema names, nil if it is unknown.
func draftOf(uri string) *lib.Draft {
	uri = strings.TrimSuffix(uri, "#")
	for _, scheme := range []string{"https://", "http://"} {
		if rest, found := strings.CutPrefix(uri, scheme); found {
			return drafts[rest]
		}
	}
	return nil
}

// Options of CompileWith. The zero value compiles one schema, as the protocol reads it.
type Options struct {
	// Together, if it is set, bounds this schema together with the others that were compiled with it.
	Together *Together
	// AssertFormat makes a value invalid if it does not have the format that the schema names. The protocol's engine
	// asserts no format.
	AssertFormat bool
}

// base is the address that relative references are resolved against. It names nothing that could be fetched.
const base = "schema://document/root.json"

// Problem is one thing that is wrong with a schema.
type Problem struct {
	// Pointer is a JSON pointer into the schema.
	Pointer string
	// Message is one sentence, without the pointer.
	Message string
	// Hint is a suggested fix; may be empty.
	Hint string
}

// CompileError lists the problems of a schema that cannot be used.
type CompileError struct {
	// Problems holds at least one problem, in the order of the schema's members.
	Problems []Problem
}

// Error returns the first problem as one sentence for the author, and how many more there are.
func (e *CompileError) Error() string {
	p := e.Problems[0]
	text := p.Message
	if p.Pointer != "" {
		text = "at " + p.Pointer + ": " + text
	}
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	if more := len(e.Problems) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func refuse(pointer, message, hint string) *CompileError {
	return &CompileError{Problems: []Problem{{Pointer: pointer, Message: message, Hint: hint}}}
}

// errNothingLoaded is the error of a reference to another document.
var errNothingLoaded = errors.New("references to other documents are not followed")

// Compile compiles a decoded schema (a map or a bool). The error is a *CompileError; its text is one sentence for the
// author.
func Compile(raw any) (*Schema, error) { return CompileWith(raw, Options{}) }

// CompileWith is Compile with options.
func CompileWith(raw any, o Options) (s *Schema, err error) {
	switch raw.(type) {
	case map[string]any, bool:
	default:
		return nil, refuse("", "a schema is an object, or true or false", "")
	}
	p := newPreparer(raw, o)
	prepared := p.prepare()
	if len(p.problems) > 0 {
		return nil, &CompileError{Problems: p.problems}
	}
	defer func() {
		// Members that the meta-schema leaves open can still surprise the library.
		if r := recover(); r != nil {
			s, err = nil, refuse("", "the schema cannot be compiled", "a keyword holds a value of the wrong type")
		}
	}()
	root, err := compileText(jsonvalue.Canonical(prepared), p.draft)
	if err != nil {
		return nil, explain(err, prepared, p.draft)
	}
	places := locate(root)
	budget, err := install(places)
	if err != nil {
		return nil, refuse("", "the schema cannot be compiled", "")
	}
	prices := newPrices(places)
	if prices.most.subschemas > MaxEffort {
		return nil, refuse("", fmt.Sprintf("the schema's references multiply to more than %d checks of one value", MaxEffort),
			"refer to each part once")
	}
	return &Schema{root: root, older: p.draft != lib.Draft2020, notes: p.notes, unchecked: p.unchecked, places: places, prices: prices, budget: budget}, nil
}

func compileText(text []byte, draft *lib.Draft) (*lib.Schema, error) {
	c := lib.NewCompiler()
	c.Draft = draft
	c.AssertFormat = true // the formats that are not asserted have been left out
	c.Formats["regex"] = isPattern
	c.LoadURL = func(string) (io.ReadCloser, error) { return nil, errNothingLoaded }
	if err := c.AddResource(base, bytes.NewReader(text)); err != nil {
		return nil, err
	}
	return c.Compile(base)
}

// explain turns the library's error into the author's sentence, by the error's type and never by its text.
func explain(err error, schema any, draft *lib.Draft) *CompileError {
	if ve, ok := errors.AsType[*lib.ValidationError](err); ok {
		return &CompileError{Problems: metaProblems(ve, schema, draft)}
	}
	if _, ok := errors.AsType[lib.InfiniteLoopError](err); ok {
		return refuse("", "a $ref leads back to itself without end", "")
	}
	if errors.Is(err, errNothingLoaded) {
		return refuse("", "a $ref names another document",
			"copy its target into $defs and refer to it as #/$defs/<name>")
	}
	return refuse("", "a $ref or $id cannot be resolved", "refer to parts of the same schema, as in #/$defs/<name>")
}

// metaProblems describes a schema that breaks the meta-schema: one problem for each place, the most telling one.
func metaProblems(ve *lib.ValidationError, schema any, draft *lib.Draft) []Problem {
	meta, err := lib.NewCompiler().Compile(draft.URL())
	places := locations{}
	if err == nil {
		places = locate(meta)
	}
	var problems []Problem
	at := map[string]int{}
	for _, v := range flatten(ve, schema, places) {
		i, seen := at[v.InstancePath]
		switch {
		case !seen:
			at[v.InstancePath] = len(problems)
			problems = append(problems, Problem{Pointer: v.InstancePath, Message: v.Message})
		case v.Keyword == "enum":
			// Of the alternatives for type, the list of names says more than "must be array".
			problems[i].Message = v.Message
		}
	}
	if len(problems) == 0 {
		return []Problem{{Message: "the schema breaks the rules of " + draft.URL()}}
	}
	return problems
}
