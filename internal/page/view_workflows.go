package page

import (
	"cmp"
	"context"
	"net/http"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/form"
	"github.com/workflows-engine/workflows-engine/internal/fragment"
)

// workflowsView lists the workflows of the catalog and the stored definitions.
func (s *Server) workflowsView(r *http.Request) (page view, err error) {
	m := &fragment.Workflows{}
	if s.o.Catalog != nil {
		snapshot := s.o.Catalog.Look()
		for _, w := range snapshot.Workflows {
			m.Registered = append(m.Registered, fragment.Workflow{
				Name: w.Name, Version: w.Version, Path: fragment.WorkflowPath(w.Ref), Description: fragment.OneLine(w.Description, maxRowText), Source: w.File,
			})
		}
		for _, b := range snapshot.Broken {
			m.Broken = append(m.Broken, fragment.Notice{Message: b.File, Hint: b.Text()})
		}
		if snapshot.Err != nil {
			m.Broken = append(m.Broken, fragment.Notice{Message: snapshot.Err.Message, Hint: s.o.Glossary.Translate(snapshot.Err.Hint)})
		}
	}
	if reader, needErr := graph.Need[graph.Definitions](s.o.Engine, "Definitions"); needErr == nil {
		found, err := reader.Definitions(r.Context(), r.URL.Query().Get("cursor"), pageOfRuns)
		if err != nil {
			return page, err
		}
		for _, d := range found.Definitions {
			m.Stored = append(m.Stored, fragment.Workflow{
				Name: d.Name, Version: d.Version, Path: fragment.WorkflowPath(d.Hash), Source: d.Hash[:min(len(d.Hash), 12)], At: d.StoredAt,
			})
		}
		if found.NextCursor != "" {
			m.Older = fragment.PagePath("/workflows", found.NextCursor)
		}
	}
	page = view{Title: "Workflows", Follow: []string{}}
	page.Body, err = s.body(m)
	return page, err
}

// workflowView shows a workflow, by its name, name@version or definition hash, with the form to start it.
func (s *Server) workflowView(r *http.Request) (page view, err error) {
	name := cmp.Or(r.PathValue("name"), r.URL.Query().Get("name"))
	document, schema, err := s.workflow(r.Context(), name)
	if err != nil {
		return page, err
	}
	value, _ := document.Value().(map[string]any)
	block, _ := value["document"].(map[string]any)
	description, _ := block["description"].(string)
	version, _ := block["version"].(string)
	m := &fragment.WorkflowPage{Name: document.Name(), Version: version, Hash: document.Hash(), Description: description}
	if program := s.compiled(document); program != nil {
		m.Graph = graphOf(r, program, nil, "", "")
	}
	runs, err := s.o.Engine.List(r.Context(), history.ListQuery{DefinitionName: document.Name(), Limit: lastRuns})
	if err != nil {
		return page, err
	}
	for i := range runs.Executions {
		m.Runs = append(m.Runs, row(&runs.Executions[i]))
	}
	if runs.NextCursor != "" {
		m.AllRuns = runsPath(nil, "definition", document.Name())
	}
	sent := submittedOf(r)
	if !s.readOnly(r) {
		f := fragment.FormFor(schema, fragment.Post{Action: fragment.StartPath(name), Token: s.startToken(r, name)}, sent.filled())
		var values map[string][]string
		if sent != nil {
			values = sent.Values
		}
		if f.Decision != nil { // a start is not a decision
			f.Fields, f.Decision = append(f.Fields, fragment.Fields([]form.Field{*f.Decision}, values, nil)...), nil
		}
		f.Submit = "Start"
		f.Before = fragment.Fields([]form.Field{
			{ID: "title", Name: "title", Title: "Title of the run", Control: "text", Kind: form.Text},
			{ID: "execution_id", Name: "execution_id", Title: "Id of the run", Control: "text", Kind: form.Text, Description: "Left empty, the run gets a new one."},
		}, values, nil)
		m.Form = f
	}
	if sent != nil {
		m.Refused = refused(s, sent)
	}
	page = view{Title: document.Name()}
	page.Body, err = s.body(m)
	return page, err
}

// lastRuns is the number of runs on the page of a workflow.
const lastRuns = 10

// storedPages limits the pages of stored definitions that are searched for a name.
const storedPages = 20

// workflow returns a definition by its name, name@version or hash, with the schema of its input if it is known: from the catalog, otherwise
// the newest stored one.
func (s *Server) workflow(ctx context.Context, name string) (*definition.Document, map[string]any, error) {
	if found := s.registered(name); found != nil {
		return found.Document(), found.InputSchema, nil
	}
	unknown := problem.New(problem.WorkflowNotFound, "workflow %q not found", name).WithHint("The page of the workflows lists all.")
	reader, err := graph.Need[graph.Definitions](s.o.Engine, "Definition")
	if err != nil {
		return nil, nil, unknown
	}
	if len(name) == len(sampleHash) {
		if d, err := reader.Definition(ctx, name); err == nil {
			return d, nil, nil
		}
	}
	cursor := ""
	for range storedPages {
		found, err := reader.Definitions(ctx, cursor, pageOfRuns)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range found.Definitions {
			if d.Name == name || d.Name+"@"+d.Version == name {
				document, err := reader.Definition(ctx, d.Hash)
				return document, nil, err
			}
		}
		if cursor = found.NextCursor; cursor == "" {
			break
		}
	}
	return nil, nil, unknown
}

// sampleHash has the length of a definition hash.
const sampleHash = "0000000000000000000000000000000000000000000000000000000000000000"

// compiled returns the program of a definition, as far as it can be compiled, or nil.
func (s *Server) compiled(d *definition.Document) *definition.Program {
	p, err := s.o.Engine.Program(d)
	if err != nil {
		p, _ = definition.Draft(d, definition.Options{AllowInterruptInBranch: true})
	}
	return p
}
