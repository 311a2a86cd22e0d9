package catalog

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"weak"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Workflow is a definition that can be started by name. It is immutable.
type Workflow struct {
	// Name, Version and Description are the document's; the description may be "".
	Name, Version, Description string
	// Ref identifies this definition: the name; name@version if several have the name; the hash if several have both, or if the name is
	// very long.
	Ref string
	// File is the file's name in the folder.
	File string
	// Hash is the definition hash.
	Hash string
	// InputSchema is the start node's input_schema in plain JSON; without one the required part of state_schema, since the input is the first
	// state; nil without both. Shared: do not change it.
	InputSchema map[string]any
	// Warnings holds the warnings about the definition.
	Warnings problem.Findings
	// Broken is the error of the current file, if this is its last good version; nil otherwise.
	Broken *Broken

	source *source
}

// source is the text of a file. It takes a fraction of the memory of its document, which is kept only while it is in use.
type source struct {
	text     []byte
	mu       sync.Mutex
	document weak.Pointer[definition.Document]
}

// Broken is a file without a valid definition.
type Broken struct {
	// File is the file's name in the folder.
	File string
	// Name is the document's name if it can be read, else the file's name without its suffix.
	Name string
	// Err is the error, with the places in its Findings.
	Err *problem.Error
	// Kept is the last good version, which stays in use; nil without one.
	Kept *Workflow
}

// Readable reports whether the file was read: the error is in its text.
func (b *Broken) Readable() bool { return len(b.Err.Findings) > 0 }

// First returns the first finding.
func (b *Broken) First() problem.Finding {
	for _, f := range b.Err.Findings {
		if f.Severity == problem.SeverityError {
			return f
		}
	}
	return problem.Finding{Code: b.Err.Code, Severity: problem.SeverityError, At: b.Err.At, Message: b.Err.Error(), Hint: b.Err.Hint}
}

// Text returns the error in one line, with its place.
func (b *Broken) Text() string {
	text, at := b.Err.Error(), b.First().At
	if place := problem.Format("line %d, column %d: ", at.Line, at.Column); at.Line > 0 && !strings.HasPrefix(text, place) {
		return place + text
	}
	return text
}

func newWorkflow(file string, prog *definition.Program, findings problem.Findings, text []byte) *Workflow {
	w := &Workflow{
		Name: prog.Name, Version: prog.Version, Description: strings.TrimSpace(head(prog.Document).text("description")),
		File: file, Hash: prog.Hash, Warnings: findings, source: &source{text: text},
	}
	for _, n := range prog.Nodes {
		if n.Start != nil {
			w.InputSchema, _ = n.Config["input_schema"].(map[string]any)
		}
	}
	if w.InputSchema == nil {
		w.InputSchema = requiredState(prog.Document)
	}
	return w
}

// requiredState returns the schema of the fields that the state must have from the start, nil without any.
func requiredState(d *definition.Document) map[string]any {
	root, _ := d.Value().(map[string]any)
	schema, _ := root["state_schema"].(map[string]any)
	known, _ := schema["properties"].(map[string]any)
	names, _ := schema["required"].([]any)
	properties := map[string]any{}
	for _, v := range names {
		name, _ := v.(string)
		member, _ := known[name].(map[string]any)
		if member = maps.Clone(member); member == nil || refers(member) {
			member = map[string]any{}
		}
		delete(member, "reducer")
		properties[name] = member
	}
	if len(properties) == 0 {
		return nil
	}
	return map[string]any{"type": "object", "properties": properties, "required": names}
}

// refers reports whether a schema has references, which are invalid outside of its document.
func refers(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if name == "$ref" || name == "$dynamicRef" || refers(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, refers)
	}
	return false
}

// Document returns the definition. It is parsed again only if the document returned last is no longer in use.
func (w *Workflow) Document() *definition.Document {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if doc := s.document.Value(); doc != nil {
		return doc
	}
	parse, _ := parserOf(w.File)
	doc, err := parse(s.text)
	if err != nil {
		panic(err) // the same text has been parsed
	}
	s.document = weak.Make(doc)
	return doc
}

// object is a JSON object of a document.
type object map[string]any

// head is the object "document" of a definition, nil without one.
func head(d *definition.Document) object {
	root, _ := d.Value().(map[string]any)
	about, _ := root["document"].(map[string]any)
	return about
}

// text is the value of a string field, "" for another type.
func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}
