package temporal

import (
	"log/slog"
	"testing"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

var discard = slog.New(slog.DiscardHandler)

// twice calls a step twice.
func twice(t testing.TB) *definition.Document {
	return enginetest.Define(t, enginetest.Linear("twice", `{"id":"begin","type":"start"}`, `{"id":"a","type":"step","config":{"handler":"x"}}`,
		`{"id":"b","type":"step","config":{"handler":"x"}}`, `{"id":"end","type":"end"}`))
}

// loop waits for ten signals.
func loop(t testing.TB) *definition.Document {
	return enginetest.Define(t, `{"document":{"schema":"urn:test","name":"loop","version":"1"},"state_schema":{"type":"object"},
		"nodes":[{"id":"begin","type":"start"},{"id":"work","type":"step","config":{"handler":"charge"}},{"id":"wait","type":"wait","config":{"kind":"signal","signal":"next"}},
			{"id":"count","type":"set_state","config":{"assignments":{"n":{"jq":".n + 1"}}}},{"id":"more","type":"switch","config":{"cases":[{"when":".n < 10","target":"work"}],"default":"end"}},{"id":"end","type":"end"}],
		"edges":[{"source":"__start__","target":"begin"},{"source":"begin","target":"work"},{"source":"work","target":"wait"},{"source":"wait","target":"count"},{"source":"count","target":"more"}]}`)
}

// journaled has one step, for an executor with a journal.
func journaled(t testing.TB) *definition.Document {
	return enginetest.Define(t, enginetest.Linear("agent", `{"id":"begin","type":"start"}`, `{"id":"a","type":"step","config":{"handler":"x"}}`, `{"id":"end","type":"end"}`))
}
