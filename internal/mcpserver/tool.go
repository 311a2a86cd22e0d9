package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/config/envname"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// tool is one tool of the protocol.
type tool struct {
	name, title, description string
	annotations              mcp.ToolAnnotations
	arguments                []property
	answer                   []property
	// inner maps names that are valid only inside an argument to that argument: models omit the level.
	inner map[string]string
	// invalid is the protocol's code for arguments that do not belong to the run.
	invalid problem.Code
	// begins is set if each call starts a run.
	begins bool
	// workflow, unless nil, is the workflow that the tool runs: a request's arguments are its input.
	workflow *exposed
	call     func(context.Context, *server, *arguments) (*answer, error)
}

// allTools returns the tools in the protocol's order. Those of registered workflows come and go; see registered.
func allTools(o Options) []*tool {
	tools := []*tool{
		startTool(o.DefaultMode), statusTool(), resumeTool(o.Elicit), submitActivityTool(), signalTool(), cancelTool(), listTool(),
		guideTool(), validateTool(), historyTool(), forkTool(),
	}
	if o.Catalog != nil {
		tools = append(tools, catalogTool(o))
	}
	return tools
}

func (t *tool) names() []string {
	names := make([]string, len(t.arguments))
	for i, p := range t.arguments {
		names[i] = p.Name
	}
	return names
}

// sizeHint is the field of a tool's _meta with the number of characters of an answer that Claude Code shows its model;
// it accepts at most maxSizeHint and writes larger answers to a file.
const (
	sizeHint    = "anthropic/maxResultSizeChars"
	maxSizeHint = 500_000
)

// listed is the tool as tools/list shows it.
func (t *tool) listed() *mcp.Tool {
	if t.workflow != nil {
		return t.workflow.listed(t)
	}
	var meta mcp.Meta
	if slices.Contains(t.names(), answerBytesArgument.Name) { // answers are as large as the caller wants them
		meta = mcp.Meta{sizeHint: maxSizeHint}
	}
	return &mcp.Tool{
		Meta: meta,
		Name: t.name, Title: t.title, Description: t.description, Annotations: &t.annotations,
		InputSchema:  json.RawMessage(object(t.arguments, true).Append(nil)),
		OutputSchema: json.RawMessage(answerSchema(t.answer...).Append(nil)),
	}
}

// answerBytesArgument is the argument of tools with an answer that may be large.
var answerBytesArgument = optional("answer_bytes", describe("integer", "Largest answer (default 8192).",
	"minimum", float64(MinAnswerBytes)))

// waiting completes the wait of a call.
func (a *arguments) waiting(w graph.Wait) graph.Wait {
	w.Progress, w.End, w.Applied = a.progress, a.hangup.driving, a.applied
	return w
}

// answerBytes returns the size limit of the answer; see Options.AnswerBytes.
func (a *arguments) answerBytes() int {
	return cmp.Or(a.room, a.usual)
}

// ran returns the answer of a call that drove a run. suffix ends the headline (spec: mcp-tools, 2.1). about holds warnings about the
// definition, at start.
func (s *server) ran(ctx context.Context, a *arguments, run *view.Run, err error, suffix string, about warnings) (*answer, error) {
	if err != nil {
		return nil, err
	}
	called := run
	run, question, err := s.ask(ctx, a, run)
	switch {
	case err != nil || question != nil:
		return question, err
	case run.Status == machine.Failed:
		return nil, &endedInFailure{run: run, warnings: about, bytes: a.answerBytes()}
	}
	partial := slices.DeleteFunc(slices.Clone(run.Warnings), func(w view.Warning) bool {
		return w.Code != problem.AgentPartialAnswer || slices.Contains(called.Warnings, w)
	})
	run.Repeated, run.Warnings = called.Repeated, append(called.Warnings, partial...) // of the call, not of an answer that a person gave meanwhile
	headline := fmt.Sprintf("Execution %s %s%s.", shownID(run.ExecutionID), run.Status, suffix)
	if run.Repeated {
		headline += " Repeated call: nothing changed."
	}
	list := about.encode()
	for _, w := range run.Warnings {
		if w.Limit == 0 { // workflow_status warns of limits
			headline += " " + warningText(w)
			list = append(list, runjson.Warning(w, envname.Options))
		}
	}
	headline += about.headline() + a.asking.said(run)
	seen := s.view(ctx, a, run)
	if second := a.asking.second; second != "" {
		list = append(list, runjson.Warning(view.Warning{Code: problem.AnsweredDifferently, Message: second}, envname.Options))
	}
	content := runjson.Driven(run)
	if len(list) > 0 {
		content.Put("warnings", list)
	}
	return s.answered(headline, content, seen, a), nil
}

