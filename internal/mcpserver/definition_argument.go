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

// definition reads the argument that is a definition: an object, or text in JSON or YAML. All three are read from their text, as strictly as
// a file (spec: definition, 14.1). The error of a definition that cannot be read has the given code. Nil if absent or unusable.
func (s *server) definition(a *arguments, invalid problem.Code) *definition.Document {
	argument := a.Get(definitionArgument)
	if !argument.Present() {
		return nil
	}
	text := a.definitionText
	switch v := argument.Plain.(type) {
	case map[string]any:
		a.noLines = true
	case string:
		text = []byte(v)
		switch {
		case isBlank(v):
			argument.Fail("type", "%s", blankLeft(v))
			return nil
		case !strings.ContainsAny(v, ":{"):
			argument.Fail("type", "expected object, or JSON or YAML text of one; to run a stored definition, name it in definition_ref")
			return nil
		}
	default:
		argument.Fail("type", "expected object, or JSON or YAML text of one, found %s", jsonvalue.KindOf(v))
		return nil
	}
	doc, err := s.ReadDefinition(text)
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
