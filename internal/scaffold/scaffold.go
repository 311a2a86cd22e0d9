// Package scaffold has definitions to begin with, each with its tests.
package scaffold

import (
	"embed"
	"regexp"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

//go:embed templates/*.yaml
var files embed.FS

// Template is a definition to begin with.
type Template struct {
	Name string
	// What is the first line of the definition, which says what it is for.
	What string
}

// names are the templates, the simplest first.
var names = []string{"minimal", "approval", "loop", "fan-out", "agent"}

// Templates returns all templates.
func Templates() []Template {
	list := make([]Template, len(names))
	for i, name := range names {
		first, _, _ := strings.Cut(read(name, "workflow"), "\n")
		list[i] = Template{name, strings.TrimPrefix(first, "# ")}
	}
	return list
}

// Names returns the names of all templates.
func Names() []string { return slices.Clone(names) }

var documentName = regexp.MustCompile(`(?m)^(document: .*\bname: )([^,}]+)`)

// Files returns the definition of a template under a name of its own, and its tests, both in YAML; "" if there is no such template.
func Files(template, name string) (definition, tests string) {
	if !slices.Contains(names, template) {
		return "", ""
	}
	quoted := string(jsonvalue.AppendString(nil, name)) // without quotes YAML takes some names for other values
	definition = documentName.ReplaceAllStringFunc(read(template, "workflow"), func(line string) string {
		return documentName.FindStringSubmatch(line)[1] + quoted
	})
	return definition, read(template, "test")
}

func read(template, kind string) string {
	text, err := files.ReadFile("templates/" + template + "." + kind + ".yaml")
	if err != nil {
		panic(err) // a template without its file
	}
	return string(text)
}