// shownID returns a run's id for a line of text: quoted if it would break the line or be misread.
func shownID(id string) string {
	if quoted := strconv.Quote(id); quoted != `"`+id+`"` || strings.TrimSpace(id) != id {
		return quoted
	}
	return id
}

// count returns a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Sets of tools that have a name.
const (
	AllTools  = "all"
	CoreTools = "core" // those of the protocol
)

// coreTools is how many of allTools are the protocol's, which come first.
const coreTools = 7

// toolset holds the tools that a server offers.
type toolset []*tool

// Tools selects the tools that a server offers; the zero value means all.
type Tools struct{ names []string }

// ParseTools reads AllTools, CoreTools, or names with commas between them. Anything else is a USAGE_ERROR.
func ParseTools(text string) (Tools, error) {
	all := toolset(allTools(Options{Catalog: new(catalog.Catalog)}))
	switch text {
	case AllTools:
		return Tools{}, nil
	case CoreTools:
		return Tools{all[:coreTools].names()}, nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
		if !all.has(names[i]) {
			return Tools{}, problem.New(problem.UsageError, "unknown tool %q", names[i]).
				WithHint("Write all, core, or names with commas between them: %s.", strings.Join(all.names(), ", "))
		}
	}
	if !slices.Contains(names, "workflow_status") {
		return Tools{}, problem.New(problem.UsageError, "the list of tools must include workflow_status").
			WithHint("Add workflow_status: the answers of the other tools refer to it.")
	}
	return Tools{names}, nil
}

// of returns the selected tools out of all.
func (t Tools) of(all []*tool) toolset {
	return slices.DeleteFunc(all, func(one *tool) bool { return !t.Offers(one.name) })
}

// Offers reports whether a tool is selected.
func (t Tools) Offers(name string) bool { return t.names == nil || slices.Contains(t.names, name) }

func (s toolset) has(name string) bool {
	return slices.ContainsFunc(s, func(t *tool) bool { return t.name == name })
}

func (s toolset) names() []string {
	names := make([]string, len(s))
	for i, t := range s {
		names[i] = t.name
	}
	return names
}

// lines returns the texts of the offered tools, one a line.
func (s toolset) lines(texts ...sentence) string {
	var said strings.Builder
	for _, t := range texts {
		if t.about == "" || s.has(t.about) {
			said.WriteString("\n" + t.text)
		}
	}
	return said.String()
}

// sentences joins the texts whose tools are offered.
func (s toolset) sentences(texts ...sentence) string {
	var said []string
	for _, t := range texts {
		if t.about == "" || s.has(t.about) {
			said = append(said, t.text)
		}
	}
	return strings.Join(said, " ")
}

// sentence is a text for servers that offer the tool about; a text about "" is for all.
type sentence struct{ about, text string }

// translate replaces the library's terms in a hint by the names of these tools.
func (s toolset) translate(hint string) string {
	if !s.has("workflow_list") {
		hint = problem.Glossary{"Runner.List": "the operator's workflows-engine list"}.Translate(hint)
	}
	return words.Translate(hint)
}
