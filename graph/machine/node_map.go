package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// A node with a map (the extension map) is a block with a token for each item in progress. Each item writes only facts, under its own visit,
// so that outcomes may arrive in any order. The script has the node, its MapStarted and its CompleteNode with the collected outputs.

// mapItems are the items of a map.
type mapItems struct {
	values []any
	// clock is the time that the items were evaluated with.
	clock time.Time
	// base is the number of the node's visits before the first item; visits are assigned to all items at the start.
	base int
	// next is the first item that has not started; ended counts the items that have ended.
	next, ended int
	outputs     []any
	failures    map[int]*failure
	// last is the index of the item that failed last.
	last int
	// starting is set while items are started, so that an item that ends at once does not start others.
	starting bool
}

// item reports whether the token is an item of a map.
func (t *token) item() bool { return t.block != nil && t.block.items != nil }

// beginMap evaluates the items of a map and starts the first ones.
func (m *Machine) beginMap(t *token) *definition.Node {
	values, err := m.mapValues(t, m.clock)
	if err != nil {
		return m.failErr(t, reasonMap, err)
	}
	n := t.node
	b := &block{owner: t, node: n, items: &mapItems{
		values: values, clock: m.clock, base: m.visits[n.Index], outputs: make([]any, len(values)), failures: map[int]*failure{},
	}}
	m.visits[n.Index] += len(values)
	m.scriptEvent(t, history.MapStarted, history.Payload{NodeID: n.ID, Items: history.Some(float64(len(values)))})
	t.inner = b
	m.noteTimers(t)
	m.startItems(b)
	return nil
}

func (m *Machine) mapValues(t *token, clock time.Time) ([]any, error) {
	env := m.env()
	env.Now = clock
	v, err := t.node.Map.Items.EvalAt(t.view, env)
	if err != nil {
		return nil, err
	}
	values, ok := v.([]any)
	switch {
	case !ok:
		return nil, problem.New(problem.MapItemsInvalid, "map items at node %q must be an array", t.node.ID)
	case len(values) > definition.MaxMapItems:
		return nil, problem.New(problem.MapItemsInvalid, "map at node %q has %d items, which exceeds the limit of %d", t.node.ID, len(values), definition.MaxMapItems)
	}
	return values, nil
}

// itemToken returns a new token for an item.
func (b *block) itemToken(index int) *token {
	return &token{
		block: b, index: index, node: b.node, visit: b.items.base + 1 + index,
		view: definition.OverlayState(b.owner.view, map[string]any{b.node.Map.As: b.items.values[index]}),
	}
}

// smallItem is the largest value of an item, in bytes, that its requests repeat. Repeating larger ones, which the state has, would double the
// size of a map in the store.
const smallItem = 256

// itemRequest returns the part of a request that identifies the item; nil for other attempts.
func (t *token) itemRequest() map[string]any {
	if !t.item() {
		return nil
	}
	request := map[string]any{"item": float64(t.index)}
	if v := t.block.items.values[t.index]; jsonvalue.Size(v, smallItem) <= smallItem {
		request["value"] = v
	}
	return request
}

// startItems starts items up to the map's concurrency, and decides the map if possible.
func (m *Machine) startItems(b *block) {
	it := b.items
	if it.starting {
		return
	}
	it.starting = true
	tolerated := b.node.Map.Tolerates(len(it.values))
	for len(it.failures) <= tolerated && it.next < len(it.values) && len(b.tokens) < b.node.Map.Concurrency && !m.ended() {
		if m.fatal = m.limitReached(b.node.ID); m.fatal != nil {
			break
		}
		t := b.itemToken(it.next)
		it.next++
		b.tokens = append(b.tokens, t)
		if m.stretchExhausted() {
			m.endStretch(t, b.node)
			break
		}
		m.beginItem(t)
	}
	it.starting = false
	switch {
	case m.ended() || m.Walking():
	case len(it.failures) > tolerated:
		m.failMap(b)
	case it.ended == len(it.values):
		m.completeMap(b)
	}
}

