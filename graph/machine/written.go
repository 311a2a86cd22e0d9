package machine

import (
	"slices"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// maxWritten bounds the names that a token keeps.
const maxWritten = 64

// showsState reports whether a definition has an interrupt without show, which shows the state.
func showsState(p *definition.Program) bool {
	return slices.ContainsFunc(p.Nodes, func(n *definition.Node) bool { return n.Interrupt != nil && n.Interrupt.Show == nil })
}

// wrote adds written fields of the state, the newest last. A question without show shows them first.
func (m *Machine) wrote(t *token, delta map[string]any) {
	if !m.showsState || len(delta) == 0 {
		return
	}
	names := slices.DeleteFunc(slices.Clone(t.written), func(name string) bool { _, again := delta[name]; return again })
	names = append(names, jsonvalue.Keys(delta)...)
	t.written = slices.Clone(names[max(0, len(names)-maxWritten):])
}
