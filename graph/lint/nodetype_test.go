package lint_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestEveryTypeIsKnown lints the example of each node type: no warning is about a valid example.
func TestEveryTypeIsKnown(t *testing.T) {
	t.Parallel()
	for _, typ := range definition.NodeTypes() {
		t.Run(string(typ.Name), func(t *testing.T) {
			t.Parallel()
			d, id := enginetest.AroundExample(t, typ)
			_, findings := lint.Compile(d, lint.Options{})
			for _, f := range findings {
				if f.At.NodeID == id && f.Code != problem.QuestionShowsNothing { // which needs an extension
					t.Errorf("%s: %s", f.Code, f.Message)
				}
			}
		})
	}
}

// TestOutputIsUnknownUnlessDescribed shows that a program may read any field behind a node whose output no schema closes, and only
// the known fields behind the others.
func TestOutputIsUnknownUnlessDescribed(t *testing.T) {
	t.Parallel()
	for _, typ := range definition.NodeTypes() {
		if typ.Output == definition.OutputNone || typ.Output == definition.OutputInput {
			continue // no output of its own
		}
		t.Run(string(typ.Name), func(t *testing.T) {
			t.Parallel()
			text := enginetest.Linear("described", `{"id":"begin","type":"start","config":{"input_schema":{"type":"object","properties":{"request":{},"amount":{},"attempts":{}},"additionalProperties":false}}}`,
				typ.Example, `{"id":"end","type":"end","config":{"output_mapping":".fresh"}}`)
			described := typ.Output == definition.OutputAssigned || typ.Output == definition.OutputSignal // the example waits for a time; other examples have open schemas
			warned := false
			for _, f := range found(t, text) {
				warned = warned || f.Code == problem.ExpressionPath
			}
			if warned != described {
				t.Errorf("a warning is %v, want %v", warned, described)
			}
		})
	}
}
