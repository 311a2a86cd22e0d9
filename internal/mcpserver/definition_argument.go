package mcpserver

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// definitionSchema is the schema of an argument that is a definition.
func definitionSchema(description string) members {
	return members{{"anyOf", []members{{{"type", "object"}}, {{"type", "string"}}}}, {"description", description}}
}

// definition reads a definition: an object, or text in JSON or YAML. All three are read from their text, as strictly as
// a file (spec: definition, 14.1). What is wrong with it has the given code. Nil if absent or unusable.
func (a *arguments) definition(name string, invalid problem.Code) *definition.Document {
	argument := a.Get(name)
	if !argument.Present() {
		return nil
	}
	var (
		doc *definition.Document
		err error
	)
	switch v := argument.Plain.(type) {
	case map[string]any:
		a.noLines = true
		if a.known != nil {
			return a.known
		}
		text := a.sourceOf(name)
		if doc, err = definition.Parse(text); err == nil {
			a.definitions.add(text, doc)
		}
	case string:
		text := strings.TrimSpace(v)
		switch {
		case isBlank(v):
			argument.Fail("type", "%s", blankLeft(v))
		case !strings.ContainsAny(text, ":{"):
			argument.Fail("type", "expected object, or JSON or YAML text of one; to run a stored definition, name it in definition_ref")
		case strings.HasPrefix(text, "{"):
			doc, err = definition.Parse([]byte(v))
		default:
			doc, err = definition.ParseYAML([]byte(v))
		}
	default:
		argument.Fail("type", "expected object, or JSON or YAML text of one, found %s", jsonvalue.KindOf(v))
	}
	if err == nil {
		return doc
	}
	e, ok := problem.As(err)
	if !ok {
		e = problem.New(invalid, "the definition cannot be read").WithCause(err)
	}
	refused := *e
	refused.Code = invalid
	a.refused = &refused
	return nil
}
