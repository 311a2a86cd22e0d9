// Package document reads the files that operators write: JSON, checked by the schema that the project publishes for the file, then
// decoded into a struct.
//
//	var list struct { Targets map[string]Target `json:"targets"` }
//	d := webhooks.Read(text, &list)
//	if d.Decoded() { … d.Fail(document.At("targets", name, "url"), "format", "invalid address") }
//	if !d.Valid() { return d.Findings() }
//
// One mistake gives one finding, with its line, its column, its JSON pointer and, if a name is misspelt, the name that was probably meant.
// A schema with a text in errorMessage, which editors show too, replaces the message of its keywords; one in errorHint is their hint.
package document

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Kind is a kind of file. The codes and the bound must be set; the other fields are optional.
type Kind struct {
	// Schema returns the JSON Schema of the file.
	Schema func() []byte
	// Code is the code of a finding, Syntax the code for a text that is not JSON; Code if empty.
	Code, Syntax problem.Code
	// MaxBytes bounds the text.
	MaxBytes int

	once   sync.Once
	schema *jsonschema.Schema
	raw    *jsonvalue.Node
}

// compile compiles the schema on first use. It panics if the schema, which is part of the program, does not compile.
func (k *Kind) compile() {
	k.once.Do(func() {
		node, faults := jsonvalue.Parse(k.Schema(), 0, 0)
		if len(faults) > 0 {
			panic(faults[0])
		}
		schema, err := jsonschema.Compile(node.Value())
		if err != nil {
			panic(err)
		}
		k.raw, k.schema = node, schema
	})
}

// Document is a text with its findings.
type Document struct {
	kind     *Kind
	root     *jsonvalue.Node
	findings problem.Findings
	decoded  bool
	// broken are the places of what breaks the schema.
	broken []string
}

// Read parses a text, checks it by the schema of its kind and decodes it into the value that into points at, even if it breaks the schema:
// values of a wrong type are left out, and of the fields of one name the last one counts. So one call lists all mistakes.
func (k *Kind) Read(text []byte, into any) *Document {
	k.compile()
	d := &Document{kind: k}
	node, faults := jsonvalue.Parse(text, 0, k.MaxBytes)
	d.root = node
	for _, fault := range faults {
		code := k.Code
		if k.Syntax != "" && (fault.Kind == "syntax" || fault.Kind == "trailing") {
			code = k.Syntax
		}
		d.findings = append(d.findings, problem.Finding{
			Code: code, Severity: problem.SeverityError, Message: fault.Message, Keyword: "parse",
			At: problem.Place{Pointer: fault.Pointer, Line: fault.Line, Column: fault.Column},
		})
	}
	if slices.ContainsFunc(faults, func(f jsonvalue.SyntaxError) bool { return f.Kind != "duplicate" }) {
		return d
	}
	value := node.Value()
	violations := k.schema.Validate(value)
	d.broken = d.report(violations)
	err := jsonvalue.IntoPlain(withoutWrongTypes(value, violations), into)
	if d.decoded = err == nil; !d.decoded && d.Valid() {
		d.Fail("", "type", "cannot be read: %v", err)
	}
	return d
}

// withoutWrongTypes returns a value with null, which changes no variable of Go, in place of each value of a wrong type.
func withoutWrongTypes(value any, violations []jsonschema.Violation) any {
	wrong := map[string]bool{}
	for _, v := range violations {
		if v.Keyword == "type" || v.Keyword == "enum" || v.Keyword == "const" {
			wrong[v.InstancePath] = true
		}
	}
	if len(wrong) == 0 {
		return value
	}
	var without func(at string, value any) any
	without = func(at string, value any) any {
		if wrong[at] {
			return nil
		}
		switch v := value.(type) {
		case map[string]any:
			fields := make(map[string]any, len(v))
			for name, field := range v {
				fields[name] = without(at+At(name), field)
			}
			return fields
		case []any:
			elements := make([]any, len(v))
			for i, element := range v {
				elements[i] = without(at+At(i), element)
			}
			return elements
		}
		return value
	}
	return without("", value)
}

