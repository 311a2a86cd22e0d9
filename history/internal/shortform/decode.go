package shortform

import (
	"bytes"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// Decoder reads short payloads of one run. Reading them in order is cheap, because it caches the newest state.
type Decoder struct {
	executionID string
	shelf       Shelf
	outline     bool
	// newest is the last state read: only the newest state is a base or the target of a reference.
	newest knownState
}

// knownState is the state of the record seq, with the hash of its stored text.
type knownState struct {
	seq   int64
	state map[string]any
	hash  string
}

// NewDecoder returns a Decoder for a run. With outline it omits states and references to them, which a projection does not need. It keeps the
// input of a delegate, which a projection needs.
func NewDecoder(executionID string, shelf Shelf, outline bool) *Decoder {
	return &Decoder{executionID: executionID, shelf: shelf, outline: outline}
}

// Payload reads the short payload of a record. An error with a code describes a fault of the payload; any other error is the shelf's.
func (d *Decoder) Payload(name history.Name, seq int64, raw []byte) (history.Payload, error) {
	return history.DecodePayloadFunc(name, raw, func(member string, v any) (any, error) {
		return d.member(name, seq, raw, member, v)
	})
}

// HasShortOwn reports whether an otherwise whole payload has this engine's own fields in short form, so that [Decoder.Own] must read it.
func HasShortOwn(name history.Name, raw []byte) bool {
	switch name {
	case history.ActivityRequested, history.InterruptRaised, history.InterruptResumed:
		return bytes.Contains(raw, []byte(`"$`)) &&
			(bytes.Contains(raw, []byte(`"`+history.MemberRequest+`":{`)) || bytes.Contains(raw, []byte(`"`+history.MemberAgentStep+`":{`)))
	default:
		return false
	}
}

// Own reads a payload in which only this engine's own fields are short. Its errors are those of Payload.
func (d *Decoder) Own(name history.Name, raw []byte) (history.Payload, error) {
	return history.DecodePayloadFunc(name, raw, func(member string, v any) (any, error) {
		switch {
		case !history.IsOwnValue(member):
			return v, nil
		case d.outline && member == history.MemberRequest:
			return nil, nil
		case d.outline:
			return map[string]any{}, nil // an empty step still distinguishes the record from a request
		}
		return d.value(v)
	})
}

// member expands v, the value of a field of a payload.
func (d *Decoder) member(name history.Name, seq int64, raw []byte, member string, v any) (any, error) {
	m, _ := v.(map[string]any)
	isState := member == "state" && name == history.StateUpdated
	reference, refers := m[markState]
	part, isPart := m[markPart]
	switch {
	case d.outline && (isState || isPart || refers && member != "delegateInput" || history.IsOwnValue(member)):
		return map[string]any{}, nil
	case isState:
		text, stored, ok := parseState(raw)
		if !ok {
			return nil, unreadable("its state is neither a snapshot nor a delta")
		}
		state, err := d.state(seq, &stored)
		if err == nil {
			d.newest = knownState{seq, state, HashOf(text)}
		}
		return state, err
	case refers && len(m) == 1:
		at, _ := reference.(float64)
		if at < 1 || int64(at) >= seq {
			return nil, unreadable("it refers to a state that is not before it")
		}
		s, err := d.stateAt(int64(at))
		return s.state, err
	case isPart && len(m) == 1:
		return d.part(seq, part)
	}
	return d.value(v)
}

// state returns the state stored in a StateUpdated.
func (d *Decoder) state(seq int64, stored *storedState) (map[string]any, error) {
	if s := stored.Snapshot; s != nil {
		return d.snapshot(s)
	}
	delta := stored.Delta
	if delta.Base >= seq || delta.Whole > delta.Base || delta.Whole < 1 {
		return nil, unreadable("its state is based on record %d", delta.Base)
	}
	base := d.newest
	if base.seq != delta.Base {
		var err error
		if base, err = d.build(delta.Whole, delta.Base); err != nil {
			return nil, err
		}
	}
	changes, err := d.changes(delta, base.hash)
	if err != nil {
		return nil, err
	}
	return jsondelta.Apply(base.state, changes)
}

func (d *Decoder) snapshot(s *storedSnapshot) (map[string]any, error) {
	v, err := d.text(s.State)
	if err != nil {
		return nil, err
	}
	state, ok := v.(map[string]any)
	if !ok {
		return nil, unreadable("its state is not an object")
	}
	return state, nil
}

// changes returns the changes of a delta, if the hash of its base matches.
func (d *Decoder) changes(delta *storedDelta, base string) (any, error) {
	if delta.Hash != base {
		return nil, unreadable("its state is based on record %d, whose hash does not match", delta.Base)
	}
	return d.text(delta.Changes)
}

// stateAt returns the state of a record in short form.
func (d *Decoder) stateAt(seq int64) (knownState, error) {
	if d.newest.seq == seq {
		return d.newest, nil
	}
	whole := seq
	err := d.shelf.States(d.executionID, seq, seq, func(_ int64, payload []byte) error {
		if _, stored, ok := parseState(payload); ok && stored.Delta != nil {
			whole = stored.Delta.Whole
		}
		return nil
	})
	if err != nil {
		return knownState{}, err
	}
	return d.build(whole, seq)
}

// build computes a state from the last snapshot and the later deltas. It changes the intermediate states in place, because no caller sees
// them.
func (d *Decoder) build(whole, seq int64) (knownState, error) {
	var now knownState
	err := d.shelf.States(d.executionID, whole, seq, func(next int64, payload []byte) error {
		text, stored, ok := parseState(payload)
		switch {
		case !ok:
			return unreadable("the state of record %d is neither a snapshot nor a delta", next)
		case stored.Snapshot != nil:
			state, err := d.snapshot(stored.Snapshot)
			now = knownState{next, state, HashOf(text)}
			return err
		case now.seq != stored.Delta.Base:
			return unreadable("the state of record %d is based on record %d, which is missing", next, stored.Delta.Base)
		}
		changes, err := d.changes(stored.Delta, now.hash)
		if err != nil {
			return err
		}
		state, err := jsondelta.Advance(now.state, changes)
		now = knownState{next, state, HashOf(text)}
		return err
	})
	if err == nil && now.seq != seq {
		err = unreadable("record %d, which holds its state, is missing", seq)
	}
	if err == nil {
		d.newest = now
	}
	return now, err
}

// text parses a text and resolves its references.
func (d *Decoder) text(raw []byte) (any, error) {
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		return nil, err
	}
	return d.value(v)
}

