package machine

import "maps"

// The fields of a usage for a partial output, and its reason. An output is partial if both are set: executors of older releases set only the
// first one.
const (
	UsagePartial       = "partial"
	UsagePartialReason = "partial_reason"
)

// maxPartials limits the nodes in Partials.
const maxPartials = 50

// Partials returns the nodes whose newest output is partial, with the reason of each. It must not be changed.
func (m *Machine) Partials() map[string]string { return m.partials }

// notePartial notes whether the output of a node is partial.
func (m *Machine) notePartial(nodeID string, usage map[string]any) {
	partial, _ := usage[UsagePartial].(bool)
	reason, given := usage[UsagePartialReason].(string)
	partial = partial && given
	_, noted := m.partials[nodeID]
	if !partial && !noted || partial && !noted && len(m.partials) >= maxPartials {
		return
	}
	next := maps.Clone(m.partials)
	if next == nil {
		next = map[string]string{}
	}
	if delete(next, nodeID); partial {
		next[nodeID] = reason
	}
	m.partials = next
}
