package machine

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxWritten bounds the names that a token keeps.
const maxWritten = 64

// showsState reports whether a definition has a question whose author shows nothing.
func showsState(p *definition.Program) bool {
	return slices.ContainsFunc(p.Nodes, func(n *definition.Node) bool { return n.Interrupt != nil && n.Interrupt.Show == nil })
}

// wrote notes which fields of the state have been written, the newest last: a question whose author shows nothing shows these first.
func (m *Machine) wrote(t *token, delta map[string]any) {
	if !m.showsState || len(delta) == 0 {
		return
	}
	names := slices.DeleteFunc(slices.Clone(t.written), func(name string) bool { _, again := delta[name]; return again })
	names = append(names, jsonvalue.Keys(delta)...)
	t.written = slices.Clone(names[max(0, len(names)-maxWritten):])
}
