package historymem

import (
	"bytes"
	"context"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
)

// Append adds a batch to one run's history; see history.Store.
func (s *Store) Append(ctx context.Context, b history.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	text := b.Execution.AppendText(nil)
	execution, err := history.ParseExecution(b.ExecutionID, text)
	if err != nil {
		return err
	}
	rows := make([]row, len(b.Records))
	for i := range b.Records {
		r := &b.Records[i]
		rows[i] = row{kind: r.Kind, name: r.Name, payload: r.AppendPayload(nil, b.ExecutionID), at: milli(r.CreatedAt)}
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	x := s.runs[b.ExecutionID]
	switch {
	case x == nil && b.ExpectedSeq != 0, x != nil && int64(len(x.rows)) != b.ExpectedSeq:
		return b.Conflict()
	case b.Owner != "" && x != nil && s.ownedElsewhere(x, b.Owner):
		return b.LeaseHeld()
	case x == nil:
		x = &run{}
		s.runs[b.ExecutionID] = x
	}
	x.rows = append(x.rows, rows...)
	for i := range rows {
		x.bytes += int64(len(rows[i].payload))
	}
	if b.Bytes != nil {
		*b.Bytes = x.bytes
	}
	x.execution, x.text = execution, text
	x.keep(&b)
	s.keepOwner(x, &b)
	s.changed(b.ExecutionID, execution.Seq)
	if b.Definition != nil {
		s.putDefinition(*b.Definition)
	}
	return nil
}

// keep stores the batch's position and timers.
func (x *run) keep(b *history.Batch) {
	if b.Execution.Phase.Terminal() {
		x.position, x.positionSeq, x.timers = nil, 0, nil
		return
	}
	if b.Position != nil {
		x.position, x.positionSeq = bytes.Clone(b.Position), b.Execution.Seq
	}
	if b.SetTimers {
		x.timers = nil
		for _, t := range b.Timers {
			x.timers = append(x.timers, history.Timer{ExecutionID: b.ExecutionID, Key: t.Key, Due: time.UnixMilli(history.CeilMillis(t.Due)).UTC()})
		}
	}
}

// milli gives the time as a file would keep it.
func milli(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// PutDefinition stores a definition; see history.Store.
func (s *Store) PutDefinition(ctx context.Context, d history.StoredDefinition) error {
	if err := d.Check(); err != nil {
		return err
	}
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.putDefinition(d)
	return nil
}

func (s *Store) putDefinition(d history.StoredDefinition) {
	if _, err := s.definition(func(k *history.StoredDefinition) bool { return k.Hash == d.Hash }); err != nil {
		d.Text = bytes.Clone(d.Text)
		s.definitions = append(s.definitions, d)
	}
}

// definition gives the one stored last that a condition holds for.
func (s *Store) definition(is func(d *history.StoredDefinition) bool) (history.StoredDefinition, error) {
	for i := len(s.definitions) - 1; i >= 0; i-- {
		if d := s.definitions[i]; is(&d) {
			d.Text = bytes.Clone(d.Text)
			return d, nil
		}
	}
	return history.StoredDefinition{}, problem.New(problem.DefinitionNotFound, "the definition is not stored")
}
