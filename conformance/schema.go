package conformance

import (
	"context"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonobject"
)

// schemaCheck checks whether a definition is accepted (spec: execution, 13.2).
type schemaCheck struct {
	ok bool
	// signals are optional: if set, one of them must match one of the findings.
	signals []signal
}

// signal describes a finding by the texts "instancePath", "keyword" and "messageIncludes"; absent fields match every finding.
type signal map[string]any

func readSchema(o *jsonobject.Object) check {
	expect := o.Require("expect").Object()
	defer expect.Close()
	c := schemaCheck{}
	c.ok = expect.Require("ok").Bool()
	diagnostics := expect.Get("diagnostics")
	if c.ok && len(diagnostics.Elements()) > 0 {
		diagnostics.Fail("profile", "an accepted definition has no errors to look for")
	}
	for _, v := range diagnostics.Elements() {
		d := v.Object()
		s := signal{}
		for _, name := range []string{"instancePath", "keyword", "messageIncludes"} {
			if text := d.Get(name); text.Present() {
				s[name] = text.Text()
			}
		}
		d.Close()
		c.signals = append(c.signals, s)
	}
	return c
}

func (c schemaCheck) run(_ context.Context, s *trial) problems {
	var ps problems
	accepted, findings := false, s.refused
	if s.definition != nil {
		var program *definition.Program
		program, findings = definition.Compile(s.definition, definition.Options{})
		accepted = program != nil
	}
	if accepted != c.ok {
		ps.differ("/expect/ok", "the verdict differs: "+findingsText(findings), c.ok, accepted)
		return ps
	}
	if len(c.signals) == 0 {
		return ps
	}
	for _, f := range findings {
		for _, signal := range c.signals {
			if f.Severity == problem.SeverityError && signal.fits(f) {
				return ps
			}
		}
	}
	ps.differ("/expect/diagnostics", "none of the signals fits one of the errors: "+findingsText(findings), c.signalsValue(), nil)
	return ps
}

func (s signal) fits(f problem.Finding) bool {
	part, _ := s["messageIncludes"].(string) // every text includes ""
	return (s["instancePath"] == nil || s["instancePath"] == f.At.Pointer) &&
		(s["keyword"] == nil || s["keyword"] == f.Keyword) &&
		(includesFold(f.Message, part) || includesFold(string(f.Code), part))
}

func (c schemaCheck) signalsValue() []any {
	list := make([]any, len(c.signals))
	for i, s := range c.signals {
		list[i] = map[string]any(s)
	}
	return list
}

// findingsText returns all errors in one line.
func findingsText(findings problem.Findings) string {
	var texts []string
	for _, f := range findings {
		if f.Severity == problem.SeverityError {
			texts = append(texts, pointerOrRoot(f.At.Pointer)+" "+f.Keyword+": "+f.Message)
		}
	}
	if len(texts) == 0 {
		return "no errors"
	}
	return strings.Join(texts, "; ")
}

func pointerOrRoot(pointer string) string {
	if pointer == "" {
		return "/"
	}
	return pointer
}

// includesFold is strings.Contains, ignoring case.
func includesFold(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}
