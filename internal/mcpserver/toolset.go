package mcpserver

import (
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
)

// Sets of tools that have a name.
const (
	AllTools  = "all"
	CoreTools = "core" // those of the protocol
)

// coreTools is how many of allTools are the protocol's, which come first.
const coreTools = 7

// toolset is the tools that a server offers.
type toolset []*tool

// Tools says which tools a server offers; the zero value means all.
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
			return Tools{}, problem.New(problem.UsageError, "there is no tool %q", names[i]).
				WithHint("Write all, core, or a list such as workflow_status,workflow_list. The tools are %s.", strings.Join(all.names(), ", "))
		}
	}
	if !slices.Contains(names, "workflow_status") {
		return Tools{}, problem.New(problem.UsageError, "the list of tools lacks workflow_status").
			WithHint("Add it: the answers of the others refer to it.")
	}
	return Tools{names}, nil
}

// of returns those of a server's tools that it offers.
func (t Tools) of(all []*tool) toolset {
	return slices.DeleteFunc(all, func(one *tool) bool { return !t.Offers(one.name) })
}

// Offers reports whether a server offers a tool, if it has it.
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

// lines are the texts whose tools are offered, each on a line of its own.
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

// sentence is a text that is said where the tool that it is about is offered; "" is said everywhere.
type sentence struct{ about, text string }

// translate puts a hint of the library into the words of these tools.
func (s toolset) translate(hint string) string {
	if !s.has("workflow_list") {
		hint = problem.Glossary{"Runner.List": "the operator's workflows-engine list"}.Translate(hint)
	}
	return words.Translate(hint)
}
