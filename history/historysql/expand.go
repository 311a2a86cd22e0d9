package historysql

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsondelta"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// shelf is where an expander finds what rows refer to: the pool of readers, or the connection of a transaction.
type shelf interface {
	// blob gives a blob's content, "" if there is none.
	blob(hash string) (string, error)
	// states calls each with the payloads of the states written short from one seq to another, in order.
	states(executionID string, first, last int64, each func(seq int64, payload []byte) error) error
}

// expander turns rows that are written short into records of one run.
type expander struct {
	id    string
	shelf shelf
	// known are states by the seq of their record, and the hashes of what is stored for them.
	known map[int64]knownState
	// outline leaves out the states and what refers to them, which the projection does not need; the input of a
	// delegate it does.
	outline bool
}

type knownState struct {
	state map[string]any
	hash  string
}

// record gives a row as a record; see storedRow.record.
func (x *expander) record(r *storedRow) (history.Record, error) {
	if history.RowVersion(r.version) != shortVersion {
		return r.record(x.id)
	}
	raw := r.payload
	whole := *r
	whole.version, whole.payload = int64(history.RecordSchemaVersion), emptyObject
	out, err := whole.record(x.id)
	out.Raw = nil
	if err != nil {
		return out, err
	}
	p, err := history.DecodePayloadFunc(out.Name, raw, func(member string, v any) (any, error) {
		return x.member(out.Name, r.seq, raw, member, v)
	})
	if err != nil {
		if _, ok := problem.As(err); !ok {
			return out, err // the database's
		}
		return out, r.damaged(x.id, "has a large value that cannot be read").WithCause(err)
	}
	out.Payload = p
	return out, nil
}

var emptyObject = []byte("{}")

// member gives the value that stands for v in a member of a payload.
func (x *expander) member(name history.Name, seq int64, raw []byte, member string, v any) (any, error) {
	m, _ := v.(map[string]any)
	isState := member == "state" && name == history.StateUpdated
	reference, refers := m[markState]
	part, isPart := m[markPart]
	switch {
	case x.outline && (isState || isPart || refers && member != "delegateInput"):
		return map[string]any{}, nil
	case isState:
		text, stored, ok := parseState(raw)
		if !ok {
			return nil, unreadable("what stands for its state is neither a whole one nor a delta")
		}
		state, err := x.state(seq, &stored)
		if err == nil {
			x.learn(seq, knownState{state, hashOf(text)})
		}
		return state, err
	case refers && len(m) == 1:
		at, _ := reference.(float64)
		s, err := x.stateAt(int64(at))
		return s.state, err
	case isPart && len(m) == 1:
		return x.part(seq, part)
	}
	return x.value(v)
}

func unreadable(format string, args ...any) error {
	return problem.New(problem.HistoryCorrupt, format, args...)
}

// learn keeps a state for those that follow. Only the newest is ever a base, and references are to the newest too.
func (x *expander) learn(seq int64, s knownState) {
	if x.known == nil {
		x.known = map[int64]knownState{}
	}
	clear(x.known)
	x.known[seq] = s
}

// state gives the state that a StateUpdated stands for.
func (x *expander) state(seq int64, stored *storedState) (map[string]any, error) {
	if s := stored.Snapshot; s != nil {
		return x.snapshot(s)
	}
	d := stored.Delta
	if d.Base >= seq || d.Whole > d.Base || d.Whole < 1 {
		return nil, unreadable("its state is based on record %d", d.Base)
	}
	base, ok := x.known[d.Base]
	if !ok {
		var err error
		if base, err = x.build(d.Whole, d.Base); err != nil {
			return nil, err
		}
	}
	changes, err := x.changes(d, base.hash)
	if err != nil {
		return nil, err
	}
	return jsondelta.Apply(base.state, changes)
}

func (x *expander) snapshot(s *storedSnapshot) (map[string]any, error) {
	v, err := x.text(s.State)
	if err != nil {
		return nil, err
	}
	state, ok := v.(map[string]any)
	if !ok {
		return nil, unreadable("its state is no object")
	}
	return state, nil
}

// changes gives what a delta says, if its base is the one that it was made from.
func (x *expander) changes(d *storedDelta, base string) (any, error) {
	if d.Hash != base {
		return nil, unreadable("record %d, which its state is based on, is not the one that it was written for", d.Base)
	}
	return x.text(d.Changes)
}

// stateAt gives the state of a record that was written short.
func (x *expander) stateAt(seq int64) (knownState, error) {
	if s, ok := x.known[seq]; ok {
		return s, nil
	}
	whole := seq
	err := x.shelf.states(x.id, seq, seq, func(_ int64, payload []byte) error {
		if _, stored, ok := parseState(payload); ok && stored.Delta != nil {
			whole = stored.Delta.Whole
		}
		return nil
	})
	if err != nil {
		return knownState{}, err
	}
	return x.build(whole, seq)
}

