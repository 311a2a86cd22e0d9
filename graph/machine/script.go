package machine

import (
	"encoding/json"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/history"
)

// The script of a run is its commands with the state updates and checkpoints that belong to them. The main path writes its
// script to the history at once, a branch only while it is the head of its block.

// item is one piece of script. It is stored in positions, with Stored instead of Payload.
type item struct {
	Kind   history.Kind `json:"kind,omitempty"`
	Name   history.Name `json:"name,omitempty"`
	NodeID string       `json:"nodeId,omitempty"`
	// Payload of a plain record. Stored is its stored form, in positions only.
	Payload history.Payload `json:"-"`
	Stored  json.RawMessage `json:"payload,omitempty"`
	// Update is set for a StateUpdated: Delta is combined by reducers, or by overlay for a resume payload. A nil Delta
	// repeats the state.
	Update  bool           `json:"update,omitempty"`
	Delta   map[string]any `json:"delta"`
	Overlay bool           `json:"overlay,omitempty"`
	// Valid reports that the branch's view satisfied the schema after the update.
	Valid bool `json:"valid,omitempty"`
	// Checkpoint asks for a CheckpointWritten if the policy requires one.
	Checkpoint bool                  `json:"checkpoint,omitempty"`
	Span       *history.ParallelSpan `json:"span,omitempty"`
}

// command issues a command of a token.
func (m *Machine) command(t *token, name history.Name, p history.Payload) {
	m.push(t, item{Kind: history.Command, Name: name, Payload: p})
}

// scriptEvent writes an event that belongs to the script, such as ParallelForked.
func (m *Machine) scriptEvent(t *token, name history.Name, p history.Payload) {
	m.push(t, item{Kind: history.Event, Name: name, Payload: p})
}

// checkpointOnly asks for a checkpoint without a state update, as after InterruptRaised.
func (m *Machine) checkpointOnly(t *token) {
	m.push(t, item{NodeID: t.node.ID, Checkpoint: true, Span: t.span()})
}

// push writes an item of t's script, or holds it back.
func (m *Machine) push(t *token, it item) {
	switch {
	case t.item():
		return // an item writes facts only
	case t.block == nil:
		m.write(it)
	case t.block.head == t.index:
		m.absorb(t.block.owner, it)
	default:
		t.held = append(t.held, it)
	}
}

// absorb adds an item of a branch to the script of the token that owns the block, and merges its update into that token's
// view.
func (m *Machine) absorb(owner *token, it item) {
	if it.Update && it.Delta != nil && it.Valid { // an update that failed its branch is not merged: the join may tolerate the failure
		if it.Overlay {
			owner.view = definition.OverlayState(owner.view, it.Delta)
		} else if view, err := m.prog.State.Apply(owner.view, it.Delta); err == nil {
			owner.view = view
		}
		owner.unchecked = true
		m.wrote(owner, it.Delta)
	}
	m.push(owner, it)
	if it.Update && it.Valid && owner.block == nil && m.fatal == nil {
		// Each branch was valid by itself; the merged state may not be, for instance by the length of a list.
		m.fatal = m.invalidState(owner, it.NodeID)
		owner.unchecked = false
	}
}

// release writes the script that a branch held back, once it is the head of its block.
func (m *Machine) release(t *token) {
	held := t.held
	t.held = nil
	for _, it := range held {
		if m.ended() {
			return
		}
		m.absorb(t.block.owner, it)
	}
}

// write puts an item into the history.
func (m *Machine) write(it item) {
	switch {
	case it.Update:
		before := m.seq
		m.event(history.StateUpdated, history.Payload{NodeID: it.NodeID, State: m.main.view})
		if m.seq != before {
			m.stateSeq, m.stateAt = m.seq, m.main.view
		}
	case it.Name != "":
		m.record(it.Kind, it.Name, it.Payload)
	}
	if it.Checkpoint {
		m.checkpoint(it.NodeID, it.Span)
	}
}

// event writes a fact, at once.
func (m *Machine) event(name history.Name, p history.Payload) {
	m.record(history.Event, name, p)
}

// attemptEnded appends the event that ends an attempt of a token.
func (m *Machine) attemptEnded(t *token, name history.Name, p history.Payload) {
	before := m.seq
	m.event(name, p)
	if m.seq > before {
		number := max(t.wait.Attempt, 1)
		if t.wait.Kind == WaitBackoff {
			number++ // the end of the previous attempt is recorded
		}
		m.records[len(m.records)-1].Attempt = &history.Attempt{
			NodeID: t.node.ID, Visit: t.visit, Number: number,
			IdempotencyKey: m.cfg.ExecutionID + ":" + attemptKey(t.node.ID, t.visit, number),
		}
	}
}

// record appends a record to the batch, unless the history holds it already.
func (m *Machine) record(kind history.Kind, name history.Name, p history.Payload) {
	if m.status.Terminal() {
		return
	}
	if m.recorded != nil && m.matchRecorded(kind, name, p) {
		return
	}
	if m.status.Terminal() {
		return // the command differed from the recorded one, which ended the run
	}
	m.put(kind, name, p)
}

// usualBatch is the number of records of one activity of a linear run, with a checkpoint.
const usualBatch = 8

func (m *Machine) put(kind history.Kind, name history.Name, p history.Payload) {
	if m.recorded != nil {
		m.setNow(m.present)
	}
	m.seq++
	if kind == history.Command {
		m.commands++
	}
	if m.records == nil {
		if m.records, m.spare = m.spare, nil; m.records == nil {
			m.records = make([]history.Record, 0, usualBatch)
		}
	}
	m.records = append(m.records, history.Record{Seq: m.seq, Kind: kind, Name: name, Payload: p, CreatedAt: m.now})
}

// checkpoint writes a CheckpointWritten if one is due (spec: execution, 9).
func (m *Machine) checkpoint(nodeID string, span *history.ParallelSpan) {
	policy := m.prog.Checkpoint
	if !policy.Enabled {
		return
	}
	m.checkpoints++
	if m.checkpoints%policy.Every != 0 {
		return
	}
	p := history.Payload{
		NodeID:              nodeID,
		Policy:              "after_each_node",
		WorkflowVersion:     m.prog.Version,
		DefinitionHash:      m.prog.Hash,
		LastAppliedEventSeq: m.seq,
		StateRef:            m.main.view,
		Span:                span,
	}
	if policy.Interval {
		p.Policy, p.IntervalNodes = "every_n_nodes", policy.Every
	}
	m.event(history.CheckpointWritten, p)
}
