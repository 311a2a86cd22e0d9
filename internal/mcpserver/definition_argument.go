package mcpserver

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// definition reads a definition: an object, or text in JSON or YAML. All three are read from their text, as strictly as
// a file (spec: definition, 14.1). What is wrong with it has the given code. Nil if absent or unusable.
func (a *arguments) definition(name string, invalid problem.Code) *definition.Document {
	v, ok := a.get(name, false)
	if !ok {
		return nil
	}
	var (
		doc *definition.Document
		err error
	)
	switch v := v.(type) {
	case map[string]any:
		doc, err = definition.Parse(a.sourceOf(name))
	case string:
		text := strings.TrimSpace(v)
		switch {
		case isBlank(v):
			a.issue(name, "%s", blankLeft(v))
		case !strings.ContainsAny(text, ":{"):
			a.issue(name, "must be an object, or JSON or YAML text of one; to run a stored definition, name it in definition_ref")
		case strings.HasPrefix(text, "{"):
			doc, err = definition.Parse([]byte(v))
		default:
			doc, err = definition.ParseYAML([]byte(v))
		}
	default:
		a.issue(name, "must be an object, or JSON or YAML text of one, not %s", kindOf(v))
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