func (m *Machine) beginItem(t *token) {
	m.countVisit()
	m.event(history.NodeScheduled, m.scheduled(t))
	switch {
	case m.ended():
	case t.node.Subworkflow != nil:
		m.beginSubworkflow(t)
	default:
		m.beginActivity(t)
	}
}

// itemEnded stores the output or failure of an item.
func (m *Machine) itemEnded(t *token, output any, f *failure) {
	b := t.block
	it := b.items
	b.tokens = slices.DeleteFunc(slices.Clone(b.tokens), func(other *token) bool { return other == t })
	it.ended++
	if t.phase = succeeded; f != nil {
		t.phase = broken
		it.failures[t.index], it.last = f, t.index
	} else {
		it.outputs[t.index] = output
	}
	m.startItems(b)
}

// completeMap completes the node once all items have ended.
func (m *Machine) completeMap(b *block) {
	it, c := b.items, b.node.Map
	m.noteTimers(b.owner)
	b.owner.closeBlock()
	delta := map[string]any{}
	if c.Collect != "" {
		delta[c.Collect] = it.outputs
	}
	if c.FailedAs != "" {
		failed := []any{}
		for i := range it.values {
			if f := it.failures[i]; f != nil {
				v := f.value()
				v["index"] = float64(i)
				failed = append(failed, v)
			}
		}
		delta[c.FailedAs] = failed
	}
	m.walk(b.owner, m.complete(b.owner, completion{output: delta, delta: delta, checkpoint: true}))
}

// failMap fails the node with the failure of the last failed item. Items in progress are recorded as cancelled, so that readers of the
// history know that the run does not wait for them.
func (m *Machine) failMap(b *block) {
	it := b.items
	of := it.failures[it.last]
	f := &failure{Reason: of.Reason, Code: of.Code, NodeID: b.node.ID, Attempts: of.Attempts}
	f.Message = fmt.Sprintf("item %d failed (%d of %d): %s", it.last, len(it.failures), len(it.values), of.Message)
	f.Data = of.Data
	m.endItems(b, f, "other items failed the map")
}

// endItems fails a map. why is recorded as the failure of the items in progress.
func (m *Machine) endItems(b *block, f *failure, why string) {
	for _, t := range b.tokens {
		m.itemCancelled(t, why)
		m.abandon(t)
		m.stopWaiting(t)
	}
	m.asWritten(b.owner, f)
	m.leaveBlock(b)
	m.walk(b.owner, m.failToken(b.owner, f))
}

// itemCancelled records that the run no longer waits for an item.
func (m *Machine) itemCancelled(t *token, text string) {
	if t.wait.Kind == WaitChild {
		p := m.childFact(t, t.wait)
		p.Failed, p.Error, p.Code = true, text, string(problem.ActivityCancelled)
		m.event(history.SubworkflowCompleted, p)
		return
	}
	p := m.fact(t)
	p.Attempt, p.Error, p.Code = max(t.wait.Attempt, 1), text, string(problem.ActivityCancelled)
	if t.wait.Kind == WaitBackoff {
		p.Attempt++ // the end of the previous attempt is recorded
	}
	m.attemptEnded(t, history.ActivityFailed, p)
}

// MapProgress is the progress of a map.
type MapProgress struct {
	NodeID string
	// Items is the number of items. Succeeded and Failed count those that have ended, Running those in progress.
	Items, Succeeded, Failed, Running int
}

// Maps returns the maps in progress, in branch order.
func (m *Machine) Maps() []MapProgress {
	var maps []MapProgress
	for t := range m.living {
		if b := t.inner; b != nil && b.items != nil {
			it := b.items
			maps = append(maps, MapProgress{
				NodeID: b.node.ID, Items: len(it.values), Succeeded: it.ended - len(it.failures), Failed: len(it.failures), Running: len(b.tokens),
			})
		}
	}
	return maps
}
