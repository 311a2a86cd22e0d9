package catalog_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
)

// definitionText is a small valid definition of that name; the version tells two of them apart.
func definitionText(name, version string) string {
	return `{"document":{"schema":"s","name":"` + name + `","version":"` + version + `"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},{"id":"z","type":"end"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
}

const yamlText = `document: {schema: s, name: of-yaml, version: '1'}
state_schema: {type: object}
nodes: [{id: a, type: start}, {id: z, type: end}]
edges: [{source: __start__, target: a}, {source: a, target: z}]
`

func TestFolderResolvesByName(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, text := range map[string]string{
		"one.workflow.json":   definitionText("one", "1"),
		"copy.workflow.json":  definitionText("one", "1"),
		"twins.workflow.json": definitionText("twins", "1"),
		"twin2.workflow.json": definitionText("twins", "2"),
		"yaml.workflow.yaml":  yamlText,
		"bad.workflow.json":   "{",
		"other.json":          definitionText("hidden", "1"),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolver := catalog.New(folder, catalog.Options{})

	for ref, want := range map[string]string{"one": "one", "urn:example:one": "one", "of-yaml": "of-yaml"} {
		d, err := resolver.ResolveWorkflow(t.Context(), ref, "")
		if err != nil {
			t.Errorf("%s: %v", ref, err)
			continue
		}
		if !strings.Contains(string(d.Canonical()), `"name":"`+want+`"`) {
			t.Errorf("%s: got %s", ref, d.Canonical())
		}
	}

	one, err := resolver.ResolveWorkflow(t.Context(), "one", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resolver.ResolveWorkflow(t.Context(), "one", one.Hash()); err != nil {
		t.Errorf("pinned: %v", err)
	}
	for ref, want := range map[string]string{"hidden": "no definition", "twins": "have the name", "one:": "no definition"} {
		_, err := resolver.ResolveWorkflow(t.Context(), ref, "")
		if !errors.Is(err, problem.WorkflowNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		}
	}
	_, err = resolver.ResolveWorkflow(t.Context(), "one", strings.Repeat("0", 64))
	if !errors.Is(err, problem.WorkflowNotFound) {
		t.Errorf("wrong pin: %v", err)
	}
	if e, ok := problem.As(err); !ok || !strings.Contains(e.Hint, "bad.workflow.json") {
		t.Errorf("the unreadable neighbour is not named: %v", err)
	}
	if _, err := catalog.New(filepath.Join(folder, "none"), catalog.Options{}).ResolveWorkflow(t.Context(), "one", ""); !errors.Is(err, problem.WorkflowNotFound) {
		t.Errorf("no folder: %v", err)
	}
}
