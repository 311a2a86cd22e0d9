package agent

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/workflows-engine/workflows-engine/activities"
	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// manyTools is how many tools an agent may have without a warning: more than providers of models like to be sent.
const manyTools = 128

// Warner is a toolset that can report probable errors in its settings, such as a pattern that matches no tool.
type Warner interface {
	Toolset
	Warnings(ctx context.Context) ([]string, error)
}

// Check lists the tools at the start of an agent, built-in tools included, and probable errors: patterns that match
// no tool, and more than 128 tools. The error is that of a toolset, or AGENT_CONFIG_INVALID where an agent cannot begin with them: two of one
// name, or more than 512.
func (a *Agents) Check(ctx context.Context, name string) (tools []Tool, warnings []string, err error) {
	listed, err := a.Tools(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	config := a.resolved[name]
	tools, failure := agentloop.Offered(&config, listed)
	if failure != nil {
		return tools, nil, activities.Fail(failure.Code, "%s", failure.Message)
	}
	for _, set := range a.config.Agents[name].Tools {
		if w, ok := set.(Warner); ok {
			more, err := w.Warnings(ctx)
			if err != nil {
				return tools, nil, err
			}
			warnings = append(warnings, more...)
		}
	}
	for i, g := range config.Gates {
		for _, pattern := range g.Tools {
			if !slices.ContainsFunc(tools, func(t Tool) bool { ok, _ := path.Match(pattern, t.Name); return ok }) {
				warnings = append(warnings, fmt.Sprintf("gates[%d]: the pattern %q matches no tool, so the rule never applies%s", i, pattern, meantTool(pattern, tools)))
			}
		}
	}
	if len(tools) > manyTools {
		warnings = append(warnings, fmt.Sprintf("there are %d tools: many providers take at most %d; allow fewer", len(tools), manyTools))
	}
	return tools, warnings, nil
}

// meantTool suggests a tool for a pattern that matches no tool: one of a similar name, or of this name at a server.
func meantTool(pattern string, tools []Tool) string {
	var names []string
	for _, t := range tools {
		if ok, _ := path.Match("*__"+pattern, t.Name); ok {
			return fmt.Sprintf("; did you mean %q?", t.Name)
		}
		names = append(names, t.Name)
	}
	if near := suggest.DidYouMean(pattern, names); near != "" {
		return "; " + near
	}
	return ""
}
