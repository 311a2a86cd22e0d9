package authoring

import (
	"embed"
	"regexp"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

//go:embed templates/*.yaml
var templateFiles embed.FS

// Template is a definition to start from.
type Template struct {
	Name string
	// What is the first line of the definition, which describes its purpose.
	What string
}

// templateNames are the templates, the simplest first.
var templateNames = []string{"minimal", "approval", "loop", "fan-out", "agent"}

// Templates returns all templates.
func Templates() []Template {
	list := make([]Template, len(templateNames))
	for i, name := range templateNames {
		first, _, _ := strings.Cut(read(name, "workflow"), "\n")
		list[i] = Template{name, strings.TrimPrefix(first, "# ")}
	}
	return list
}

// TemplateNames returns the templateNames of all templates.
func TemplateNames() []string { return slices.Clone(templateNames) }

var documentName = regexp.MustCompile(`(?m)^(document: .*\bname: )([^,}]+)`)

// TemplateFiles returns the definition of a template under a new name, and its tests, both in YAML; "" for an unknown template.
func TemplateFiles(template, name string) (definition, tests string) {
	if !slices.Contains(templateNames, template) {
		return "", ""
	}
	quoted := string(jsonvalue.AppendString(nil, name)) // without quotes YAML takes some templateNames for other values
	definition = documentName.ReplaceAllStringFunc(read(template, "workflow"), func(line string) string {
		return documentName.FindStringSubmatch(line)[1] + quoted
	})
	return definition, read(template, "test")
}

func read(template, kind string) string {
	text, err := templateFiles.ReadFile("templates/" + template + "." + kind + ".yaml")
	if err != nil {
		panic(err) // a template without its file
	}
	return string(text)
}
