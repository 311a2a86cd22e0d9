package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
)

// maxWarnings is how many warnings an answer lists.
const maxWarnings = 10

// warnings is what is doubtful about a definition that is accepted.
type warnings problem.Findings

// subworkflows finds definitions among the registered workflows.
func (s *server) subworkflows(ctx context.Context) func(ref, pin string) *definition.Document {
	if s.opts.Catalog == nil {
		return nil
	}
	return func(ref, pin string) *definition.Document {
		doc, _ := s.opts.Catalog.ResolveWorkflow(ctx, ref, pin)
		return doc
	}
}

// warningsOf returns the warnings about a definition that the caller of a start has sent; nil has none.
func (s *server) warningsOf(ctx context.Context, doc *definition.Document) warnings {
	if doc == nil {
		return nil
	}
	prog, err := s.Program(doc)
	if err != nil {
		return nil
	}
	return warnings(lint.Check(prog, lint.Options{Subworkflow: s.subworkflows(ctx)}))
}

// encode returns the first of them.
func (w warnings) encode() []members {
	list := make([]members, 0, maxWarnings)
	for _, f := range w[:min(len(w), maxWarnings)] {
		m := members{{"code", string(f.Code)}, {"pointer", f.At.Pointer}, {"message", f.Message}}
		m.Text("hint", f.Hint)
		list = append(list, m)
	}
	return list
}

// headline is a sentence for the headline of an answer, "" if there are none.
func (w warnings) headline() string {
	if len(w) == 0 {
		return ""
	}
	return " The definition has " + count(len(w), "warning") + "."
}

// warningText says in a headline what became of a call other than it asked for, or of a run that can only fail.
func warningText(w view.Warning) string {
	text := strings.ToUpper(w.Message[:1]) + w.Message[1:] + "."
	if w.Code == problem.RunWillFail {
		text += " " + w.Hint
	}
	return text
}

// willFail reports whether a run can only fail.
func (t runView) willFail() bool {
	return slices.ContainsFunc(t.Warnings, func(w view.Warning) bool { return w.Code == problem.RunWillFail })
}

// addWarnings adds warnings to the answer of a failed run: they often name the cause.
func (f *failure) addWarnings(w warnings) {
	if len(w) == 0 {
		return
	}
	f.details.Put("warnings", w.encode())
	for _, finding := range w[:min(len(w), maxWarnings)] {
		f.line("warning: %s", findingText(finding))
	}
}
