package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/graph/view"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxExposed limits the registered workflows that are tools of their own. With more, their descriptions would burden every conversation: two
// tools find and run them.
const maxExposed = 25

const (
	// maxToolName is the length of a tool's name that the APIs of models take.
	maxToolName = 64
	// maxToolSchema and maxToolDescription bound a workflow's tool in the list, in bytes.
	maxToolSchema, maxToolDescription, maxToolTitle = 2 << 10, 600, 120
)

// registered holds the tools of registered workflows. The zero value is empty.
type registered struct{ tools atomic.Pointer[[]*tool] }

func (r *registered) list() []*tool {
	if tools := r.tools.Load(); tools != nil {
		return *tools
	}
	return nil
}

// aboutRegistered returns the part of the instructions about registered workflows.
func (s toolset) aboutRegistered(o Options) string {
	switch {
	case o.Catalog == nil:
		return ""
	case !o.ExposeWorkflows && !s.has("workflow_catalog"):
		return ""
	case !o.ExposeWorkflows:
		return "\nworkflow_catalog lists workflows registered here: prefer a fitting one to a definition of your own. workflow_start runs it by definition_ref."
	}
	return "\nWorkflows registered here are tools (run_…, or find_workflow and run_workflow): prefer a fitting one to a definition of your own."
}

// expose replaces the tools by those of the registered workflows. Catalogs call it once a change, one call at a time.
func (s *server) expose(sdk *mcp.Server, now *catalog.Snapshot) {
	before, after := s.registered.list(), s.toolsOf(now.Workflows)
	s.registered.tools.Store(&after)
	var gone []string
	for _, t := range before {
		if !slices.ContainsFunc(after, func(other *tool) bool { return other.name == t.name }) {
			gone = append(gone, t.name)
		}
	}
	sdk.RemoveTools(gone...)
	s.addTools(sdk, slices.DeleteFunc(slices.Clone(after), func(t *tool) bool {
		return slices.ContainsFunc(before, func(other *tool) bool { return sameListing(t, other) })
	}))
}

// sameListing reports whether a client sees no difference between two tools.
func sameListing(a, b *tool) bool {
	x, failed := json.Marshal(a.listed())
	y, err := json.Marshal(b.listed())
	return failed == nil && err == nil && string(x) == string(y)
}

// toolsOf returns a tool for each workflow, or two for all of them.
func (s *server) toolsOf(workflows []*catalog.Workflow) []*tool {
	if len(workflows) > maxExposed {
		return []*tool{findTool(len(workflows)), runTool(s.opts)}
	}
	var tools []*tool
	for i, name := range toolNames(workflows) {
		tools = append(tools, exposedTool(name, workflows[i], s.opts))
	}
	return tools
}

// toolNames returns the names of the workflows' tools. If two workflows have the same tool name, it belongs to the one
// spelt that way; the names of the others end with a part of a hash.
func toolNames(workflows []*catalog.Workflow) []string {
	plain, count := make([]string, len(workflows)), map[string]int{}
	for i, w := range workflows {
		plain[i] = toolName(w)
		count[plain[i]]++
	}
	names, taken := make([]string, len(workflows)), map[string]bool{}
	for i, w := range workflows {
		if count[plain[i]] == 1 || plain[i] == toolPrefix+w.Ref {
			names[i] = plain[i]
			taken[names[i]] = true
		}
	}
	for i, w := range workflows {
		sum := sha256.Sum256([]byte(w.Ref))
		for digits := 6; names[i] == "" && digits <= 2*len(sum); digits++ {
			ending := "_" + hex.EncodeToString(sum[:])[:digits]
			if name := plain[i][:min(len(plain[i]), max(maxToolName-len(ending), 0))] + ending; !taken[name] && len(name) <= maxToolName {
				names[i] = name
				taken[name] = true
			}
		}
	}
	return names
}

const toolPrefix = "run_"

// toolName is the name of a workflow's tool, of the characters that the APIs of models take.
func toolName(w *catalog.Workflow) string {
	ref := w.Ref
	if ref == w.Hash {
		ref = w.Name + "_" + w.Hash[:8]
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-') {
			return r
		}
		return '_'
	}, ref)
	return (toolPrefix + name)[:min(len(toolPrefix+name), maxToolName)]
}

