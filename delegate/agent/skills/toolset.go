package skills

import (
	"context"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Read is the name of the tool.
const Read = "read_skill"

// Toolset is the tool read_skill over some skills of a library.
type Toolset struct {
	library *Library
	names   []string
	options []agent.Option
}

// Tools makes the tool over the named skills. It only reads: calls run beside others and are repeated after a crash, unless the options say
// otherwise. The error has the code AGENT_CONFIG_INVALID.
func (l *Library) Tools(names []string, options ...agent.Option) (*Toolset, error) {
	for _, name := range names {
		if err := l.Check(name); err != nil {
			return nil, err
		}
	}
	return &Toolset{library: l, names: slices.Clone(names), options: options}, nil
}

// Tools implements agent.Toolset.
func (t *Toolset) Tools(context.Context) ([]agent.Tool, error) {
	if len(t.names) == 0 {
		return nil, nil
	}
	var known []any
	for _, name := range t.names {
		known = append(known, name)
	}
	tool := agent.Tool{
		Name: Read, Description: "Reads a skill, or one of its further pages.", Source: "skills", ReadOnly: true, Parallel: true, OnCrash: agent.Repeat,
		Parameters: map[string]any{
			"type": "object", "required": []any{"skill"}, "additionalProperties": false,
			"properties": map[string]any{
				"skill": map[string]any{"enum": known},
				"page":  map[string]any{"type": "string", "minLength": 1.0, "maxLength": 200.0, "description": "one of those that the skill lists"},
			},
		},
	}
	for _, o := range t.options {
		o(&tool)
	}
	return []agent.Tool{tool}, nil
}

// Prompt implements agent.Prompter: it names the skills, with their descriptions.
func (t *Toolset) Prompt() (string, error) {
	if len(t.names) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString("Skills. Before you do something that one of them is about, read it with " + Read + ":")
	for _, name := range t.names {
		s, err := t.library.read(name)
		if err != nil {
			f := activities.Fail(problem.AgentConfigInvalid, "%v", err)
			f.Retryable = activities.RetryPointless
			return "", f
		}
		b.WriteString("\n- " + name + ": " + s.description)
	}
	return b.String(), nil
}

// NarrowedBy implements agent.Narrower.
func (t *Toolset) NarrowedBy() (member string, known []string) { return "skills", t.names }

// Narrow implements agent.Narrower.
func (t *Toolset) Narrow(names []string) (set agent.Toolset, missing []string) {
	less := &Toolset{library: t.library, options: t.options}
	for _, name := range t.names {
		if slices.Contains(names, name) {
			less.names = append(less.names, name)
		}
	}
	for _, name := range names {
		if !slices.Contains(t.names, name) {
			missing = append(missing, name)
		}
	}
	return less, missing
}

// Call implements agent.Toolset.
func (t *Toolset) Call(_ context.Context, c agent.Call) (any, error) {
	if c.Name != Read {
		return nil, activities.Fail(agentloop.ToolUnknown, "skills have no tool %q", c.Name)
	}
	name, _ := c.Arguments["skill"].(string)
	if !slices.Contains(t.names, name) {
		return nil, unknown(name, t.names, "there is no skill %q here", name)
	}
	s, err := t.library.read(name)
	if err != nil {
		return nil, activities.Fail(problem.SkillUnknown, "%v", err)
	}
	out := map[string]any{"skill": name, "text": s.body}
	page, given := c.Arguments["page"].(string)
	if given {
		if !slices.Contains(s.pages, page) {
			return nil, unknown(page, s.pages, "skill %q has no page %q", name, page)
		}
		root, err := t.library.open(name)
		if err != nil {
			return nil, activities.Fail(problem.SkillUnknown, "skill %q cannot be read: %v", name, cause(err))
		}
		defer root.Close()
		text, err := readFile(root, "pages/"+page+".md")
		if err != nil {
			return nil, activities.Fail(problem.SkillUnknown, "page %q of skill %q %v", page, name, err)
		}
		out["page"], out["text"] = page, text
	} else if len(s.pages) > 0 {
		list := []any{}
		for _, p := range s.pages {
			list = append(list, p)
		}
		out["pages"] = list
	}
	return out, nil
}

// unknown is the failure of a name that is not on a list.
func unknown(name string, known []string, format string, args ...any) error {
	hint := suggest.DidYouMean(name, known)
	switch {
	case hint != "":
	case len(known) == 0:
		hint = "there is none"
	default:
		hint = "there is " + problem.AndList(known)
	}
	return activities.Fail(problem.SkillUnknown, "%s; %s", problem.Format(format, args...), hint)
}

var (
	_ agent.Prompter = (*Toolset)(nil)
	_ agent.Narrower = (*Toolset)(nil)
)