// build makes a state from the last whole one and the deltas since. The states between are nobody else's, so they are
// brought forward in place.
func (x *expander) build(whole, seq int64) (knownState, error) {
	var now knownState
	at := int64(0)
	err := x.shelf.states(x.id, whole, seq, func(next int64, payload []byte) error {
		text, stored, ok := parseState(payload)
		switch {
		case !ok:
			return unreadable("what stands for the state of record %d is neither a whole one nor a delta", next)
		case stored.Snapshot != nil:
			state, err := x.snapshot(stored.Snapshot)
			now, at = knownState{state, hashOf(text)}, next
			return err
		case at != stored.Delta.Base:
			return unreadable("the state of record %d is based on record %d, which is not there", next, stored.Delta.Base)
		}
		changes, err := x.changes(stored.Delta, now.hash)
		if err != nil {
			return err
		}
		state, err := jsondelta.Advance(now.state, changes)
		now, at = knownState{state, hashOf(text)}, next
		return err
	})
	if err == nil && at != seq {
		err = unreadable("record %d, which holds its state, is not there", seq)
	}
	if err == nil {
		x.learn(seq, now)
	}
	return now, err
}

// text gives the value of a text with references.
func (x *expander) text(raw []byte) (any, error) {
	v, err := jsonvalue.Decode(raw)
	if err != nil {
		return nil, err
	}
	return x.value(v)
}

// value puts what references stand for in their place, in v itself.
func (x *expander) value(v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		if hash, ok := v[markBlob].(string); ok && len(v) == 1 {
			return x.blob(hash)
		}
		var marked []string
		for name, inner := range v {
			if name != "" && name[0] == '$' {
				marked = append(marked, name)
			}
			if scalar(inner) {
				continue
			}
			value, err := x.value(inner)
			if err != nil {
				return nil, err
			}
			v[name] = value
		}
		return v, unmark(v, marked)
	case []any:
		for i, inner := range v {
			if scalar(inner) {
				continue
			}
			value, err := x.value(inner)
			if err != nil {
				return nil, err
			}
			v[i] = value
		}
	}
	return v, nil
}

// unmark gives members their own names, of those that begin with "$".
func unmark(m map[string]any, marked []string) error {
	if len(marked) == 0 {
		return nil
	}
	values := make([]any, len(marked))
	for i, name := range marked {
		if len(name) < 2 || name[1] != '$' {
			return unreadable("the reference %q is unknown", name)
		}
		values[i] = m[name]
		delete(m, name)
	}
	for i, name := range marked {
		m[name[1:]] = values[i]
	}
	return nil
}

// blob gives the value that a blob holds. Each call gives a value of its own.
func (x *expander) blob(hash string) (any, error) {
	content, err := x.shelf.blob(hash)
	switch {
	case err != nil:
		return nil, err
	case content == "":
		return nil, unreadable("blob %s is not there", hash)
	}
	text := []byte(content)
	if hashOf(text) != hash {
		return nil, unreadable("the content of blob %s is not the one that was stored", hash)
	}
	return x.text(text)
}

// readerShelf finds what rows refer to through the pool of readers.
type readerShelf struct {
	ctx context.Context
	r   *readers
}

func (s readerShelf) blob(hash string) (string, error) {
	var content string
	_, err := s.r.row(s.ctx, readBlob, []any{hash}, &content)
	return content, err
}

func (s readerShelf) states(executionID string, first, last int64, each func(seq int64, payload []byte) error) error {
	// What each does may need a connection of its own, so the rows are read first: there are only so many.
	type row struct {
		seq     int64
		payload []byte
	}
	var rows []row
	err := s.r.query(s.ctx, readStates, func(found *sql.Rows) error {
		var r row
		err := found.Scan(&r.seq, &r.payload)
		rows = append(rows, r)
		return err
	}, executionID, first, last, int64(shortVersion))
	for i := 0; err == nil && i < len(rows); i++ {
		err = each(rows[i].seq, rows[i].payload)
	}
	return err
}

// connShelf finds what rows refer to within a transaction.
type connShelf struct{ c *conn }

func (s connShelf) blob(hash string) (string, error) {
	v, err := s.c.one(readBlob, hash)
	content, _ := v.(string)
	return content, err
}

func (s connShelf) states(executionID string, first, last int64, each func(seq int64, payload []byte) error) error {
	type row struct {
		seq     int64
		payload string
	}
	var rows []row
	err := s.c.query(readStates, func(values []driver.Value) error {
		var r row
		r.seq, _ = values[0].(int64)
		r.payload, _ = values[1].(string)
		rows = append(rows, r)
		return nil
	}, executionID, first, last, int64(shortVersion))
	for i := 0; err == nil && i < len(rows); i++ {
		err = each(rows[i].seq, []byte(rows[i].payload))
	}
	return err
}