// Decoded reports whether the value has been decoded. The caller then checks more than the schema does; a mistake at or in a value that
// breaks the schema is not reported again. A check that needs other values as well, or those in the value, asks Intact about them.
func (d *Document) Decoded() bool { return d.decoded }

// Intact reports whether the schema has no finding at, in or around the value with a pointer. A value that is not intact may be left
// out.
func (d *Document) Intact(pointer string) bool {
	return !slices.ContainsFunc(d.broken, func(broken string) bool { return within(broken, pointer) || within(pointer, broken) })
}

// Valid reports whether there is no error so far.
func (d *Document) Valid() bool { return !d.findings.HasErrors() }

// Findings returns the findings in the order of the text.
func (d *Document) Findings() problem.Findings {
	d.findings.Sort()
	return d.findings
}

// At is the JSON pointer that leads through fields, by their names, and elements, by their indexes.
func At(path ...any) string {
	var b strings.Builder
	for _, token := range path {
		b.WriteString("/" + jsonvalue.EscapePointer(fmt.Sprint(token)))
	}
	return b.String()
}

// Fail reports an error at the value with a pointer. The keyword is JSON Schema's, as in problem.Finding. The finding may be changed
// until the next one is reported.
func (d *Document) Fail(pointer, keyword, format string, args ...any) *problem.Finding {
	at := problem.Place{Pointer: pointer, Line: 1, Column: 1}
	if node := d.root.Lookup(pointer); node != nil {
		at.Line, at.Column = node.Line, node.Column
	}
	return d.add(problem.Finding{Keyword: keyword, Message: problem.Format(format, args...), At: at})
}

// FailName is Fail at the name of the field with a pointer.
func (d *Document) FailName(pointer, keyword, format string, args ...any) *problem.Finding {
	f := d.Fail(pointer, keyword, format, args...)
	cut := strings.LastIndexByte(pointer, '/')
	name := jsonvalue.UnescapePointer(pointer[cut+1:])
	for _, m := range d.fields(pointer[:cut]) {
		if m.Name == name {
			f.At.Line, f.At.Column = m.Line, m.Column
		}
	}
	return f
}

// FailWith reports that a value cannot be used, with the hint of the reason.
func (d *Document) FailWith(pointer string, reason error) *problem.Finding {
	f := d.Fail(pointer, "profile", "%v", reason)
	if p, ok := problem.As(reason); ok {
		f.Hint = p.Hint
	}
	return f
}

// Names returns the names of the fields of the object with a pointer, each once, in the order of the text.
func (d *Document) Names(pointer string) []string {
	var names []string
	seen := map[string]bool{}
	for _, m := range d.fields(pointer) {
		if !seen[m.Name] {
			names = append(names, m.Name)
		}
		seen[m.Name] = true
	}
	return names
}

// Undeclared returns the names of the fields of an object that the schema at a pointer into the schema of the file does not declare, and
// those that it declares.
func (d *Document) Undeclared(pointer, schema string) (names, declared []string) {
	declared = propertiesOf(d.kind.raw.Lookup(schema))
	names = slices.DeleteFunc(d.Names(pointer), func(name string) bool { return slices.Contains(declared, name) })
	return names, declared
}

// Has reports whether there is a value with a pointer.
func (d *Document) Has(pointer string) bool { return d.root.Lookup(pointer) != nil }

func (d *Document) fields(pointer string) []jsonvalue.Member {
	if node := d.root.Lookup(pointer); node != nil {
		return node.Members
	}
	return nil
}

func (d *Document) add(f problem.Finding) *problem.Finding {
	f.Code, f.Severity = d.kind.Code, problem.SeverityError
	if slices.ContainsFunc(d.broken, func(broken string) bool { return within(f.At.Pointer, broken) }) {
		return &f
	}
	d.findings = append(d.findings, f)
	return &d.findings[len(d.findings)-1]
}
