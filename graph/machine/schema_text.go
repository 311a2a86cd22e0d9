package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/state"
	"github.com/workflows-engine/workflows-engine/internal/jsonschema"
)

// schemaText gives what is wrong with a value, "" if nothing is.
func schemaText(s *jsonschema.Schema, v any) string {
	if vs := s.Validate(v); len(vs) > 0 {
		return jsonschema.Text(vs)
	}
	return ""
}

// overlayState sets a resume payload's members in a state.
func overlayState(view, payload map[string]any) map[string]any { return state.Overlay(view, payload) }
