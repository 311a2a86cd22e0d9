package authoring_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
)

// TestEveryCodeIsExplained: the page has each code of the closed list once, says something of it, and knows no others.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "graph", "problem", "testdata", "codes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range authoring.CodeGroups() {
		for _, c := range g.Codes {
			got = append(got, c.Name)
			for _, sentence := range []string{c.When, c.Do} {
				if len(sentence) < 8 || !strings.HasSuffix(sentence, ".") {
					t.Errorf("docs/reference/codes.md says of %s: %q", c.Name, sentence)
				}
			}
		}
	}
	slices.Sort(got)
	for _, name := range strings.Fields(string(text)) {
		if !slices.Contains(got, name) {
			t.Errorf("docs/reference/codes.md does not explain %s: add a row to a table", name)
		}
	}
	if want := strings.Fields(string(text)); len(got) != len(want) {
		t.Errorf("docs/reference/codes.md explains %d codes, and there are %d", len(got), len(want))
	}
}

// TestExplanationsHaveNoLinks: a link is its text and the path of its page, which readers at a terminal can open.
func TestExplanationsHaveNoLinks(t *testing.T) {
	t.Parallel()
	for _, g := range authoring.CodeGroups() {
		for _, c := range g.Codes {
			if text := c.When + c.Do; strings.Contains(text, "](") {
				t.Errorf("%s: %s", c.Name, text)
			}
		}
	}
	if c, _, _ := authoring.FindCode("RUN_TIMEOUT"); c.When != "The run did not end by its deadline (docs/workflows.md)." {
		t.Errorf("got %q", c.When)
	}
}

// TestExamplesAreTrue: the wrong example of a code has a finding with it, and the right one has none.
func TestExamplesAreTrue(t *testing.T) {
	t.Parallel()
	found := 0
	for _, g := range authoring.CodeGroups() {
		for _, c := range g.Codes {
			if c.Wrong == "" {
				continue
			}
			found++
			for text, want := range map[string]bool{c.Wrong: true, c.Right: false} {
				if got := finds(t, text, c.Name); got != want {
					t.Errorf("%s: found %t, want %t, in\n%s", c.Name, got, want, text)
				}
			}
		}
	}
	if found < 5 || strings.Count(readPage(t), "\n### ") != found {
		t.Errorf("%d examples are read", found)
	}
}

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// finds reports whether a definition with the nodes and edges of an example has a finding with a code.
func finds(t *testing.T, text, code string) bool {
	t.Helper()
	if !strings.Contains(text, "nodes:") {
		text = "nodes: []\n" + text
	}
	part, err := definition.ParseYAML([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	root := part.Value().(map[string]any)
	whole := map[string]any{
		"document": map[string]any{"schema": "s", "name": "example", "version": "1"}, "state_schema": map[string]any{"type": "object"},
		"nodes": append([]any{map[string]any{"id": "begin", "type": "start"}, map[string]any{"id": "finish", "type": "end"}}, root["nodes"].([]any)...),
		"edges": append([]any{map[string]any{"source": "__start__", "target": "begin"}}, root["edges"].([]any)...),
	}
	if uses := root["x-workflows-engine"]; uses != nil {
		whole["x-workflows-engine"] = uses
	}
	doc, err := definition.FromValue(whole)
	if err != nil {
		t.Fatal(err)
	}
	_, findings := lint.Compile(doc, lint.Options{})
	return slices.ContainsFunc(findings, func(f problem.Finding) bool { return f.Code == problem.Code(code) })
}

func TestFind(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"TIMEOUT": "TIMEOUT", " timeout ": "TIMEOUT", "UNKNOWN_NODES": "", "": ""} {
		c, near, ok := authoring.FindCode(name)
		if c.Name != want || ok != (want != "") {
			t.Errorf("%q: %+v, %t", name, c, ok)
		}
		if name == "UNKNOWN_NODES" && near != "UNKNOWN_NODE" {
			t.Errorf("near %q", near)
		}
	}
}
