package machine

import (
	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// position returns the stored form of a map, nil for a parallel block. The item indexes of the tokens are stored with the tokens.
func (it *mapItems) position(tokens []*token) *itemsPosition {
	if it == nil {
		return nil
	}
	p := &itemsPosition{Clock: it.clock, Base: it.base, Next: it.next, Last: it.last, Working: []int{}, Ended: []itemPosition{}}
	working := map[int]bool{}
	for _, t := range tokens {
		p.Working = append(p.Working, t.index)
		working[t.index] = true
	}
	for i := range it.next {
		if !working[i] {
			p.Ended = append(p.Ended, itemPosition{Index: i, Output: it.outputs[i], Failure: it.failures[i]})
		}
	}
	return p
}

// restoreItems rebuilds a map.
func (m *Machine) restoreItems(b *block, p *blockPosition) error {
	misfit := problem.New(problem.HistoryCorrupt, "the stored position does not fit the map at %q", b.node.ID)
	values, err := m.mapValues(b.owner, p.Items.Clock)
	if err != nil {
		return misfit.WithCause(err)
	}
	it := &mapItems{
		values: values, clock: p.Items.Clock, base: p.Items.Base, next: p.Items.Next, last: p.Items.Last, ended: len(p.Items.Ended),
		outputs: make([]any, len(values)), failures: map[int]*failure{},
	}
	if it.base < 0 || it.next < 0 || it.next > len(values) || len(p.Items.Working) != len(p.Tokens) || it.ended+len(p.Tokens) != it.next {
		return misfit
	}
	b.items = it
	seen := map[int]bool{}
	known := func(i int) bool {
		ok := i >= 0 && i < it.next && !seen[i]
		seen[i] = true
		return ok
	}
	for _, e := range p.Items.Ended {
		if !known(e.Index) {
			return misfit
		}
		if it.outputs[e.Index] = e.Output; e.Failure != nil {
			it.failures[e.Index] = e.Failure
		}
	}
	if len(it.failures) > b.node.Map.Tolerates(len(values)) {
		return misfit
	}
	for i, index := range p.Items.Working {
		if !known(index) {
			return misfit
		}
		t := b.itemToken(index)
		view := t.view
		if err := m.restore(t, &p.Tokens[i]); err != nil {
			return err
		}
		if t.view, t.unchecked = view, false; t.node != b.node || t.visit != it.base+1+index || t.wait == nil {
			return misfit
		}
		b.tokens = append(b.tokens, t)
	}
	return nil
}
