// Package enginetest sets up engines for the tests of several packages.
package enginetest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
)

// Define parses a definition written in JSON or YAML.
func Define(t testing.TB, text string) *definition.Document {
	t.Helper()
	parse := definition.ParseYAML
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		parse = definition.Parse
	}
	d, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("definition: %v", err)
	}
	return d
}

// Linear returns the text of a definition with a sequence of nodes, each written in JSON.
func Linear(name string, nodes ...string) string {
	last, edges := "__start__", make([]string, len(nodes))
	for i, text := range nodes {
		var node struct{ ID string }
		if err := json.Unmarshal([]byte(text), &node); err != nil {
			panic(fmt.Sprintf("node %s: %v", text, err))
		}
		edges[i] = fmt.Sprintf(`{"source":%q,"target":%q}`, last, node.ID)
		last = node.ID
	}
	return fmt.Sprintf(`{"document":{"schema":"urn:test","name":%q,"version":"1"},"state_schema":{"type":"object"},"nodes":[%s],"edges":[%s]}`,
		name, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// Must returns v and panics if there is an error.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Closing returns v, such as a runner or a store, and closes it with the test.
func Closing[T io.Closer](t testing.TB, v T) T {
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return v
}
