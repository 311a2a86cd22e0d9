package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/calls"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

func catalogTool(o Options) *tool {
	description := "Lists the workflows registered on this server and the input of each."
	if o.Tools.Offers("workflow_start") {
		description += " Look here before you write a definition. To start one: workflow_start with its definition_ref, and input."
	}
	return &tool{
		name:        "workflow_catalog",
		title:       "List registered workflows",
		description: description,
		annotations: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
		arguments: []property{
			optional("query", aText("Only workflows with these words in name or description, best first.")),
			optional("definition_ref", aText("Only this one, in full.")),
			optional("limit", describe("integer", "Per page (default 50).", "minimum", 1.0, "maximum", 100.0)),
			optional("cursor", aText("next_cursor of the previous page.")),
			answerBytesArgument,
		},
		answer:  catalogAnswer,
		invalid: problem.ValidationError,
		call: func(_ context.Context, s *server, a *arguments) (*answer, error) {
			return s.catalogPage(a, "workflow_start")
		},
	}
}

var catalogAnswer = []property{
	required("workflows", calls.ListOf(object([]property{
		required("definition_ref", str("Starts it.")),
		required("name", str("Name.")),
		required("version", str("Version.")),
		optional("description", str("Purpose.")),
		required("input_schema", obj("Of its input.")),
		optional("input_schema_cut", describe("boolean", "Has more rules: ask with definition_ref.")),
		optional("tool", str("Runs it, too.")),
		optional("warnings", describe("array", "Doubts about the definition.")),
		optional("broken", str("Why the file is invalid now; this is its last good version.")),
	}, false), "One page.")),
	optional("broken", describe("array", "Files that cannot be used: file, message, errors. Tell the user.")),
	optional("folder_error", str("Why the folder cannot be read.")),
	optional("next_cursor", str("Pass it as cursor for the next page; absent on the last.")),
}

// findTool and runTool replace the tools of too many workflows.
func findTool(count int) *tool {
	t := catalogTool(Options{})
	t.name, t.title = "find_workflow", "Find a registered workflow"
	t.description = fmt.Sprintf("Finds workflows registered on this server (%d) by words of the task, best first, with the input of each. "+
		"Look here before you write a definition, then call run_workflow.", count)
	t.arguments = []property{
		required("query", aText("The task in a few words.")), optional("cursor", aText("next_cursor of the previous page.")), answerBytesArgument,
	}
	t.call = func(_ context.Context, s *server, a *arguments) (*answer, error) {
		a.Require("query")
		return s.catalogPage(a, "run_workflow")
	}
	return t
}

func runTool(o Options) *tool {
	t := starter(o)
	t.name, t.title = "run_workflow", "Run a registered workflow"
	t.description = "Runs a workflow that find_workflow has found, until it waits or ends: pending has its waits, next the call to make."
	t.arguments = append([]property{required("definition_ref", aText("As find_workflow has it."))}, t.arguments...)
	t.call = func(ctx context.Context, s *server, a *arguments) (*answer, error) {
		a.Require("definition_ref")
		return s.runRegistered(ctx, a, a.Get("definition_ref").NonEmpty())
	}
	return t
}

const (
	// maxCatalogSchema and maxCatalogText are how many bytes of an input schema and of a description a row of the list has.
	maxCatalogSchema, maxCatalogText = 1 << 10, 300
	// maxBroken is how many broken files an answer lists, and maxBrokenErrors how many errors of each.
	maxBroken, maxBrokenErrors = 10, 3
)

// catalogPage answers with a page of registered workflows. start is the tool that starts one.
func (s *server) catalogPage(a *arguments, start string) (*answer, error) {
	limit, set := a.Get("limit").Whole(1, 100)
	if !set {
		limit = 50
	}
	query, ref, cursor := a.Get("query").NonEmpty(), a.Get("definition_ref").NonEmpty(), a.Get("cursor").NonEmpty()
	from, err := strconv.Atoi(cursor)
	if cursor != "" && (err != nil || from < 1) {
		a.Get("cursor").Fail("format", "invalid cursor %q", cursor).Hint = "pass next_cursor of the previous page, or leave it out for the first page"
	}
	if query != "" && ref != "" {
		a.Get("query").Fail("oneOf", "expected one of query and definition_ref, found both")
	}
	p := catalogRows{start: s.tool(start) != nil, by: start, bytes: a.answerBytes(), tools: s.toolsByRef()}
	if err := a.Problem(); err != nil {
		return nil, err
	}
	now := s.opts.Catalog.Look()
	if ref != "" {
		w, err := now.Find(ref)
		if err != nil {
			return nil, err
		}
		return p.answer([]*catalog.Workflow{w}, 0, 1, true), nil
	}
	if from == 0 && (query == "" || !s.tools.has("workflow_catalog")) {
		p.unusable(now)
	}
	return p.answer(now.Search(query), from, int(limit), false), nil
}

// toolsByRef are the names of the tools that run registered workflows.
func (s *server) toolsByRef() map[string]string {
	names := map[string]string{}
	for _, t := range s.registered.list() {
		if t.workflow != nil {
			names[t.workflow.ref] = t.name
		}
	}
	return names
}