// value replaces references by their values, in v itself.
func (d *Decoder) value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if hash, ok := v[markBlob].(string); ok && len(v) == 1 {
			return d.blob(hash)
		}
		var marked []string
		for name, inner := range v {
			if name != "" && name[0] == '$' {
				marked = append(marked, name)
			}
			if isScalar(inner) {
				continue
			}
			value, err := d.value(inner)
			if err != nil {
				return nil, err
			}
			v[name] = value
		}
		return v, unmark(v, marked)
	case []any:
		for i, inner := range v {
			if isScalar(inner) {
				continue
			}
			value, err := d.value(inner)
			if err != nil {
				return nil, err
			}
			v[i] = value
		}
	}
	return v, nil
}

// unmark restores the names of fields that begin with "$".
func unmark(m map[string]any, marked []string) error {
	if len(marked) == 0 {
		return nil
	}
	values := make([]any, len(marked))
	for i, name := range marked {
		if len(name) < 2 || name[1] != '$' {
			return unreadable("unknown reference %q", name)
		}
		values[i] = m[name]
		delete(m, name)
	}
	for i, name := range marked {
		m[name[1:]] = values[i]
	}
	return nil
}

// blob returns the value in a blob. Each call returns a new value.
func (d *Decoder) blob(hash string) (any, error) {
	content, err := d.shelf.Blob(hash)
	switch {
	case err != nil:
		return nil, err
	case content == "":
		return nil, unreadable("blob %s is missing", hash)
	}
	text := []byte(content)
	if HashOf(text) != hash {
		return nil, unreadable("the content of blob %s does not match its hash", hash)
	}
	return d.text(text)
}
