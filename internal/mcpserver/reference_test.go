package mcpserver_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
	"github.com/workflows-engine/workflows-engine/internal/mcpserver"
)

// TestReferencePage: docs/reference/mcp-tools.md has what the server lists, within the text of testdata/mcp-tools.md.
func TestReferencePage(t *testing.T) {
	t.Parallel()
	store := enginetest.Closing(t, historymem.New())
	runner := enginetest.Closing(t, enginetest.Must(graph.New(store, graph.Options{})))
	h := connectHost(t, runner, mcpserver.Options{Definitions: store, Catalog: catalog.New(t.TempDir(), catalog.Options{})})
	var tools, resources, prompts strings.Builder
	for _, tool := range enginetest.Must(h.session.ListTools(t.Context(), nil)).Tools {
		fmt.Fprintf(&tools, "### %s\n\n%s\n\n", tool.Name, tool.Description)
		fmt.Fprintf(&tools, "| argument | type | meaning |\n|---|---|---|\n%s", rows(tool.InputSchema, ""))
		fmt.Fprintf(&tools, "\n| answer | type | meaning |\n|---|---|---|\n%s\n", rows(tool.OutputSchema, ""))
	}
	resources.WriteString("| address | what |\n|---|---|\n")
	for _, r := range enginetest.Must(h.session.ListResources(t.Context(), nil)).Resources {
		fmt.Fprintf(&resources, "| `%s` | %s |\n", r.URI, r.Description)
	}
	for _, r := range enginetest.Must(h.session.ListResourceTemplates(t.Context(), nil)).ResourceTemplates {
		fmt.Fprintf(&resources, "| `%s` | %s |\n", r.URITemplate, r.Description)
	}
	prompts.WriteString("| prompt | arguments | purpose |\n|---|---|---|\n")
	for _, p := range enginetest.Must(h.session.ListPrompts(t.Context(), nil)).Prompts {
		var names []string
		for _, a := range p.Arguments {
			names = append(names, "`"+a.Name+"`")
		}
		fmt.Fprintf(&prompts, "| `%s` | %s | %s |\n", p.Name, strings.Join(names, ", "), p.Description)
	}
	page := strings.NewReplacer("{{tools}}\n", strings.TrimSuffix(tools.String(), "\n"), "{{resources}}\n", resources.String(), "{{prompts}}\n", prompts.String()).
		Replace(string(enginetest.Must(os.ReadFile("testdata/mcp-tools.md"))))
	if strings.Contains(page, "{{") {
		t.Error("testdata/mcp-tools.md has an unknown part")
	}
	enginetest.RequireReference(t, "mcp-tools.md", page, *update)
}

// rows lists the properties of a schema, those of objects and of the items of arrays below them. under is the name of what holds them.
func rows(schema any, under string) string {
	s, _ := schema.(map[string]any)
	required, _ := s["required"].([]any)
	fields := properties(schema)
	var out strings.Builder
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { // the required ones first
		ra, rb := slices.Contains(required, any(a)), slices.Contains(required, any(b))
		if ra != rb {
			if ra {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if under == "" && name == "error" { // section Errors
			continue
		}
		p, _ := fields[name].(map[string]any)
		kind := kindOf(p)
		if slices.Contains(required, any(name)) {
			kind += ", required"
		}
		meaning, _ := p["description"].(string)
		if values := choices(p); values != "" {
			meaning += " " + values
		}
		fmt.Fprintf(&out, "| `%s%s` | %s | %s |\n", under, name, kind, strings.ReplaceAll(strings.TrimSpace(meaning), "|", `\|`))
		out.WriteString(rows(p, under+name+"."))
		if items, ok := p["items"]; ok {
			out.WriteString(rows(items, under+name+"[]."))
		}
	}
	return out.String()
}

// kindOf returns the types that a schema accepts, in words.
func kindOf(p map[string]any) string {
	var kinds []string
	switch kind := p["type"].(type) {
	case string:
		kinds = append(kinds, kind)
	case []any:
		for _, k := range kind {
			kinds = append(kinds, fmt.Sprint(k))
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		options, _ := p[key].([]any)
		for _, o := range options {
			if m, ok := o.(map[string]any); ok && kindOf(m) != "any" {
				kinds = append(kinds, kindOf(m))
			}
		}
	}
	if len(kinds) == 0 {
		return "any"
	}
	return strings.Join(slices.Compact(kinds), " or ")
}

// choices returns the values that a schema accepts, its bounds or those of its items.
func choices(p map[string]any) string {
	var out []string
	if values, ok := p["enum"].([]any); ok {
		for _, v := range values {
			out = append(out, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(out, ", ") + "."
	}
	if least, ok := p["minimum"].(float64); ok {
		out = append(out, fmt.Sprintf("At least %d.", int64(least)))
	}
	if most, ok := p["maximum"].(float64); ok {
		out = append(out, fmt.Sprintf("At most %d.", int64(most)))
	}
	return strings.Join(out, " ")
}