// catalogRows makes an answer in a number of bytes.
type catalogRows struct {
	// by is the tool that starts a workflow; start is set if the server offers it.
	by      string
	start   bool
	bytes   int
	tools   map[string]string
	content members // errors of the folder
	lines   []string
}

// unusable adds the errors of the folder.
func (p *catalogRows) unusable(now *catalog.Snapshot) {
	if now.Err != nil {
		p.content.Put("folder_error", now.Err.Error())
		p.lines = append(p.lines, withHint("The workflow folder: "+now.Err.Error(), now.Err.Hint))
	}
	var broken []members
	for _, b := range now.Broken[:min(len(now.Broken), maxBroken)] {
		m := members{{"file", b.File}, {"message", problem.Excerpt(b.Text(), maxListedError)}}
		var errors []members
		for _, f := range b.Err.Findings {
			if f.Severity == problem.SeverityError && len(errors) < maxBrokenErrors {
				f.Message = problem.Excerpt(f.Message, maxListedError)
				errors = append(errors, encodeFinding(f))
			}
		}
		if errors != nil {
			m.Put("errors", errors)
		}
		line := b.File + " cannot be used: " + problem.Excerpt(b.Text(), maxListedError)
		if b.Kept != nil {
			m.Put("kept_version", b.Kept.Version)
			line += ". Its last good version, " + b.Kept.Version + ", is used"
		}
		m.Text("hint", b.First().Hint)
		broken, p.lines = append(broken, m), append(p.lines, line)
	}
	if broken != nil {
		p.content.Put("broken", broken)
		p.content.Put("broken_total", float64(len(now.Broken)))
	}
}

// answer shows the workflows from one on, as many as there is room for, but at least one. One alone is shown in full.
func (p *catalogRows) answer(found []*catalog.Workflow, from, limit int, full bool) *answer {
	room := p.bytes - reserved - len(p.content.Append(nil))
	rows, lines := []members{}, []string{}
	next := min(from, len(found))
	for ; next < len(found) && len(rows) < limit; next++ {
		row := p.row(found[next], full, room)
		if room -= len(row.Append(nil)) + len(","); room < 0 && len(rows) > 0 && p.bytes != FullAnswers {
			break
		}
		rows = append(rows, row)
		line := fmt.Sprintf("%s (%s)", found[next].Ref, problem.Clip(found[next].Version, problem.MaxQuoted))
		if !strings.HasPrefix(found[next].Ref, found[next].Name) {
			line = problem.Clip(found[next].Name, problem.MaxQuoted) + " is " + line // a hash, where several have this name and version
		}
		if found[next].Description != "" {
			line += ": " + problem.Clip(found[next].Description, maxCatalogText)
		}
		if full {
			line += fmt.Sprintf("\nInput: %s", row[indexOf(row, "input_schema")].Value.(jsonvalue.Raw))
		}
		lines = append(lines, line)
	}
	content := append(members{{"workflows", rows}}, p.content...)
	if next < len(found) {
		content.Put("next_cursor", strconv.Itoa(next))
	}
	if len(rows) > 0 && p.start {
		lines = append(lines, fmt.Sprintf("Next: %s with definition_ref and input.", p.by))
	}
	headline := "Listed " + count(len(rows), "registered workflow") + "."
	if more := len(found) - len(rows); more > 0 {
		headline = fmt.Sprintf("Listed %d of %s.", len(rows), count(len(found), "registered workflow"))
	}
	return &answer{headline: headline, lines: append(lines, p.lines...), content: content}
}

// row is a workflow of the list.
func (p *catalogRows) row(w *catalog.Workflow, full bool, room int) members {
	text, schemaBytes := maxCatalogText, maxCatalogSchema
	if full {
		text = max(text, room/4)
		schemaBytes = max(room/2, maxCatalogSchema)
	}
	if p.bytes == FullAnswers {
		text, schemaBytes = len(w.Description), jsonvalue.Size(w.InputSchema, 0)
	}
	row := members{{"definition_ref", w.Ref}, {"name", problem.Clip(w.Name, problem.MaxQuoted)}, {"version", problem.Clip(w.Version, problem.MaxQuoted)}}
	row.Text("description", problem.Clip(w.Description, text))
	shown, whole := w.InputSchema, w.InputSchema != nil && jsonvalue.Size(w.InputSchema, 0) <= schemaBytes
	if !whole {
		shown, whole = inputSchema(w.InputSchema, schemaBytes)
	}
	row.Put("input_schema", jsonvalue.Raw(jsonvalue.Canonical(shown)))
	if !whole {
		row.Put("input_schema_cut", true)
	}
	row.Text("tool", p.tools[w.Ref])
	if full {
		if list := warnings(w.Warnings).encode(); len(list) > 0 {
			row.Put("warnings", list)
		}
	} else if n := len(w.Warnings); n > 0 {
		row.Put("warnings_total", float64(n))
	}
	if w.Broken != nil {
		row.Put("broken", problem.Excerpt(w.Broken.Text(), maxListedError))
	}
	return row
}
