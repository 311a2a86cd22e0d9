package config

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// object reads a variable that holds a JSON object or the path of a file with one: a value that begins with { or [ is
// JSON text (spec: cli-and-config, 4). nil without an error means that the variable is unset.
func (e Environment) object(variable string) (map[string]any, error) {
	value := e.lookup(variable)
	if value == "" {
		return nil, nil
	}
	text, place := []byte(value), variable
	if !strings.HasPrefix(value, "{") && !strings.HasPrefix(value, "[") {
		place = variable + " (" + value + ")"
		var err error
		if text, err = e.ReadFile(e.absolute(value)); err != nil {
			return nil, problem.New(problem.UsageError, "%s cannot be read", place).WithCause(err).
				WithHint("%s holds a JSON object, or the path of a file with one.", variable)
		}
	}
	node, faults := jsonvalue.Parse(text, 0, 0)
	if len(faults) > 0 {
		return nil, problem.New(problem.UsageError, "%s is not JSON", place).WithCause(faults[0])
	}
	members, ok := node.Value().(map[string]any)
	if !ok {
		return nil, problem.New(problem.UsageError, "%s is JSON but not an object", place)
	}
	return members, nil
}
