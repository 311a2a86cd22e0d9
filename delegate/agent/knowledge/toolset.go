package knowledge

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// The names of the tools.
const (
	Search = "search_knowledge"
	Read   = "read_knowledge"
)

// Toolset are the two tools over some bases of a library.
type Toolset struct {
	library *Library
	bases   []string
	options []agent.Option
}

// Tools makes the tools over the bases: each base is a folder of the library, or a folder within one. They only read: they run beside
// other calls and are repeated after a crash, unless the options say otherwise. The error has the code AGENT_CONFIG_INVALID.
func (l *Library) Tools(bases []string, options ...agent.Option) (*Toolset, error) {
	for _, base := range bases {
		if err := l.Check(base); err != nil {
			return nil, err
		}
	}
	return &Toolset{library: l, bases: slices.Clone(bases), options: options}, nil
}

// Tools implements agent.Toolset.
func (t *Toolset) Tools(context.Context) ([]agent.Tool, error) {
	if len(t.bases) == 0 {
		return nil, nil
	}
	var known []any
	for _, base := range t.bases {
		known = append(known, base)
	}
	tools := []agent.Tool{
		{
			Name: Search, Description: "Searches the knowledge bases for words. Returns the sections that have most of them, each with a ref for " + Read + ".",
			Parameters: map[string]any{
				"type": "object", "required": []any{"query"}, "additionalProperties": false,
				"properties": map[string]any{
					"query": map[string]any{"type": "string", "minLength": 1.0, "maxLength": 1000.0},
					"base":  map[string]any{"enum": known, "description": "search only this one"},
				},
			},
		},
		{
			Name: Read, Description: "Reads a section or a file of the knowledge bases by its ref, such as base/file.md#section. What is left out has a next_offset.",
			Parameters: map[string]any{
				"type": "object", "required": []any{"ref"}, "additionalProperties": false,
				"properties": map[string]any{
					"ref":    map[string]any{"type": "string", "minLength": 1.0, "maxLength": 2000.0},
					"offset": map[string]any{"type": "integer", "minimum": 0.0, "description": "the byte to begin at"},
				},
			},
		},
	}
	for i := range tools {
		tools[i].Source, tools[i].ReadOnly, tools[i].Parallel, tools[i].OnCrash = "knowledge", true, true, agent.Repeat
		for _, o := range t.options {
			o(&tools[i])
		}
	}
	return tools, nil
}

// Prompt implements agent.Prompter.
func (t *Toolset) Prompt() (string, error) {
	if len(t.bases) == 0 {
		return "", nil
	}
	names, _ := json.Marshal(t.bases)
	return "Knowledge bases that you can search with " + Search + " and read with " + Read + ": " + strings.Trim(string(names), "[]") + ".", nil
}

// NarrowedBy implements agent.Narrower.
func (t *Toolset) NarrowedBy() (member string, known []string) { return "knowledge", t.bases }

// Narrow implements agent.Narrower. A name may be a folder within a base.
func (t *Toolset) Narrow(names []string) (set agent.Toolset, missing []string) {
	less := &Toolset{library: t.library, options: t.options}
	for _, name := range names {
		found := false
		for _, base := range t.bases {
			switch {
			case within(base, name): // what the name has more is not the agent's
				found, less.bases = true, append(less.bases, base)
			case within(name, base) && t.library.Check(name) == nil:
				found, less.bases = true, append(less.bases, name)
			}
		}
		if !found {
			missing = append(missing, name)
		}
	}
	slices.Sort(less.bases)
	less.bases = slices.Compact(less.bases)
	return less, missing
}

// Call implements agent.Toolset.
func (t *Toolset) Call(ctx context.Context, c agent.Call) (any, error) {
	switch c.Name {
	case Search:
		query, _ := c.Arguments["query"].(string)
		bases := t.bases
		if base, given := c.Arguments["base"].(string); given {
			if !slices.Contains(t.bases, base) {
				return nil, activities.Fail(problem.KnowledgeRefInvalid, "there is no knowledge base %q here; there is %s", base, problem.AndList(t.bases))
			}
			bases = []string{base}
		}
		return t.library.search(ctx, query, bases)
	case Read:
		ref, _ := c.Arguments["ref"].(string)
		offset, _ := c.Arguments["offset"].(float64)
		return t.library.read(ref, t.bases, int(min(max(offset, 0), MaxFileBytes)))
	}
	return nil, activities.Fail(agentloop.ToolUnknown, "knowledge bases have no tool %q", c.Name)
}

var (
	_ agent.Prompter = (*Toolset)(nil)
	_ agent.Narrower = (*Toolset)(nil)
)