// exposed is a workflow as a tool.
type exposed struct {
	ref, description string
	input            json.RawMessage
}

// listed is the tool as tools/list shows it. The answer is that of workflow_start, whose schema is not repeated for each.
func (e *exposed) listed(t *tool) *mcp.Tool {
	return &mcp.Tool{Name: t.name, Title: t.title, Description: e.description, Annotations: &t.annotations, InputSchema: e.input}
}

// exposedTool is the tool that runs a workflow: the call's arguments are the input.
func exposedTool(name string, w *catalog.Workflow, o Options) *tool {
	t := starter(o)
	t.name, t.title = name, problem.Clip(w.Name+" "+w.Version, maxToolTitle)
	e := &exposed{ref: w.Ref, description: problem.Clip(w.Description, maxToolDescription)}
	if e.description == "" {
		e.description = fmt.Sprintf("Runs the registered workflow %q.", problem.Clip(w.Name, maxToolName))
	}
	schema, whole := inputSchema(w.InputSchema, maxToolSchema)
	if !whole {
		e.description += " Not all rules of its input are shown here."
		if o.Tools.Offers("workflow_catalog") {
			e.description += " workflow_catalog has them."
		}
	}
	e.description += " Returns once the run waits or ends: next is the call to make."
	e.input = jsonvalue.Canonical(schema)
	t.workflow = e
	t.call = func(ctx context.Context, s *server, a *arguments) (*answer, error) {
		return s.runRegistered(ctx, a, e.ref)
	}
	return t
}

// starter returns workflow_start without the arguments that select a definition.
func starter(o Options) *tool {
	t := startTool(o.DefaultMode)
	t.arguments = slices.DeleteFunc(t.arguments, func(p property) bool {
		return slices.Contains([]string{"definition", "definition_ref", "branch_order"}, p.Name)
	})
	return t
}

// startMeta is the field of a call's _meta for the arguments of workflow_start: a workflow may use any argument names,
// so the arguments of its tool are only the input.
const startMeta = "workflows-engine/start"

// callArguments returns the arguments of a call; for a workflow's tool those of a start, whose input the request holds.
func (t *tool) callArguments(p *mcp.CallToolParamsRaw) json.RawMessage {
	if t.workflow == nil {
		return p.Arguments
	}
	text := []byte(`{"input":`)
	if len(p.Arguments) == 0 {
		text = append(text, "{}"...)
	}
	text = append(text, p.Arguments...)
	add := func(name string, value any) {
		text = append(append(jsonvalue.AppendString(append(text, ','), name), ':'), jsonvalue.Canonical(value)...)
	}
	switch given := p.Meta[startMeta].(type) {
	case nil:
	case map[string]any:
		for _, name := range jsonvalue.Keys(given) {
			add(name, given[name])
		}
	default:
		add(startMeta, given) // rejected as an unknown argument
	}
	return append(text, '}')
}

// runRegistered starts a registered workflow.
func (s *server) runRegistered(ctx context.Context, a *arguments, ref string) (*answer, error) {
	req := s.startRequest(a)
	if err := a.Problem(); err != nil {
		return nil, err
	}
	w, err := s.opts.Catalog.Look().Find(ref)
	if err != nil {
		return nil, err
	}
	req.Definition, req.DefinitionRef = w.Document(), ref
	return s.started(ctx, a, req)
}

// brokenFile returns a warning if the file of a started workflow is invalid now.
func (s *server) brokenFile(ref, hash string) []view.Warning {
	if s.opts.Catalog == nil {
		return nil
	}
	w, err := s.opts.Catalog.Look().Find(ref)
	if err != nil || w.Broken == nil || w.Hash != hash {
		return nil
	}
	hint := "Tell the user to correct the file."
	if more := w.Broken.First().Hint; more != "" {
		hint = "Tell the user to correct the file: " + more
	}
	return []view.Warning{{
		Code:    w.Broken.First().Code,
		Message: fmt.Sprintf("the file %s is invalid (%s); its last good version, %s, was started", w.Broken.File, problem.Excerpt(w.Broken.Text(), maxListedError), w.Version),
		Hint:    hint,
	}}
}
