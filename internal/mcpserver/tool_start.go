package mcpserver

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/calls"
)

func startTool(defaultMode machine.Mode) *tool {
	return &tool{
		name:  "workflow_start",
		title: "Start workflow execution",
		description: "Starts a run of a workflow definition and returns once it waits or ends: pending has its waits, " +
			"next the call to make.",
		annotations: mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
		arguments:   append(calls.StartArguments(defaultMode), answerBytesArgument),
		answer:      calls.RunAnswer(calls.WarningsProperty),
		invalid:     problem.ValidationError,
		begins:      true,
		call: func(ctx context.Context, s *server, a *arguments) (*answer, error) {
			req := s.startRequest(a)
			a.Started(s.ReadDefinition, &req)
			return s.started(ctx, a, req)
		},
	}
}

// startRequest reads the arguments of a start, except those that select the definition.
func (s *server) startRequest(a *arguments) graph.StartRequest {
	req := a.Start()
	req.Mode, req.Wait = cmp.Or(req.Mode, s.opts.DefaultMode), a.waiting(req.Wait)
	return req
}

// started starts a run, provided that the arguments are right.
func (s *server) started(ctx context.Context, a *arguments, req graph.StartRequest) (*answer, error) {
	if err := a.Problem(); err != nil {
		return nil, err
	}
	run, err := s.drive(ctx, a, func() (*view.Run, error) { return s.Start(ctx, req) })
	if run != nil && a.Mode() == "" { // the caller did not choose a mode
		run.Warnings = slices.DeleteFunc(run.Warnings, func(w view.Warning) bool { return w.Code == problem.ModeKept })
	}
	if run != nil && req.DefinitionRef != "" {
		run.Warnings = append(run.Warnings, s.brokenFile(req.DefinitionRef, run.DefinitionHash)...)
	}
	if err != nil {
		return nil, err
	}
	return s.ran(ctx, a, run, nil, "", s.warningsOf(ctx, req.Definition))
}

// maxWarnings is how many warnings an answer lists.
const maxWarnings = 10

// warnings are findings about a definition that is accepted.
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

// warningsOf returns the warnings about the definition in a start's arguments, which may be nil.
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

// encode returns the first maxWarnings warnings.
func (w warnings) encode() []members {
	list := make([]members, 0, maxWarnings)
	for _, f := range w[:min(len(w), maxWarnings)] {
		m := members{{"code", string(f.Code)}, {"pointer", f.At.Pointer}, {"message", f.Message}}
		m.Text("hint", f.Hint)
		list = append(list, m)
	}
	return list
}

// headline returns the sentence about the warnings for an answer's headline; "" without warnings.
func (w warnings) headline() string {
	if len(w) == 0 {
		return ""
	}
	return " The definition has " + count(len(w), "warning") + "."
}

// warningText returns the headline's sentence about a warning.
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
