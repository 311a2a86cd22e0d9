package conformance

import (
	"context"
	"io/fs"
	"path"
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// suffix is the suffix of vector files.
const suffix = ".vector.json"

// vector holds the common fields of all kinds of vectors.
type vector struct {
	id, kind, path, description string
	// definition is the path of the definition, relative to the root.
	definition string
	profiles   []string
	check      check
}

// check is the kind-specific part of a vector: schemaCheck, replayCheck, parityCheck or signingCheck.
type check interface {
	run(ctx context.Context, s *trial) problems
}

// trial is the input of a check: the vector, its definition and the options.
type trial struct {
	*vector
	root       fs.FS
	options    *Options
	definition *definition.Document
	// refused holds the errors in the definition's text. Only schema vectors receive it.
	refused problem.Findings
}

// readVector reads a vector file. It returns the readable part, and the file's problems.
func readVector(root fs.FS, name string) (*vector, problems) {
	v := &vector{path: name}
	var ps problems
	text, err := fs.ReadFile(root, name)
	if err != nil {
		ps.add("", "cannot be read: %v", err)
		return v, ps
	}
	node, bad := jsonvalue.Parse(text, 0, 0)
	for _, b := range bad {
		ps.add(b.Pointer, "line %d, column %d: %s", b.Line, b.Column, b.Message)
	}
	if node == nil {
		return v, ps
	}
	var report jsonobject.Report
	v.read(report.Node(node))
	for _, f := range report.Findings {
		ps.add(f.At.Pointer, "%s", jsonobject.Message(f))
	}
	return v, ps
}

func (v *vector) read(o *jsonobject.Object) {
	v.id = o.Require("id").NonBlank()
	v.description = o.Get("description").Text()
	at := o.Require("definition")
	if v.definition = at.NonBlank(); v.definition != "" && !fs.ValidPath(path.Clean(v.definition)) {
		at.Fail("format", "%q is not a path below the root", v.definition)
	}
	v.profiles = o.Get("profiles").Texts()
	v.kind = o.Require("kind").Choice("schema", "replay", "parity", "signing")
	switch v.kind {
	case "schema":
		v.check = readSchema(o)
	case "replay":
		v.check = readReplay(o)
	case "parity":
		v.check = readParity(o)
	case "signing":
		v.check = readSigning(o)
	default:
		return // the allowed fields depend on the kind
	}
	o.Close()
}

// selected reports whether the vector belongs to a profile; a vector without profiles belongs to all.
func (v *vector) selected(profile string) bool {
	if profile == "" || v.profiles == nil {
		return true
	}
	return slices.Contains(v.profiles, profile)
}

// runVector runs a readable vector.
func runVector(ctx context.Context, v *vector, root fs.FS, o *Options) problems {
	var ps problems
	text, err := fs.ReadFile(root, path.Clean(v.definition))
	if err != nil {
		ps.add("/definition", "cannot be read: %v", err)
		return ps
	}
	s := &trial{vector: v, root: root, options: o}
	if s.definition, err = definition.Parse(text); err != nil {
		refusal, known := problem.As(err)
		if _, judges := v.check.(schemaCheck); !judges || !known {
			ps.add("/definition", "%s cannot be read: %v", v.definition, err)
			return ps
		}
		s.refused = refusal.Findings
	}
	return v.check.run(ctx, s)
}
