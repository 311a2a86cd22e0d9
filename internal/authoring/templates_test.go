package authoring_test

import (
	"os"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/internal/authoring"
	"github.com/workflows-engine/workflows-engine/internal/format"
)

// TestTemplatesAreInForm: each template is valid without a warning, in its usual form, and has the name that was asked for, whatever that
// is. Their tests are run by the script of the command new.
func TestTemplatesAreInForm(t *testing.T) {
	t.Parallel()
	for _, template := range authoring.Templates() {
		for _, name := range []string{"order", "order-17", "true", "17", "Ün: \"#'"} {
			text, tests := authoring.TemplateFiles(template.Name, name)
			doc, err := definition.ParseYAML([]byte(text))
			if err != nil {
				t.Fatalf("%s: %v", template.Name, err)
			}
			if _, findings := lint.Compile(doc, lint.Options{}); len(findings) > 0 {
				t.Errorf("%s: %v", template.Name, findings)
			}
			head := doc.Value().(map[string]any)["document"].(map[string]any)
			if head["name"] != name || !strings.Contains(tests, "tests:") || !strings.HasSuffix(template.What, ".") {
				t.Errorf("%s: %v, %q", template.Name, head, template.What)
			}
			if formatted, err := format.YAML([]byte(text)); name == "order" && (err != nil || string(formatted) != text) {
				t.Errorf("%s is not in its usual form: %v", template.Name, err)
			}
		}
	}
	if text, _ := authoring.TemplateFiles("nothing", "x"); text != "" {
		t.Error("an unknown template has a text")
	}
}

// TestEveryTemplateIsListed: the folder holds two files for each template, and no others.
func TestEveryTemplateIsListed(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("templates")
	if err != nil || len(entries) != 2*len(authoring.TemplateNames()) {
		t.Errorf("%d files for %d templates, %v", len(entries), len(authoring.TemplateNames()), err)
	}
}
