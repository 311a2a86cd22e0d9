package config

import (
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// text reads a variable that holds JSON text or the path of a file with it: a value that begins with { or [ is JSON text
// (spec: cli-and-config, 4). nil without an error means that the variable is unset; file is "" for text in the variable.
func (e Environment) text(variable string) (text []byte, file string, err error) {
	return e.textOf(e.lookup(variable), variable)
}

// textOf is text for the value of a variable or flag.
func (e Environment) textOf(value, variable string) (text []byte, file string, err error) {
	switch {
	case value == "":
		return nil, "", nil
	case strings.HasPrefix(value, "{") || strings.HasPrefix(value, "["):
		return []byte(value), "", nil
	}
	if text, err = e.read(e.absolute(strings.TrimSpace(strings.TrimPrefix(value, "file:")))); err != nil {
		return nil, value, problem.New(problem.UsageError, "cannot read %s", placeOf(variable, value)).WithCause(err).
			WithHint("Set %s to a JSON object, or to the path of a file with one.", variable)
	}
	return append([]byte{}, text...), value, nil // never nil
}

// settingFile is the file that a variable, or its flag, names.
type settingFile struct{ variable, file string }

// isPath reports whether the value of a setting is a path rather than JSON text.
func isPath(value string) bool { return value != "" && value[0] != '{' && value[0] != '[' }

// Located returns the name of a setting with the files that it was read from, as in "WORKFLOW_ENGINE_AGENTS (agents.json)".
func (c *Config) Located(setting string) string {
	for _, s := range c.files {
		if before, after, found := strings.Cut(setting, s.variable); found {
			setting = before + placeOf(s.variable, s.file) + after
		}
	}
	return setting
}

// placeOf names a variable, and the file that it names, in messages.
func placeOf(variable, file string) string {
	if file == "" {
		return variable
	}
	return variable + " (" + file + ")"
}

// object reads a variable that holds a JSON object, as text does.
func (e Environment) object(variable string) (map[string]any, error) {
	text, file, err := e.text(variable)
	if err != nil || text == nil {
		return nil, err
	}
	place := placeOf(variable, file)
	node, faults := jsonvalue.Parse(text, 0, 0)
	if len(faults) > 0 {
		return nil, problem.New(problem.UsageError, "invalid JSON in %s", place).WithCause(faults[0])
	}
	members, ok := node.Value().(map[string]any)
	if !ok {
		return nil, problem.New(problem.UsageError, "%s must be a JSON object", place)
	}
	return members, nil
}
